"""A trial as a conversation, line by line."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from greenroom.ledger.attachments import Attachment, attachments_in, named, text_and_attachments
from greenroom.ledger.events import (
    AgentSaid,
    Answered,
    EndReason,
    Event,
    RunEnded,
    ToolBlocked,
    ToolCalled,
    ToolFailed,
    ToolReturned,
    UserSaid,
)
from greenroom.ledger.index import VoiceIndex
from greenroom.ledger.ledger import Ledger
from greenroom.ledger.plain import Json, is_object
from greenroom.ledger.trajectory import Step
from greenroom.reports.words import as_called, as_json
from greenroom.results.result import CaseResult
from greenroom.results.words import shortened

ENDS: dict[EndReason, str] = {
    "completed": "the user had nothing more to say",
    "finished": "the agent ended the conversation",
    "state_matches": "the state that the case waits for was reached",
    "max_turns": "the turn limit was reached",
    "max_seconds": "the time limit was reached",
    "error": "the trial broke",
}

LONGEST = 240
"""How many characters of a line are usually shown."""

Who = Literal["user", "agent", "tool", "user's tool", "refused", "end"]


@dataclass(frozen=True, slots=True)
class Line:
    """Who speaks or acts, the result, and the source of an answer."""

    who: Who
    text: str
    source: str = ""


@dataclass(frozen=True, slots=True)
class Omitted:
    """Lines that are not shown here."""

    count: int

    def __str__(self) -> str:
        return f"… {self.count} more"


def transcript(ledger: Ledger) -> list[Line]:
    """What was said and done on both sides, oldest first."""
    return [line for event in ledger for line in _lines(event, ledger.index_of(event.voice))]


def conversation(result: CaseResult) -> list[Line]:
    """A result's trial as a conversation, from its ledger or from the steps that were kept without one."""
    if (ledger := result.ledger_or_none) is not None:
        return transcript(ledger)
    return [line for step in result.trajectory for line in _kept(step)]


def _kept(step: Step) -> Iterator[Line]:
    if step.type == "message":
        files = attachments_in(step.details)
        text = _with_files(_said(step.args), files)
        yield Line("user" if step.name == "user" else "agent", text)
    elif step.type == "tool":
        yield Line("tool", as_called(step.name, step.args if is_object(step.args) else {}))


def abridged(
    lines: Sequence[Line],
    *,
    whole: bool = False,
    first: int = 6,
    last: int = 18,
    longest: int = LONGEST,
) -> Iterator[Line | Omitted]:
    """The lines; unless `whole`, long conversations are shortened in the middle and long lines at their end."""
    left_out = len(lines) - first - last
    for number, line in enumerate(lines):
        if whole:
            yield line
        elif left_out < 2 or number < first or number >= len(lines) - last:
            yield replace(line, text=shortened(line.text, longest))
        elif number == first:
            yield Omitted(left_out)


def retold(lines: Sequence[Line], *, hint: str = "", **cut: Any) -> Iterator[str]:
    """`abridged` as plain text; `hint` says how to see what was left out."""
    for line in abridged(lines, **cut):
        if isinstance(line, Omitted):
            yield f"{line}{hint}"
            continue
        source = f"  ({line.source})" if line.source else ""
        # Only the speaker is at the beginning of a line, so continuation lines are indented.
        text = line.text.replace("\n", f"\n{' ' * 13}")
        yield f"{line.who:<11}  {text}{source}"


def _lines(event: Event, index: VoiceIndex) -> Iterator[Line]:
    match event:
        case UserSaid():
            yield Line("user", _with_files(event.text, event.attachments))
        case AgentSaid() if event.voice == "agent":
            yield Line("agent", _with_files(event.text, event.attachments))
        case Answered():
            yield from _answers(event)
        case ToolCalled() if event.voice == "agent" and index.is_waiting(event):
            yield Line("tool", as_called(event.tool, event.args), "asks the user")
        case ToolCalled():
            yield _call(event, index.end_of(event))
        case ToolBlocked():
            yield Line("refused", f"{as_called(event.tool, event.args)} was not run", "gate")
        case RunEnded():
            yield Line("end", ENDS[event.reason])
        case _:
            return


def _call(called: ToolCalled, end: ToolReturned | ToolFailed | None) -> Line:
    shown = as_called(called.tool, called.args)
    # The source of an answer matters only for the agent's tools.
    ours = called.voice == "agent"
    who: Who = "tool" if ours else "user's tool"
    match end:
        case None:
            return Line(who, f"{shown} → never returned")
        case ToolReturned():
            return Line(who, f"{shown} → {as_json(named(end.value))}", end.source if ours else "")
        case ToolFailed():
            refused: Who = "refused" if end.source == "refused" else who
            return Line(refused, f"{shown} → failed: {end.error}", end.source)


def _answers(event: Answered) -> Iterator[Line]:
    """The lines of an answer; if several questions are answered at once, each names its question."""
    several = len(event.answers) > 1
    for answer in event.answers:
        yield Line("user", _said(answer.value), f"answers {answer.tool}" if several else "")


def _said(value: Json) -> str:
    if isinstance(value, str):
        return value
    text, files = text_and_attachments(value)
    return _with_files(text, files) if files else as_json(value)


def _with_files(text: str, files: Sequence[Attachment]) -> str:
    """What was said, and below it the name, type and size of what was attached."""
    return "\n".join([*([text] if text or not files else []), *(f"[{file}]" for file in files)])
