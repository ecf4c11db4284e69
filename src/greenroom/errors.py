"""Every exception Greenroom raises; each says what, where, and what to do next.

GreenroomError
├── BadInput                    what the author wrote cannot be used (exit code 3)
│   ├── BadAgent                an agent expression, tool or step that cannot work
│   ├── BadCase                 a case, turn, mock, stop condition or user that cannot be run
│   ├── BadFile                 a file that cannot be read as what it should be
│   ├── BadMetric               a metric whose parameters cannot be bound
│   ├── BadQuery                a state query with an unknown operator or scope
│   ├── BadValue                a value that is not JSON (NaN, bytes, unknown objects)
│   ├── BadLedger               events out of order, a truncated file, another agent's ledger
│   ├── ImportRefused           a file that connects, starts a process or calls a tool on import
│   ├── NotFound                a path, attribute, backend or agent that does not exist
│   ├── BadPlugin               a plug-in that fails to import, has the wrong type, or shares its name
│   └── MissingExtra            a package that is not installed, with the extra to install
├── Refusal                     a safety rule was broken; the case ends as an error
│   ├── ToolRefused             a tool without a mock (the gate)
│   ├── MetricRefused           a metric that tried to act, not only to read
│   ├── HookRefused             a hook that called a tool
│   ├── FenceBreach             a connection, look-up or process (the fence)
│   └── FenceNotHeld            the fence cannot be set up here, and running without was not allowed
├── StoreFailed                 the store of runs cannot be read or written
│   └── StoreRefused            it is a link, or belongs to another user
└── RunBroke                    the run could not go on
    ├── AgentFailed             the agent under test raised
    ├── ScriptExhausted         a scripted model was asked again after its last answer
    ├── ModelBroke              a model could not be asked, or gave no usable reply
    │   ├── KeyRefused          its API key is missing or was refused, with the variable to set
    │   ├── RequestRefused      its provider rejects this request (400, 404, 413, 422)
    │   ├── RateLimited         asked too often (429); `retry_after` says how long to wait
    │   ├── ModelUnreachable    the connection or the provider failed (500, 502, 503)
    │   ├── NoCandidate         a choice of models has none to ask: nothing fits, or its budget is spent
    │   ├── ModelTimedOut       no reply within the model's time limit
    │   ├── CircuitOpen         it failed too often, and is left alone for a while
    │   └── GarbledReply        a reply that cannot be read: broken JSON, or nothing at all
    ├── MockBroke               a mock raised, ran out of answers, or has none for these arguments
    ├── FailedBefore            an error from before the run was cut, under its original name
    ├── InDoubt                 a live tool was cut between its call and its return
    ├── LoopLimit               a loop or an agent took more rounds than allowed
    ├── MetricsHung             the metrics of a case did not finish
    ├── MiddlewareFailed        middleware raised, or answered with what cannot be used
    ├── OverBudget              a trial has used what its budget allows
    ├── SecretsLost             a stored run lacks the secrets that its metrics need
    ├── WorkerDied              the process that ran a trial died, or never started
    └── UserAgentFailed         the simulated user was missing, raised, or gave an unusable answer
"""

from collections.abc import Sequence
from typing import Any, ClassVar, Literal

Phase = Literal["system", "agent", "user_agent", "metric"]


class GreenroomError(Exception):
    """Root of all errors raised by Greenroom."""

    phase: ClassVar[Phase] = "system"


class BadInput(GreenroomError):
    """What the author wrote cannot be used; the message says what to write instead."""


class BadAgent(BadInput):
    """An agent expression, tool or step that cannot work."""


class BadCase(BadInput):
    """A case, turn, mock, stop condition or user that cannot be run."""


class BadFile(BadInput):
    """A file that cannot be read as what it should be; `problems` lists what is wrong in it."""

    def __init__(self, why: str, problems: Sequence[Any] = ()) -> None:
        super().__init__(why)
        self.problems = tuple(problems)


class BadMetric(BadInput):
    """A metric whose parameters or options cannot be bound."""


class BadQuery(BadInput):
    """A state query with an unknown operator, scope or shape."""


class BadValue(BadInput):
    """A value that cannot enter a ledger, because it is not plain JSON."""


class BadLedger(BadInput):
    """Events out of order, a truncated file, or the ledger of another agent."""


class ImportRefused(BadInput):
    """A file that tried to connect, to start a process or to call a tool when it was imported."""


class NotFound(BadInput):
    """A path, attribute, backend or agent that does not exist."""


class BadPlugin(BadInput):
    """A plug-in that fails to import, has the wrong type, or shares its name with another."""


class MissingExtra(BadInput):
    """A package that is not installed; the message names the extra to install."""


class Refusal(GreenroomError):
    """A safety rule was broken. The case ends as an error, whatever happens next."""


class ToolRefused(Refusal):
    """A tool was called that has no mock and was not named as allowed."""


class MetricRefused(Refusal):
    """A metric tried to act, not only to read."""

    phase: ClassVar[Phase] = "metric"


class HookRefused(Refusal):
    """A hook called a tool; hooks may only observe."""


class ReplayDrifted(Refusal):
    """In a replay the agent asked for something that was not recorded; says what differs first."""


class FenceBreach(Refusal, PermissionError):
    """Code inside a rehearsal tried to connect, look up a name or start a process."""


class FenceNotHeld(Refusal):
    """The fence cannot be set up in this process, and running without it was not allowed."""


class StoreFailed(GreenroomError):
    """The store of runs cannot be read or written; nothing that was in it is lost.

    `report` holds the results so far of a run that this stopped.
    """

    def __init__(self, why: str, report: Any = None) -> None:
        super().__init__(why)
        self.report = report


class StoreRefused(StoreFailed):
    """What is kept between runs is a symbolic link, or belongs to another user."""


class RunBroke(GreenroomError):
    """The run could not go on."""


class AgentFailed(RunBroke):
    """The agent under test raised."""

    phase: ClassVar[Phase] = "agent"


class ScriptExhausted(RunBroke):
    """A scripted model was asked again after its last answer."""

    phase: ClassVar[Phase] = "agent"


class ModelBroke(RunBroke):
    """A model could not be asked, or gave no usable reply.

    `again` is how many more times the same request is worth sending, `retry_after` how many seconds
    to wait before that, if the provider said so.
    """

    phase: ClassVar[Phase] = "agent"

    def __init__(self, why: str, *, again: int = 0, retry_after: float | None = None) -> None:
        super().__init__(why)
        self.again = again
        self.retry_after = retry_after


class KeyRefused(ModelBroke):
    """A model's API key is missing or was refused; the message names the variable to set."""


class RequestRefused(ModelBroke):
    """A model's provider rejects this request, however often it is sent."""


class RateLimited(ModelBroke):
    """A model was asked too often; `retry_after` is how many seconds to wait, if it said so."""


class ModelUnreachable(ModelBroke):
    """The connection to a model failed, or its provider reports an error of its own."""


class NoCandidate(ModelBroke):
    """A choice of models has none to ask: none is meant for the request, or its budget is spent."""


class ModelTimedOut(ModelBroke):
    """A model gave no reply within its time limit."""


class GarbledReply(ModelBroke):
    """A model's reply cannot be read."""


class CircuitOpen(ModelBroke):
    """A model failed too often in a row, and is not asked for a while."""


class MockBroke(RunBroke):
    """A mock raised, ran out of answers, or has none for these arguments."""


class FailedBefore(RunBroke):
    """An error from before the run was cut, with the phase and type that were recorded.

    `ours` names the error of this module that it was, or that its type descends from.
    """

    def __init__(self, error: str, error_type: str, phase: Phase, ours: str = "") -> None:
        super().__init__(error)
        self.error_type = error_type
        self.ours = ours or error_type
        self.phase = phase  # pyright: ignore[reportAttributeAccessIssue]


class InDoubt(RunBroke):
    """A live tool was cut between its call and its return, so it is not known whether it acted."""


class LoopLimit(RunBroke):
    """A loop or an agent took more rounds than it is allowed."""

    phase: ClassVar[Phase] = "agent"


class TimeUp(RunBroke):
    """A live turn took longer than it was allowed to."""

    phase = "agent"


class MetricsHung(RunBroke):
    """The metrics of a case did not finish."""

    phase: ClassVar[Phase] = "metric"


class MiddlewareFailed(RunBroke):
    """Middleware raised in one of its hooks, or answered with what cannot be used."""


class OverBudget(RunBroke):
    """A trial has used the tokens or the money that middleware allows it."""


class SecretsLost(RunBroke):
    """A stored run can no longer be measured: secrets were removed when it was saved."""

    phase: ClassVar[Phase] = "metric"


class WorkerDied(RunBroke):
    """A worker process died or never started; the message names its signal or exit code."""


class UserAgentFailed(RunBroke):
    """The simulated user was missing, raised, hung, or gave an unusable answer."""

    phase: ClassVar[Phase] = "user_agent"
