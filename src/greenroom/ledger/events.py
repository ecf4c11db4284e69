"""Everything that can happen in a trial, one frozen type per kind of fact.

Each event knows where it happened (`path`, see `ledger.paths`), on whose side (`voice`), when
(`at`, seconds since the epoch) and its place in the ledger (`seq`); the ledger stamps the last two.
"""

import re
from collections.abc import Mapping
from typing import Any, ClassVar, Final, Literal

from msgspec import Struct

from greenroom.errors import Phase
from greenroom.ledger.attachments import Attachment, message_value, text_and_attachments
from greenroom.ledger.changes import Change, Changes
from greenroom.ledger.messages import Message, ToolCall, Usage, Voice
from greenroom.ledger.plain import Json

Source = Literal["live", "mock", "cached", "replayed", "refused", "user", "middleware", "simulated"]
"""Who answered a call."""
EndReason = Literal["completed", "finished", "state_matches", "max_turns", "max_seconds", "error"]
"""Why a trial ended."""
LIMITS: Final[tuple[EndReason, ...]] = ("max_turns", "max_seconds")
"""The ends at a limit: the conversation would have continued."""
CUT_SHORT: Final[tuple[EndReason, ...]] = (*LIMITS, "error")
"""The ends that neither side of the conversation chose."""
YieldType = Literal["message", "tool"]
Unseen = Literal["models", "tools", "args", "results", "words", "user", "state", "nodes", "times"]
"""What a record may lack, although it happened.

The calls of models and of tools; what tools were given and what they returned; what the agent and what
the user said; the state; which parts of the agent were active; and when anything happened.
"""


def _kind(name: str) -> str:
    """`RunStarted` is written as `run_started`."""
    return re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower()


# Events hold plain JSON without cycles, so the garbage collector need not look at them.
class Event(
    Struct,
    frozen=True,
    kw_only=True,
    omit_defaults=True,
    tag_field="kind",
    tag=_kind,
    gc=False,
):
    """A fact of a trial."""

    VALUES: ClassVar[tuple[str, ...]] = ()
    """Fields with values from outside, copied to plain JSON when the event is appended."""

    path: str = ""
    voice: Voice = "agent"
    at: float = 0.0
    seq: int = -1

    @property
    def kind(self) -> str:
        """The name of the kind in files: `run_started` for `RunStarted`."""
        return str(self.__struct_config__.tag)


class RunStarted(Event, frozen=True, kw_only=True):
    """A trial began: the case's data, the agent's graph and the initial state."""

    # `case` and `agent` are already plain JSON when they are written, so they are not copied again.
    VALUES: ClassVar[tuple[str, ...]] = ("state",)
    run_id: str
    case: Json = None
    agent: Json = None
    digest: str = ""
    state: Json = None
    opaque: tuple[Unseen, ...] = ()
    """What could not be observed: it is missing here, but may have happened."""
    observed: tuple[Unseen, ...] = ()
    """Calls that are seen when they pass a seam: if none was seen, some may have gone unseen."""
    trial: int = 1
    """The number of this trial of its case."""
    recorded_at: float | None = None
    """For a replay: when the trial whose answers it repeats was recorded."""


class RunResumed(Event, frozen=True, kw_only=True):
    """The trial continues from its ledger; the time since the last event does not count."""


class Forked(Event, frozen=True, kw_only=True):
    """A fork begins here: the events before it are copied from another trial, the rest are new.

    `changed` says in words what is different: the agent, a mock, an answer.
    """

    from_run: str
    from_seq: int
    changed: tuple[str, ...] = ()
    digest: str = ""
    """The digest of the agent that continues."""


class RunEnded(Event, frozen=True, kw_only=True):
    """The trial ended: why, and the error if it broke."""

    reason: EndReason
    phase: Phase | None = None
    error: str = ""
    error_type: str = ""


class UserSaid(Event, frozen=True, kw_only=True):
    """The user addressed the agent, perhaps with state changes."""

    text: str
    changes: tuple[Change, ...] = ()
    attachments: tuple[Attachment, ...] = ()

    @property
    def value(self) -> Json:
        """The message as an agent receives it: the text, or a list of the text and the attachments."""
        return message_value(self.text, self.attachments)


class AgentSaid(Event, frozen=True, kw_only=True):
    """The agent's words reached the user."""

    text: str
    attachments: tuple[Attachment, ...] = ()


class InvocationStarted(Event, frozen=True, kw_only=True):
    """The agent was started with this input."""

    VALUES: ClassVar[tuple[str, ...]] = ("input",)
    input: Json = None


class InvocationEnded(Event, frozen=True, kw_only=True):
    """The agent stopped: it may be addressed again, has finished, or failed."""

    VALUES: ClassVar[tuple[str, ...]] = ("output",)
    outcome: Literal["turn_over", "finished", "failed"]
    output: Json = None
    error: str = ""
    error_type: str = ""
    phase: Phase | None = None


class NodeStarted(Event, frozen=True, kw_only=True):
    """A node of the agent's graph began with this input."""

    VALUES: ClassVar[tuple[str, ...]] = ("input", "items")
    node: str
    input: Json = None
    items: Json = None
    """The list that a map read from the state: it is read once."""


class NodeEnded(Event, frozen=True, kw_only=True):
    """A node ended with this output and these state changes."""

    VALUES: ClassVar[tuple[str, ...]] = ("output",)
    node: str
    output: Json = None
    changes: tuple[Change, ...] = ()
    asks: tuple[Change, ...] = ()


class NodeFailed(Event, frozen=True, kw_only=True):
    """An attempt at a node failed."""

    node: str
    attempt: int
    error: str
    error_type: str = ""
    ours: str | None = None
    """As in `ModelFailed`; set where a part's error is raised again unchanged."""


class BranchCancelled(Event, frozen=True, kw_only=True):
    """A part was stopped because it is no longer needed; nothing is recorded below it after this.

    Another branch failed, or won the race; or its time was up.
    """


class Decided(Event, frozen=True, kw_only=True):
    """A route or a loop chose, a race was won, or a failed part is followed by the next.

    Also whether an approval is asked for and given, and who has the conversation of a team. The
    choice is never asked for again.
    """

    choice: str
    why: str = ""
    """What failed, when it is followed by the next."""


class OfferedTool(Struct, frozen=True, omit_defaults=True, gc=False):
    """A tool as it was described to a model."""

    name: str
    description: str = ""
    parameters: Json = None
    """The JSON Schema of its arguments; for a Python function, `takes` has it instead."""
    takes: str = ""
    """The function's signature: "(order: int) -> str"."""


class Question(Struct, frozen=True, omit_defaults=True, gc=False):
    """What a model was asked: parts already in the ledger are references, the rest is written out.

    `ledger.interactions` reads it. A string in `messages` is a reference: `kept:0-4` the first four
    messages of the question before, `reply` the answer to that question, `said:2` the third message of
    the user, `result:ID` the end of the call with that id.
    """

    messages: tuple[Message | str, ...] = ()
    instructions: str = ""
    tools: tuple[OfferedTool, ...] = ()
    output_schema: Json = None
    after: int | None = None
    """The number of the previous question, at this path or at `after_path`."""
    after_path: str = ""
    same_setting: bool = False
    """Whether instructions, tools and output schema are those of the previous question."""


class ModelCalled(Event, frozen=True, kw_only=True):
    """A model was asked for the n-th time by this node."""

    node: str = ""
    agent: str = ""
    model: str = ""
    n: int = 0
    messages: int = 0
    tools: tuple[str, ...] = ()
    digest: str = ""
    """The fingerprint of the whole question, under which its answer may be cached."""
    question: Question | None = None
    """What was asked; None if that is not kept."""


class ModelReplied(Event, frozen=True, kw_only=True):
    """A model answered, with what it used and, if a price is known, what it cost in USD."""

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
    first: float | None = None
    """Seconds until the first words; None if the reply was not streamed."""
    source: Source = "live"
    attachments: tuple[Attachment, ...] = ()
    partial: bool = False
    """Whether the reply is incomplete: its provider stopped it at a limit, or it was interrupted."""
    in_place_of: Source | None = None
    """Who had answered, if `source` replaced that answer with its own."""

    @property
    def message(self) -> Message:
        """What the model sees of its own reply."""
        return Message("assistant", self.text, self.calls, attachments=self.attachments)

    @property
    def is_live(self) -> bool:
        """Whether the real model answered, even if its reply was replaced."""
        return self.source == "live" or (self.source != "replayed" and self.in_place_of == "live")

    @property
    def paid(self) -> float | None:
        """The cost in this run: a recorded or cached answer was paid for earlier."""
        return 0.0 if self.source == "replayed" else self.cost


class ModelFailed(Event, frozen=True, kw_only=True):
    """A model could not be asked, or did not answer."""

    error: str
    node: str = ""
    agent: str = ""
    model: str = ""
    n: int = 0
    error_type: str = ""
    ours: str | None = None
    """The Greenroom error that it was or descends from, "" if none; older ledgers do not say."""


class Corrected(Event, frozen=True, kw_only=True):
    """The agent's reply was refused by its output schema; it was given the reason and asked again."""

    text: str


class ToolCalled(Event, frozen=True, kw_only=True):
    """A tool was called, for the n-th time in this trial."""

    VALUES: ClassVar[tuple[str, ...]] = ("args",)
    call_id: str
    tool: str
    args: Mapping[str, Json]
    n: int = 0
    ends: bool = False
    """Whether what it returns is the agent's answer, so that the agent is not asked again."""


class ToolReturned(Event, frozen=True, kw_only=True):
    """A tool call ended with a value; `source` says who gave it."""

    VALUES: ClassVar[tuple[str, ...]] = ("value",)
    call_id: str
    tool: str
    source: Source
    value: Json = None
    changes: tuple[Change, ...] = ()
    settled: tuple[Change, ...] = ()
    """The values that hold in the order of the calls, where a later call ended first and changed them too."""
    asks: tuple[Change, ...] = ()
    seconds: float = 0.0
    in_place_of: Source | None = None
    """Who had answered or failed, if `source` replaced that with its own answer."""

    @property
    def message(self) -> Message:
        """What the model sees of the answer."""
        text, attached = text_and_attachments(self.value)
        return Message("tool", text, (), self.call_id, self.tool, attached)

    @property
    def is_live(self) -> bool:
        """Whether the real tool ran, even if its result was replaced."""
        return self.source == "live" or (self.source != "replayed" and self.in_place_of == "live")


class ToolFailed(Event, frozen=True, kw_only=True):
    """A tool call ended with an error that the agent gets to see."""

    call_id: str
    tool: str
    error: str
    source: Source
    error_type: str = ""
    seconds: float = 0.0
    changes: Changes = ()
    """What was done nevertheless: only the answer was lost."""

    @property
    def message(self) -> Message:
        """What the model sees of the failure."""
        return Message("tool", f"Error: {self.error}", (), self.call_id, self.tool)

    @property
    def is_live(self) -> bool:
        """Whether the real tool ran."""
        return self.source == "live"


class ToolBlocked(Event, frozen=True, kw_only=True):
    """The gate refused a tool call; the agent never sees this."""

    VALUES: ClassVar[tuple[str, ...]] = ("args",)
    tool: str
    args: Mapping[str, Json]
    why: str
    call_id: str = ""


class YieldOpened(Event, frozen=True, kw_only=True):
    """The agent waits for its user: a message, or the answer to a tool call."""

    VALUES: ClassVar[tuple[str, ...]] = ("args",)
    yield_id: str
    type: YieldType
    tool: str = ""
    call_id: str = ""
    args: Json = None
    prompt: str = ""


class Answer(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The answer to one yield."""

    yield_id: str
    value: Json = None
    tool: str = ""


class Answered(Event, frozen=True, kw_only=True):
    """One round of the user's answers with all the state changes they ask for."""

    VALUES: ClassVar[tuple[str, ...]] = ()
    answers: tuple[Answer, ...]
    changes: tuple[Change, ...] = ()


class StateChanged(Event, frozen=True, kw_only=True):
    """State changed outside a tool, step or answer (a framework's own state delta)."""

    changes: tuple[Change, ...]


class StateConflicted(Event, frozen=True, kw_only=True):
    """Several writers of one round, or calls of one reply, changed the same leaf; the last one won."""

    VALUES: ClassVar[tuple[str, ...]] = ("values",)
    scope: str
    key: str
    values: Json


class ArtifactSaved(Event, frozen=True, kw_only=True):
    """An agent saved a file with its framework; each saving under one name is a version."""

    name: str
    version: int = 0
    attachment: Attachment | None = None
    """None where the framework does not say what was saved."""


class Escalated(Event, frozen=True, kw_only=True):
    """An agent returned control to the part that contains it: google-adk ends the loop it is in."""

    node: str = ""


class Noted(Event, frozen=True, kw_only=True):
    """Your own named fact, or a warning that belongs to the trial."""

    VALUES: ClassVar[tuple[str, ...]] = ("data",)
    name: str
    data: Any = None


IMPORTED = "greenroom:imported"
"""The note that says where a ledger was read from, if it is of another tool."""

STOPPED = "greenroom:stopped"
"""The note that an agent was stopped on purpose: `{"by": "guardrail", "name": ..., "info": ...}`."""


class Remembered(Event, frozen=True, kw_only=True):
    """A framework's internal state, recorded so that a trial can be resumed."""

    VALUES: ClassVar[tuple[str, ...]] = ("data",)
    name: str
    data: Any = None


AnyEvent = (
    RunStarted
    | RunResumed
    | Forked
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
    | ArtifactSaved
    | Escalated
    | Noted
    | Remembered
)


def agent_words(path: str, output: Json) -> AgentSaid:
    """What the user hears of an agent's output: its text, and what is attached."""
    text, attached = text_and_attachments(output)
    return AgentSaid(path=path, text=text, attachments=attached)


def changes_by(event: Event) -> Changes:
    """All that an event does to the state, in order."""
    match event:
        case ToolReturned():
            return (*event.changes, *event.settled)
        case StateChanged() | NodeEnded() | UserSaid() | Answered() | ToolFailed():
            return event.changes
        case _:
            return ()
