"""How each kind of event enters the index of its voice."""

from collections.abc import Callable
from typing import Any

from greenroom.ledger.changes import apply_changes, state_in
from greenroom.ledger.events import (
    AgentSaid,
    Answered,
    BranchCancelled,
    Corrected,
    Decided,
    Event,
    InvocationEnded,
    InvocationStarted,
    ModelCalled,
    ModelFailed,
    ModelReplied,
    NodeEnded,
    NodeFailed,
    NodeStarted,
    Noted,
    RunResumed,
    RunStarted,
    StateChanged,
    StateConflicted,
    ToolBlocked,
    ToolCalled,
    ToolFailed,
    ToolReturned,
    UserSaid,
    YieldOpened,
    changes_by,
)
from greenroom.ledger.index import End, VoiceIndex
from greenroom.ledger.paths import branch_of


def _add_run(index: VoiceIndex, event: RunStarted) -> None:
    if event.state:
        index.folds[""] = state_in(event.state)


def _add_resumption(index: VoiceIndex, event: RunResumed) -> None:
    index.resumed_at = event.seq


def _add_round(index: VoiceIndex, event: UserSaid | Answered) -> None:
    index.rounds.append(event)
    if isinstance(event, UserSaid):
        index.said.append(event)
    else:
        index.answers.update({answer.yield_id: answer for answer in event.answers})
    # The user's changes reach the whole trial: open branches see them too.
    if event.changes:
        index.change_everywhere(event.changes)
        index.changed_at = event.seq


def _add_response(index: VoiceIndex, event: AgentSaid) -> None:
    index.spoken[event.path] = event


def _add_invocation(index: VoiceIndex, event: InvocationStarted) -> None:
    index.invocations[event.path] = index.open_invocation = event


def _add_invocation_end(index: VoiceIndex, event: InvocationEnded) -> None:
    index.invocations_ended[event.path] = event
    for state in index.folds.values():
        if state.pop("temp", None):
            index.changed_at = event.seq
    if index.open_invocation is not None and index.open_invocation.path == event.path:
        index.open_invocation = None


def _add_node(index: VoiceIndex, event: NodeStarted) -> None:
    index.started[event.path] = event
    index.runs.setdefault(event.node, []).append(event)


def _add_node_end(index: VoiceIndex, event: NodeEnded) -> None:
    index.ended[event.path] = event
    _add_changes(index, event)
    if event.path.endswith("/par"):
        _forget_branches(index, event.path)


def _add_node_failure(index: VoiceIndex, event: NodeFailed) -> None:
    index.failed[event.path] = event
    if event.path.endswith("/par"):
        _forget_branches(index, event.path)


def _add_cancellation(index: VoiceIndex, event: BranchCancelled) -> None:
    index.cancelled.add(event.path)
    index.closed.add(event.path.rpartition("/")[0])


def _add_decision(index: VoiceIndex, event: Decided) -> None:
    index.decided[event.path] = event.choice
    if event.choice == "next" and event.path.rpartition("/")[2].startswith("try."):
        index.given_up[event.path] = event.seq


def _add_question(index: VoiceIndex, event: ModelCalled) -> None:
    index.questions.setdefault(event.path, event)


def _add_model_answer(index: VoiceIndex, event: ModelReplied | ModelFailed) -> None:
    if isinstance(event, ModelReplied):
        index.replied.append(event)
        for call in event.calls:
            index.wanted_ids.add(call.id)
    # A failure is an answer too: a script that fails once continues with its next line.
    index.replies[event.path] = index.replies.get(event.path, 0) + 1
    index.steps.setdefault(event.path, []).append(event)


def _add_correction(index: VoiceIndex, event: Corrected) -> None:
    index.steps.setdefault(event.path, []).append(event)


def _add_call(index: VoiceIndex, event: ToolCalled) -> None:
    before = index.called.get(event.call_id)
    if before is not None:
        # A call issued again after an interruption keeps its number and its place.
        if index.is_same_call(before, event.tool, event.args):
            return
        first = (before, index.results.get(event.call_id))
        index.repeated.setdefault(event.call_id, [first]).append((event, None))
    index.called[event.call_id] = event
    index.issued.append(event)


def _add_blocked_call(index: VoiceIndex, event: ToolBlocked) -> None:
    index.blocked.append(event)


def _add_result(index: VoiceIndex, event: End) -> None:
    index.results[event.call_id] = event
    if event.call_id in index.repeated:
        # It ends the oldest open call with this id and tool; if none is open, the last.
        calls = index.repeated[event.call_id]
        of_tool = [place for place, (called, _) in enumerate(calls) if called.tool == event.tool]
        still_open = [place for place in of_tool if calls[place][1] is None]
        for place in still_open[:1] or of_tool[-1:]:
            calls[place] = (calls[place][0], event)
    _add_changes(index, event)


def _add_yield(index: VoiceIndex, event: YieldOpened) -> None:
    index.yields[event.yield_id] = event


def _add_changes(index: VoiceIndex, event: End | StateChanged | NodeEnded) -> None:
    if event.changes:
        apply_changes(index.fold(branch_of(event.path)), changes_by(event))
        index.changed_at = event.seq


def _forget_branches(index: VoiceIndex, fork: str) -> None:
    """Forget the states of a fork's branches, once it has merged or failed."""
    for branch in [known for known in index.folds if known.startswith(f"{fork}.")]:
        del index.folds[branch]


def _add_conflict(index: VoiceIndex, event: StateConflicted) -> None:
    index.conflicted[event.path, event.scope, event.key] = event.seq


def _add_note(index: VoiceIndex, event: Noted) -> None:
    index.noted.append(event)


INDEXERS: dict[type[Event], Callable[[VoiceIndex, Any], None]] = {
    RunStarted: _add_run,
    RunResumed: _add_resumption,
    UserSaid: _add_round,
    Answered: _add_round,
    AgentSaid: _add_response,
    InvocationStarted: _add_invocation,
    InvocationEnded: _add_invocation_end,
    NodeStarted: _add_node,
    NodeEnded: _add_node_end,
    NodeFailed: _add_node_failure,
    BranchCancelled: _add_cancellation,
    Decided: _add_decision,
    ModelCalled: _add_question,
    ModelReplied: _add_model_answer,
    ModelFailed: _add_model_answer,
    Corrected: _add_correction,
    ToolCalled: _add_call,
    ToolBlocked: _add_blocked_call,
    ToolReturned: _add_result,
    ToolFailed: _add_result,
    YieldOpened: _add_yield,
    StateChanged: _add_changes,
    StateConflicted: _add_conflict,
    Noted: _add_note,
}
