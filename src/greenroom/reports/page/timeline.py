"""A trial as the rows of a timeline: who did what, when, for how long, and what it changed.

A row is a JSON object with the keys that apply to it:

    kind     user, agent, tool, model, node, pause, answer, decision, state, note, refused, error, end
    who      the tool, model, node or person
    text     what was said, or what went wrong
    at, s    seconds since the run began, and how long it took
    source   who answered: live, mock, cached, replayed, refused, user
    value    what it was called with, value and result under their names
    changes  leaves of the state: place, what it was, what it became
    files    what was attached: name, type and size, and small pictures themselves
    bad      true where something failed
    theirs   true on the simulated user's own side
    seq      the number of the event in the ledger
    path     where in the agent's graph it happened
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import pairwise
from typing import Any

from greenroom.ledger import questions
from greenroom.ledger.attachments import Attachment, attachments_in, named
from greenroom.ledger.changes import Change
from greenroom.ledger.events import (
    AgentSaid,
    Answered,
    ArtifactSaved,
    BranchCancelled,
    Corrected,
    Decided,
    Escalated,
    Event,
    Forked,
    ModelFailed,
    ModelReplied,
    NodeFailed,
    NodeStarted,
    Noted,
    RunEnded,
    RunResumed,
    StateChanged,
    StateConflicted,
    ToolBlocked,
    ToolCalled,
    ToolFailed,
    ToolReturned,
    UserSaid,
    YieldOpened,
)
from greenroom.ledger.ledger import Ledger
from greenroom.ledger.trajectory import Step
from greenroom.reports.page.short_values import Trimmer, shown_file
from greenroom.reports.transcript import ENDS
from greenroom.reports.words import duration

Row = dict[str, Any]
_FIRST, _LAST = 150, 350


def timeline(ledger: Ledger, trimmer: Trimmer) -> list[Row]:
    """The rows of a trial, oldest first; of a very long one only its beginning and its end."""
    if not len(ledger):
        return []
    renderer = _EventRenderer(ledger, trimmer)
    shown = [event for event in ledger if type(event) in ROWS]
    left_out = len(shown) - _FIRST - _LAST
    if left_out < 2:
        return [row for event in shown for row in renderer.rows(event)]
    trimmer.cuts += 1
    gap: Row = {"kind": "gap", "text": f"{left_out} events are not shown here"}
    parts = (shown[:_FIRST], shown[-_LAST:])
    before, after = ([row for event in part for row in renderer.rows(event)] for part in parts)
    return [*before, gap, *after]


def step_rows(steps: Iterable[Step], trimmer: Trimmer) -> list[Row]:
    """The rows of a trial of which only the trajectory was kept."""
    kept = list(steps)
    begin = min((step.at for step in kept), default=0.0)
    shown = kept[: _FIRST + _LAST]
    rows = [_lasting({**_step(s, trimmer), "at": round(s.at - begin, 4)}, s.seconds) for s in shown]
    if left_out := len(kept) - len(shown):
        trimmer.cuts += 1
        rows.append({"kind": "gap", "text": f"{left_out} steps are not shown here"})
    return rows


def _step(step: Step, trimmer: Trimmer) -> Row:
    match step.type:
        case "message":
            kind = "user" if step.name == "user" else "agent"
            shown = [shown_file(one, trimmer) for one in attachments_in(step.details)]
            row = {"kind": kind, "text": trimmer.text(str(step.args))}
            return {**row, "files": shown} if shown else row
        case "conditional":
            return {"kind": "decision", "who": step.name, "text": trimmer.text(str(step.args))}
        case "tool":
            return {"kind": "tool", "who": step.name, "value": {"args": trimmer.json(step.args)}}
        case "node":
            return {"kind": "node", "who": step.name}
        case "custom":
            data = trimmer.json(step.args)
            return {"kind": "note", "who": step.name, "value": {"data": data}}


def _clock(ledger: Ledger) -> list[float]:
    """For each event the seconds the run had taken by then; time between an interruption and its resumption does not count."""
    found = [0.0]
    for before, event in pairwise(ledger):
        worked = 0.0 if isinstance(event, RunResumed) else max(event.at - before.at, 0.0)
        found.append(found[-1] + worked)
    return found


class _EventRenderer:
    """Renders the events of one ledger, each together with related events."""

    def __init__(self, ledger: Ledger, trimmer: Trimmer) -> None:
        self.trimmer = trimmer
        self.clock = _clock(ledger)
        self.indexes = {voice: ledger.index_of(voice) for voice in ledger.voices}
        self.leaves: dict[int, list[questions.StateStep]] = {}
        for voice in ledger.voices:
            for leaf in questions.state_changes(ledger, voice):
                self.leaves.setdefault(leaf.seq, []).append(leaf)

    def rows(self, event: Event) -> Iterator[Row]:
        for row in ROWS[type(event)](self, event):
            row["at"] = round(max(self.clock[event.seq] - row.pop("ago", 0.0), 0.0), 4)
            row["seq"] = event.seq
            if event.path:
                row["path"] = event.path
            if event.voice == "user":
                row["theirs"] = True
            yield row

    # What was said

    def user_said(self, event: UserSaid) -> Iterator[Row]:
        row = {"kind": "user", "text": self.trimmer.text(event.text), **self.changed(event)}
        yield row | self.files(event.attachments)

    def agent_said(self, event: AgentSaid) -> Iterator[Row]:
        row = {"kind": "agent", "text": self.trimmer.text(event.text)}
        yield row | self.files(event.attachments)

    def files(self, attachments: Iterable[Attachment]) -> Row:
        shown = [shown_file(one, self.trimmer) for one in attachments]
        return {"files": shown} if shown else {}

    def corrected(self, event: Corrected) -> Iterator[Row]:
        text = self.trimmer.text(event.text)
        yield {"kind": "error", "who": "output refused", "text": text, "bad": True}

    # Tools and models

    def tool_called(self, event: ToolCalled) -> Iterator[Row]:
        index = self.indexes[event.voice]
        end, waits = index.end_of(event), index.is_waiting(event)
        row: Row = {"kind": "tool", "who": event.tool}
        row["value"] = {"args": self.trimmer.json(event.args)}
        match end:
            case ToolReturned() if waits:
                row |= {"text": "asks the user", **self.changed(end)}
            case ToolReturned():
                row["value"]["result"] = self.trimmer.json(named(end.value))
                row |= {"source": end.source, **self.changed(end)}
                row |= self.files(attachments_in(end.value))
            case ToolFailed():
                row |= {"source": end.source, "text": self.trimmer.text(end.error), "bad": True}
            case None if waits:
                row["text"] = "asks the user"
            case None:
                row |= {"text": "never returned", "bad": True}
        yield _lasting(row, 0.0 if end is None else end.seconds)

    def tool_blocked(self, event: ToolBlocked) -> Iterator[Row]:
        yield {
            "kind": "refused",
            "who": event.tool,
            "text": self.trimmer.text(event.why),
            "source": "refused",
            "value": {"args": self.trimmer.json(event.args)},
            "bad": True,
        }

    def model_replied(self, event: ModelReplied) -> Iterator[Row]:
        row: Row = {"kind": "model", "who": event.model, "source": event.source}
        wishes = ", ".join(call.tool for call in event.calls)
        row["text"] = f"calls {wishes}" if wishes else "answers"
        if event.first is not None:
            row["text"] += f", first words after {duration(event.first)}"
        if event.partial:
            row["text"] += ", and breaks off"
        if event.usage is not None and event.usage.total:
            row["tokens"] = [event.usage.input, event.usage.output]
        if event.cost is not None:
            row["cost"] = event.cost
        # The event is recorded when the reply arrives; the bar begins with the request.
        row["ago"] = event.seconds
        yield _lasting(row, event.seconds)

    def model_failed(self, event: ModelFailed) -> Iterator[Row]:
        yield {"kind": "model", "who": event.model, **self.failure(event.error, event.error_type)}

    # Pauses

    def yield_opened(self, event: YieldOpened) -> Iterator[Row]:
        what = f"{event.tool} waits for the user" if event.tool else "the agent waits for the user"
        row: Row = {"kind": "pause", "who": what, "text": self.trimmer.text(event.prompt)}
        yield row if event.prompt else {"kind": "pause", "who": what}

    def answered(self, event: Answered) -> Iterator[Row]:
        for number, answer in enumerate(event.answers):
            row: Row = {"kind": "user", "source": "user"}
            if answer.tool:
                row = {"kind": "answer", "who": f"answers {answer.tool}", "source": "user"}
            if isinstance(answer.value, str):
                row["text"] = self.trimmer.text(answer.value)
            else:
                row["value"] = {"answer": self.trimmer.json(named(answer.value))}
                row |= self.files(attachments_in(answer.value))
            yield row | (self.changed(event) if number == len(event.answers) - 1 else {})

    # Nodes, decisions and state

    def node_started(self, event: NodeStarted) -> Iterator[Row]:
        end = self.indexes[event.voice].ended.get(event.path)
        row: Row = {"kind": "node", "who": event.node}
        if end is not None:
            row |= self.changed(end)
        yield _lasting(row, 0.0 if end is None else end.at - event.at)

    def node_failed(self, event: NodeFailed) -> Iterator[Row]:
        who = f"{event.node}, attempt {event.attempt}"
        yield {"kind": "error", "who": who, **self.failure(event.error, event.error_type)}

    def cancelled(self, event: BranchCancelled) -> Iterator[Row]:
        yield {"kind": "note", "who": event.path, "text": "stopped: no longer needed"}

    def decided(self, event: Decided) -> Iterator[Row]:
        text = f"{event.choice}, after {event.why}" if event.why else event.choice
        yield {"kind": "decision", "who": event.path, "text": self.trimmer.text(text)}

    def state_changed(self, event: StateChanged) -> Iterator[Row]:
        yield {"kind": "state", **self.changed(event)}

    def conflicted(self, event: StateConflicted) -> Iterator[Row]:
        yield {
            "kind": "state",
            "who": f"{event.scope}.{event.key}",
            "text": "several branches wrote to it at once; the last one won",
            "value": {"values": self.trimmer.json(event.values)},
        }

    def changed(self, event: Event) -> Row:
        """What an event changed; in a parallel branch the previous value is unknown here."""
        known, cut = self.leaves.get(event.seq), self.trimmer.json
        if known is not None:
            shown = [[f"{c.scope}.{c.key}", cut(c.old), cut(c.new)] for c in known]
            return {"changes": shown}
        wished: tuple[Change, ...] = getattr(event, "changes", ())
        new = [[f"{c.scope}.{c.key}", None, cut(c.value)] for c in wished]
        return {"changes": new} if new else {}

    # The rest

    def artifact_saved(self, event: ArtifactSaved) -> Iterator[Row]:
        row: Row = {"kind": "note", "who": event.name, "text": f"saved as version {event.version}"}
        yield row | self.files([event.attachment] if event.attachment else [])

    def escalated(self, event: Escalated) -> Iterator[Row]:
        yield {"kind": "decision", "who": event.node, "text": "leaves the rest to its parent"}

    def noted(self, event: Noted) -> Iterator[Row]:
        yield {"kind": "note", "who": event.name, "value": {"data": self.trimmer.json(event.data)}}

    def resumed(self, _: RunResumed) -> Iterator[Row]:
        yield {"kind": "pause", "who": "the trial was interrupted here and resumed later"}

    def forked(self, event: Forked) -> Iterator[Row]:
        changed = f", with another {', '.join(event.changed)}" if event.changed else ""
        who = f"recorded up to here in {event.from_run}; run again from here{changed}"
        yield {"kind": "pause", "who": self.trimmer.text(who)}

    def run_ended(self, event: RunEnded) -> Iterator[Row]:
        if event.error:
            where = f"{event.phase}: {event.error_type}" if event.error_type else str(event.phase)
            yield {"kind": "error", "who": where, **self.failure(event.error, "")}
        yield {"kind": "end", "who": event.reason, "text": ENDS[event.reason]}

    def failure(self, error: str, kind: str) -> Row:
        words = f"{kind}: {error}" if kind else error
        return {"text": self.trimmer.text(words), "bad": True}


def _lasting(row: Row, seconds: float) -> Row:
    if seconds > 0:
        row["s"] = round(seconds, 4)
    return row


ROWS: Mapping[type[Event], Callable[[_EventRenderer, Any], Iterator[Row]]] = {
    UserSaid: _EventRenderer.user_said,
    AgentSaid: _EventRenderer.agent_said,
    Corrected: _EventRenderer.corrected,
    ToolCalled: _EventRenderer.tool_called,
    ToolBlocked: _EventRenderer.tool_blocked,
    ModelReplied: _EventRenderer.model_replied,
    ModelFailed: _EventRenderer.model_failed,
    YieldOpened: _EventRenderer.yield_opened,
    Answered: _EventRenderer.answered,
    NodeStarted: _EventRenderer.node_started,
    NodeFailed: _EventRenderer.node_failed,
    BranchCancelled: _EventRenderer.cancelled,
    Decided: _EventRenderer.decided,
    StateChanged: _EventRenderer.state_changed,
    StateConflicted: _EventRenderer.conflicted,
    ArtifactSaved: _EventRenderer.artifact_saved,
    Escalated: _EventRenderer.escalated,
    Noted: _EventRenderer.noted,
    RunResumed: _EventRenderer.resumed,
    Forked: _EventRenderer.forked,
    RunEnded: _EventRenderer.run_ended,
}
