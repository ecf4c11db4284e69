"""Everything that can happen in a run, one frozen type per kind of fact.

Each event knows where it happened (`path`, see `ledger.paths`), on whose side (`voice`), when
(`at`, seconds since the epoch) and its place in the ledger (`seq`); the ledger stamps the last two.
"""

from collections.abc import Mapping
from typing import ClassVar, Literal

from greenroom.errors import Phase
from greenroom.ledger.changes import Change
from greenroom.ledger.messages import ToolCall, Usage, Voice
from greenroom.ledger.plain import Json
from greenroom.ledger.records import record

Source = Literal["live", "mock", "cached", "replayed", "refused", "user"]
EndReason = Literal["completed", "finished", "state_matches", "max_turns", "max_seconds", "error"]
YieldType = Literal["message", "tool"]
Calls = Literal["models", "tools"]


@record(kw_only=True)
class Event:
    """A fact of a run."""

    VALUES: ClassVar[tuple[str, ...]] = ()
    """Fields that hold what others gave us, copied to plain JSON when the event is appended."""

    path: str = ""
    voice: Voice = "agent"
    at: float = 0.0
    seq: int = -1


@record(kw_only=True)
class RunStarted(Event):
    """The case's data, the agent's graph and the state it all begins with."""

    # `case` and `agent` are made of JSON by those who write them down, and copied nowhere else.
    VALUES: ClassVar[tuple[str, ...]] = ("state",)
    kind: ClassVar[Literal["run_started"]] = "run_started"
    run_id: str
    case: Json = None
    agent: Json = None
    digest: str = ""
    state: Json = None
    opaque: tuple[Calls, ...] = ()
    """Which calls of the agent nobody could see: they are missing here, though they may be made."""
    observed: tuple[Calls, ...] = ()
    """Which calls were seen if they passed a seam: if none was, there may be some nobody saw."""


@record(kw_only=True)
class RunResumed(Event):
    """The run goes on from its ledger; the time since the last event does not count."""

    kind: ClassVar[Literal["run_resumed"]] = "run_resumed"


@record(kw_only=True)
class RunEnded(Event):
    """Why the run is over, and the error if it broke."""

    kind: ClassVar[Literal["run_ended"]] = "run_ended"
    reason: EndReason
    phase: Phase | None = None
    error: str = ""
    error_type: str = ""


@record(kw_only=True)
class UserSaid(Event):
    """The user addressed the agent, perhaps with changes of state that came along."""

    kind: ClassVar[Literal["user_said"]] = "user_said"
    text: str
    changes: tuple[Change, ...] = ()


@record(kw_only=True)
class AgentSaid(Event):
    """The agent's words reached the user."""

    kind: ClassVar[Literal["agent_said"]] = "agent_said"
    text: str


@record(kw_only=True)
class InvocationStarted(Event):
    """The agent was set going with this input."""

    VALUES: ClassVar[tuple[str, ...]] = ("input",)
    kind: ClassVar[Literal["invocation_started"]] = "invocation_started"
    input: Json = None


@record(kw_only=True)
class InvocationEnded(Event):
    """The agent stopped: it may be addressed again, has finished, or failed."""

    VALUES: ClassVar[tuple[str, ...]] = ("output",)
    kind: ClassVar[Literal["invocation_ended"]] = "invocation_ended"
    outcome: Literal["turn_over", "finished", "failed"]
    output: Json = None
    error: str = ""
    error_type: str = ""
    phase: Phase | None = None


@record(kw_only=True)
class NodeStarted(Event):
    """A node of the agent's graph began with this input."""

    VALUES: ClassVar[tuple[str, ...]] = ("input",)
    kind: ClassVar[Literal["node_started"]] = "node_started"
    node: str
    input: Json = None


@record(kw_only=True)
class NodeEnded(Event):
    """A node ended with this output and these changes of state."""

    VALUES: ClassVar[tuple[str, ...]] = ("output",)
    kind: ClassVar[Literal["node_ended"]] = "node_ended"
    node: str
    output: Json = None
    changes: tuple[Change, ...] = ()
    asks: tuple[Change, ...] = ()


@record(kw_only=True)
class NodeFailed(Event):
    """An attempt at a node failed."""

    kind: ClassVar[Literal["node_failed"]] = "node_failed"
    node: str
    attempt: int
    error: str
    error_type: str = ""


@record(kw_only=True)
class BranchCancelled(Event):
    """A parallel branch was stopped because a sibling failed."""

    kind: ClassVar[Literal["branch_cancelled"]] = "branch_cancelled"


@record(kw_only=True)
class Decided(Event):
    """A route or a loop chose; the choice is never asked for again."""

    kind: ClassVar[Literal["decided"]] = "decided"
    choice: str


@record(kw_only=True)
class ModelCalled(Event):
    """A model was asked for the n-th time by this node."""

    kind: ClassVar[Literal["model_called"]] = "model_called"
    node: str = ""
    agent: str = ""
    model: str = ""
    n: int = 0
    messages: int = 0
    tools: tuple[str, ...] = ()
    digest: str = ""
    """Of the whole question, where somebody may want to find its answer again."""


@record(kw_only=True)
class ModelReplied(Event):
    """A model answered, with what it used and, if a price is known, what it cost in USD."""

    kind: ClassVar[Literal["model_replied"]] = "model_replied"
    node: str = ""
    agent: str = ""
    model: str = ""
    n: int = 0
    text: str = ""
    calls: tuple[ToolCall, ...] = ()
    usage: Usage | None = None
    cost: float | None = None
    prices: str = ""
    seconds: float = 0.0
    source: Source = "live"


@record(kw_only=True)
class ModelFailed(Event):
    """A model could not be asked, or did not answer."""

    kind: ClassVar[Literal["model_failed"]] = "model_failed"
    error: str
    node: str = ""
    agent: str = ""
    model: str = ""
    n: int = 0
    error_type: str = ""


@record(kw_only=True)
class Corrected(Event):
    """The agent's reply was refused by its output schema; it was told why and asked again."""

    kind: ClassVar[Literal["corrected"]] = "corrected"
    text: str


@record(kw_only=True)
class ToolCalled(Event):
    """A tool was called, for the n-th time in this run."""

    VALUES: ClassVar[tuple[str, ...]] = ("args",)
    kind: ClassVar[Literal["tool_called"]] = "tool_called"
    call_id: str
    tool: str
    args: Mapping[str, Json]
    n: int = 0


@record(kw_only=True)
class ToolReturned(Event):
    """A tool call ended with a value; `source` says who gave it."""

    VALUES: ClassVar[tuple[str, ...]] = ("value",)
    kind: ClassVar[Literal["tool_returned"]] = "tool_returned"
    call_id: str
    tool: str
    source: Source
    value: Json = None
    changes: tuple[Change, ...] = ()
    settled: tuple[Change, ...] = ()
    """What stands, in the order of the calls, where a later call ended first and changed it too."""
    asks: tuple[Change, ...] = ()
    seconds: float = 0.0


@record(kw_only=True)
class ToolFailed(Event):
    """A tool call ended with an error that the agent gets to see."""

    kind: ClassVar[Literal["tool_failed"]] = "tool_failed"
    call_id: str
    tool: str
    error: str
    source: Source
    error_type: str = ""
    seconds: float = 0.0


@record(kw_only=True)
class ToolBlocked(Event):
    """The gate refused a tool call; the agent never sees this."""

    VALUES: ClassVar[tuple[str, ...]] = ("args",)
    kind: ClassVar[Literal["tool_blocked"]] = "tool_blocked"
    tool: str
    args: Mapping[str, Json]
    why: str
    call_id: str = ""


@record(kw_only=True)
class YieldOpened(Event):
    """The agent waits for its user: a message, or the answer to a tool call."""

    VALUES: ClassVar[tuple[str, ...]] = ("args",)
    kind: ClassVar[Literal["yield_opened"]] = "yield_opened"
    yield_id: str
    type: YieldType
    tool: str = ""
    call_id: str = ""
    args: Json = None
    prompt: str = ""


@record(kw_only=True)
class Answer:
    """One yield's answer."""

    yield_id: str
    value: Json = None
    tool: str = ""


@record(kw_only=True)
class Answered(Event):
    """One round of the user's answers with all the state changes they ask for."""

    VALUES: ClassVar[tuple[str, ...]] = ()
    kind: ClassVar[Literal["answered"]] = "answered"
    answers: tuple[Answer, ...]
    changes: tuple[Change, ...] = ()


@record(kw_only=True)
class StateChanged(Event):
    """State changed outside a tool, step or answer (a framework's own state delta)."""

    kind: ClassVar[Literal["state_changed"]] = "state_changed"
    changes: tuple[Change, ...]


@record(kw_only=True)
class StateConflicted(Event):
    """Several writers of one round, or calls of one reply, changed one leaf; the last one won."""

    VALUES: ClassVar[tuple[str, ...]] = ("values",)
    kind: ClassVar[Literal["state_conflicted"]] = "state_conflicted"
    scope: str
    key: str
    values: Json


@record(kw_only=True)
class Noted(Event):
    """A named fact of somebody's own, or a warning that belongs to the run."""

    VALUES: ClassVar[tuple[str, ...]] = ("data",)
    kind: ClassVar[Literal["noted"]] = "noted"
    name: str
    data: Json = None


@record(kw_only=True)
class Remembered(Event):
    """What a framework keeps for itself, written down so that its run can be continued."""

    VALUES: ClassVar[tuple[str, ...]] = ("data",)
    kind: ClassVar[Literal["remembered"]] = "remembered"
    name: str
    data: Json = None


AnyEvent = (
    RunStarted
    | RunResumed
    | RunEnded
    | UserSaid
    | AgentSaid
    | InvocationStarted
    | InvocationEnded
    | NodeStarted
    | NodeEnded
    | NodeFailed
    | BranchCancelled
    | Decided
    | ModelCalled
    | ModelReplied
    | ModelFailed
    | Corrected
    | ToolCalled
    | ToolReturned
    | ToolFailed
    | ToolBlocked
    | YieldOpened
    | Answered
    | StateChanged
    | StateConflicted
    | Noted
    | Remembered
)
