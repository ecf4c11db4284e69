"""Every exception Greenroom raises; each says what, where, and what to do next.

GreenroomError
├── BadInput                    what the author wrote cannot be used (exit code 3)
│   ├── BadAgent                an agent expression, tool or step that cannot work
│   │   └── CannotCompile       a flow with parts that have no equivalent in google-adk
│   ├── BadAttachment           bytes that are missing, too large, or not of the declared type
│   ├── BadCase                 a case, turn, mock, stop condition or user that cannot be run
│   ├── BadFile                 a file that cannot be read as what it should be
│   ├── BadMetric               a metric whose parameters cannot be bound
│   ├── BadQuery                a state query with an unknown operator or scope
│   ├── BadTrace                a trace or log of another tool that cannot be read
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
│   ├── ReplayDrifted           an agent that, in a replay, asks for something that was not recorded
│   ├── FenceBreach             a connection, DNS lookup or process (the fence)
│   └── FenceNotHeld            the fence cannot be set up here, and running without it was not allowed
├── RunFaulted                  a stream of results is over, and what a rehearsal refuses was tried in no open case
├── StoreFailed                 the store of runs cannot be read or written
│   └── StoreRefused            it is a link, or of another user or program
└── RunBroke                    the trial could not continue
    ├── AgentFailed             the agent under test raised
    │   └── GuardrailTripped    one of the agent's own guardrails stopped it
    ├── ScriptExhausted         a scripted model was asked again after its last answer
    ├── ModelBroke              a model could not be asked, or gave no usable reply
    │   ├── KeyRefused          its API key is missing or was refused, with the variable to set
    │   ├── RequestRefused      its provider rejects this request (400, 404, 413, 422)
    │   ├── RateLimited         asked too often (429); `retry_after` says how long to wait
    │   ├── ModelUnreachable    the connection or the provider failed (500, 502, 503)
    │   ├── NoCandidate         a choice of models has none to ask: nothing fits, or its budget is spent
    │   ├── ModelTimedOut       no reply within the model's time limit
    │   ├── CircuitOpen         it failed too often, and is not asked for a while
    │   └── GarbledReply        a reply that cannot be read or is impossible: broken JSON, -5 tokens
    ├── MockBroke               a mock raised, ran out of answers, or has none for these arguments
    ├── FailedBefore            an error from before the trial was interrupted, under its original name
    ├── InDoubt                 a live tool was interrupted between its call and its return
    ├── LoopLimit               a loop or an agent took more rounds than allowed
    ├── TimeUp                  a live turn took longer than allowed
    ├── MetricsHung             the metrics of a case did not finish
    ├── MiddlewareFailed        middleware raised, or gave an unusable answer
    ├── OverBudget              a trial has used what its budget allows
    ├── SecretsLost             a stored run lacks the secrets that its metrics need
    ├── WorkerDied              the process that ran a trial died, or never started
    └── UserAgentFailed         the simulated user was missing, raised, or gave an unusable answer
"""

from collections.abc import Sequence
from typing import Any, ClassVar, Literal

Phase = Literal["system", "agent", "user_agent", "metric"]


class GreenroomError(Exception):
    """Root of all errors raised by Greenroom.

    Catch it to catch everything that Greenroom itself raises; what your own code raises inside a run is
    recorded in that case's result instead.
    """

    phase: ClassVar[Phase] = "system"


class BadInput(GreenroomError):
    """What the author wrote cannot be used; the message says what to write instead.

    Nothing has run yet, or the rest of the run is not affected. Fix what the message names and start
    again; a command ends with exit code 3.
    """


class BadAgent(BadInput):
    """An agent expression, tool or step that cannot work.

    The message names the part of the expression. `greenroom agent check AGENT` lists everything that is
    wrong with an agent at once, before a model is asked.
    """


class CannotCompile(BadAgent):
    """A flow with parts that google-adk has no equivalent for; `parts` has each with its place and the reason.

    The message lists all of them at once, and for each what to write instead. What has no equivalent there
    can still be run by Greenroom: `perform(flow, ...)`.
    """

    def __init__(self, parts: Sequence[tuple[str, str]]) -> None:
        self.parts = tuple(parts)
        count = "1 part has" if len(self.parts) == 1 else f"{len(self.parts)} parts have"
        lines = [f"- {place}: {why}" for place, why in self.parts]
        super().__init__("\n".join([f"{count} no equivalent in google-adk:", *lines]))

    def __reduce__(self) -> tuple[type["CannotCompile"], tuple[Any, ...]]:
        return type(self), (self.parts,)


class BadAttachment(BadInput):
    """An attachment whose bytes are missing, too large, or not of the declared type.

    A path is relative to the file that names it and stays inside its folder. Put the file there, or
    correct its media type.
    """


class BadCase(BadInput):
    """A case, turn, mock, stop condition or user that cannot be run.

    The message names the case and the field. For a case in a file, `greenroom eval-set validate FILE`
    shows every problem with its line.
    """


class BadFile(BadInput):
    """A file that cannot be read as what it should be; `problems` lists what is wrong in it.

    `greenroom eval-set validate FILE` shows all problems of an eval set at once. For a config, the
    message names the line or the key, and the names that would be accepted.
    """

    def __init__(self, why: str, problems: Sequence[Any] = ()) -> None:
        super().__init__(why)
        self.problems = tuple(problems)


class BadMetric(BadInput):
    """A metric whose parameters or options cannot be bound.

    Check the metric's parameters against the signature in the message. Your own metric takes
    parameters by the names listed in docs/how-to/metrics.md. `option` is the one that it does not take.
    """

    def __init__(self, why: str, option: str = "") -> None:
        super().__init__(why)
        self.option = option


class BadQuery(BadInput):
    """A state query with an unknown operator, scope or shape.

    A place in the state is written `scope.key`; a bare `key` means `session.key`. The message lists the
    operators that exist.
    """


class BadTrace(BadInput):
    """A trace or log of another tool that cannot be read.

    The message names the file and the place in it. Export it again if it is incomplete; if the wrong format was
    detected, name the right one with --reader. `flaw` has the file, the place and the reason as separate fields.
    """

    def __init__(self, why: str, flaw: Any = None) -> None:
        super().__init__(why)
        self.flaw = flaw


class BadValue(BadInput):
    """A value that cannot enter a ledger, because it is not plain JSON.

    A ledger holds JSON only, so that it can be stored and read anywhere. Convert the value first: a date
    to an ISO string, bytes to an attachment or a string, an object to a dict; NaN and infinity are not allowed.
    """


class BadLedger(BadInput):
    """Events out of order, a truncated file, or the ledger of another agent.

    Continue a ledger with the agent that wrote it, and read files that a run or `ledger.save` has
    written to its end. A shortened file cannot be repaired; run the case again.
    """


class ImportFailed(BadFile):
    """A file, or a function in it that makes an agent or middleware, that raised before the first case ran.

    The message quotes what it raised, and the line. Correct it there, or install what it imports. At the
    command line, `-v` shows the whole traceback.
    """


class ImportRefused(BadInput):
    """A file that tried to connect, to start a process or to call a tool when it was imported.

    A rehearsal imports your file before anything is mocked, so importing it must have no effects. Move
    the connection, process or call into a function, or below `if __name__ == "__main__":`.
    """


class NotFound(BadInput):
    """A path, attribute, backend or agent that does not exist.

    The message shows where Greenroom looked and the nearest names that exist. A reference is
    `path/to/file.py:name`, relative to the current folder.
    """


class BadPlugin(BadInput):
    """A plug-in that fails to import, has the wrong type, or shares its name with another.

    Plug-ins are found by the entry points of installed packages: reinstall the package that the message
    names, or uninstall one of two that share a name.
    """


class MissingExtra(BadInput):
    """A package that is not installed; the message names the extra to install.

    Install the extra that the message names into the environment that runs Greenroom.
    """


class Refusal(GreenroomError):
    """A safety rule was broken. The case ends as an error, whatever happens next.

    The trial cannot pass, even if the agent catches the error. The message names what to write if the
    access was intended.
    """


class ToolRefused(Refusal):
    """A tool was called that has no mock and was not named as allowed.

    Give the tool a mock: `Case(mocks={"tool": …})`. If its body has no outside effects and may
    run for real, name it: `allow_tools=[…]`.
    """


class MetricRefused(Refusal):
    """A metric tried to act, not only to read.

    A metric reads a ledger. Move the effect out of it; a judge's model is asked through the judge, not
    by the metric's own connection.
    """

    phase: ClassVar[Phase] = "metric"


class HookRefused(Refusal):
    """A hook called a tool; hooks may only observe.

    Read what you need from the event that the hook was given, and act after the run.
    """


class ReplayDrifted(Refusal):
    """In a replay the agent asked for something that was not recorded; the message gives the first difference.

    Either the agent has changed on purpose (record the run again) or it depends on something that is
    not recorded: a clock, random numbers, the order of a set. `on_drift="live"` asks the model from there on.
    """


class FenceBreach(Refusal, PermissionError):
    """Code inside a rehearsal tried to connect, look up a host name or start a process.

    Mock the tool that does this, or allow it with the hosts it may reach:
    `allow_tools=[live(tool, hosts=[…])]`. The agent's models are let through automatically.
    """


class FenceNotHeld(Refusal):
    """The fence cannot be set up in this process, and running without it was not allowed.

    Often another event loop is the reason: use asyncio's own. `allow_unfenced=True` continues with the
    tool gate alone, and the report says so.
    """


class RunFaulted(GreenroomError):
    """Code of no open case tried what a rehearsal refuses, so the run cannot count as passed.

    A `stream` raises it after its last result; a report has the same in `report.faults`. `faults` has each.
    Find the code that the message names: wait for it inside its case, or keep it out of the process.
    """

    def __init__(self, faults: Sequence[str]) -> None:
        self.faults = tuple(faults)
        super().__init__("\n".join(self.faults))

    def __reduce__(self) -> tuple[type["RunFaulted"], tuple[Any, ...]]:
        return type(self), (self.faults,)


class StoreFailed(GreenroomError):
    """The store of runs cannot be read or written; nothing that was in it is lost.

    `report` holds the results up to the point where the run stopped.

    Check the free space and the permissions of the folder that the message names, then start the same
    command again: finished trials do not run again. `--store` chooses another place.
    """

    def __init__(self, why: str, report: Any = None) -> None:
        super().__init__(why)
        self.report = report


class StoreRefused(StoreFailed):
    """The store is a symbolic link, belongs to another user, or is the database of another program.

    Stored runs may hold what users said, so Greenroom writes to no folder that another user could have
    prepared; and it leaves a `runs.db` alone that it did not make. Remove the link, or choose your own folder
    with `--store`.
    """


class RunBroke(GreenroomError):
    """The trial could not continue.

    The other trials continue. This one counts as an error, never as a measured failure of the agent.
    """


class AgentFailed(RunBroke):
    """The agent under test raised.

    The message says where; `-v` shows the traceback. The trial counts as an error, not
    as a failure: what broke was not measured.
    """

    phase: ClassVar[Phase] = "agent"


class GuardrailTripped(AgentFailed):
    """One of the agent's own guardrails stopped it.

    If that is right, let the case expect it: `Expect(stopped_by="guardrail")`, or the guardrail's name.
    """


class ScriptExhausted(RunBroke):
    """A scripted model was asked again after its last answer.

    Add an answer to `Scripted(…)`, or find out why the agent asked again: the report shows the conversation
    so far.
    """

    phase: ClassVar[Phase] = "agent"


class ModelBroke(RunBroke):
    """A model could not be asked, or gave no usable reply.

    `again` is how many more times the same request is worth sending, `retry_after` how many seconds
    to wait before that, if the provider said so.

    Retries have been used up. `greenroom eval run … --resume --retry-errors` repeats only these trials.
    """

    phase: ClassVar[Phase] = "agent"

    def __init__(self, why: str, *, again: int = 0, retry_after: float | None = None) -> None:
        super().__init__(why)
        self.again = again
        self.retry_after = retry_after


class KeyRefused(ModelBroke):
    """A model's API key is missing or was refused; the message names the variable to set.

    Set the environment variable that the message names. Rehearsals without a key use a scripted model:
    `model=Scripted(…)`.
    """


class RequestRefused(ModelBroke):
    """A model's provider rejects this request, however often it is sent.

    The provider's own words are in the message: often a model name, a parameter the model does not
    take, or a conversation that is too long (`Agent(context=history(last=…))`).
    """


class RateLimited(ModelBroke):
    """A model was asked too often; `retry_after` is how many seconds to wait, if the provider said so.

    Lower `--max-concurrency`, or wait and continue with `--resume --retry-errors`: finished trials are kept.
    """


class ModelUnreachable(ModelBroke):
    """The connection to a model failed, or its provider reports an internal error.

    Check the network, a proxy and the base URL, then continue with `--resume --retry-errors`: finished trials
    are kept.
    """


class NoCandidate(ModelBroke):
    """A choice of models has none to ask: none fits the request, or its budget is spent.

    Add a candidate that fits every request, or raise the budget of `choose(…)`.
    """


class ModelTimedOut(ModelBroke):
    """A model gave no reply within its time limit.

    Raise the model's time limit, or continue later with `--resume --retry-errors`.
    """


class GarbledReply(ModelBroke):
    """A model's reply cannot be read, or says something impossible of its tokens or cost.

    The reply is shown in the message as far as it can be. If it happens often, ask for less structure or
    a stronger model; if your own model counts wrongly, mend its `ModelReply`.
    """


class CircuitOpen(ModelBroke):
    """A model failed too often in a row, and is not asked for a while.

    The message names the failure that opened the circuit. Fix that first; the model is then asked again
    automatically.
    """


class MockBroke(RunBroke):
    """A mock raised, ran out of answers, or has none for these arguments.

    The mock, not the agent, is at fault: give it answers for these arguments, or let it repeat the last
    one. If a model simulates the tool, describe its world more closely, or choose another model. To mock
    a failure that the agent should see, use `fault(…)`.
    """


class FailedBefore(RunBroke):
    """An error from before the trial was interrupted, with the phase and type that were recorded.

    `ours` names the class of this module that it was, or that its type descends from.

    The message and place are the original ones. Run the trial again to see whether it still fails.
    """

    def __init__(self, error: str, error_type: str, phase: Phase, ours: str = "") -> None:
        super().__init__(error)
        self.error_type = error_type
        self.ours = ours or error_type
        self.phase = phase  # pyright: ignore[reportAttributeAccessIssue]


class InDoubt(RunBroke):
    """A live tool was interrupted between its call and its return, so it is not known whether it acted.

    Check in the other system whether the call arrived. Greenroom never repeats it by itself; record the
    answer yourself, or start the trial over.
    """


class LoopLimit(RunBroke):
    """A loop or an agent took more rounds than allowed.

    If the work needs more rounds, raise `max_rounds` or the agent's `max_steps`; if not, the
    report's timeline shows what was repeated.
    """

    phase: ClassVar[Phase] = "agent"


class TimeUp(RunBroke):
    """A live turn took longer than allowed.

    Raise `seconds` of `perform`, or find the slow step in the conversation's timeline.
    """

    phase = "agent"


class MetricsHung(RunBroke):
    """The metrics of a case did not finish.

    Raise `seconds_per_metric`, or fix the metric: a metric that waits forever is a broken measurement,
    so the case has no verdict.
    """

    phase: ClassVar[Phase] = "metric"


class MiddlewareFailed(RunBroke):
    """Middleware raised in one of its hooks, or gave an unusable answer.

    The message names the middleware and the hook. `greenroom.testing.MiddlewareContract` tests yours
    before it wraps a run.
    """


class OverBudget(RunBroke):
    """A trial has used the tokens or the money that middleware allows it.

    Raise the budget of the middleware, or find what used it: reports show spending for each node.
    """


class SecretsLost(RunBroke):
    """A stored run can no longer be measured: secrets were removed when it was saved.

    Measure during the run, or run the case again: what was redacted cannot be recovered.
    """

    phase: ClassVar[Phase] = "metric"


class WorkerDied(RunBroke):
    """A worker process died or never started; the message names its signal or exit code.

    Signal 9 often means that memory ran out: use fewer workers. Finished trials are kept; continue with
    `--resume`.
    """


class UserAgentFailed(RunBroke):
    """The simulated user was missing, raised, hung, or gave an unusable answer.

    Give the case a user who can answer: `user=Lines(…)`, a `SimulatedUser`, or `UserAgents` with an
    answer for each tool that asks.
    """

    phase: ClassVar[Phase] = "user_agent"
