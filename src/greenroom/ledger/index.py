"""Where a run stands: one pass over its events, remembered, so that resuming is a look-up."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from copy import deepcopy
from itertools import repeat
from types import MappingProxyType
from typing import Any

from msgspec import Struct, field

from greenroom.ledger.changes import Change, State, apply_changes
from greenroom.ledger.events import (
    AgentSaid,
    Answer,
    Answered,
    BranchCancelled,
    Corrected,
    Decided,
    Event,
    InvocationEnded,
    InvocationStarted,
    ModelFailed,
    ModelReplied,
    NodeEnded,
    NodeFailed,
    NodeStarted,
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
)
from greenroom.ledger.messages import Message, Voice
from greenroom.ledger.paths import branch_of, branches_of, fork_of, parent_branch, root_of
from greenroom.ledger.plain import same

Step = ModelReplied | ModelFailed | Corrected
End = ToolReturned | ToolFailed
Changes = tuple[Change, ...]
RepeatedCall = tuple[ToolCalled, End | None]
Told = tuple[tuple[Message, ...], int]
"""What one run of a node said and heard so far, and how many of its steps that takes in."""


# What most runs never come to is made when the first of it comes: each run has a trail.
_NONE: Mapping[str, Any] = MappingProxyType({})
_none: Callable[[], Mapping[str, Any]] = repeat(_NONE).__next__  # always this one
_NOBODY: AbstractSet[Any] = frozenset()


class VoiceIndex(Struct, eq=False, omit_defaults=True):
    """Index over one voice's events. It follows from the ledger and is never saved."""

    voice: Voice
    current: InvocationStarted | None = None
    invocations: dict[str, InvocationStarted] = field(default_factory=dict)
    invocations_ended: dict[str, InvocationEnded] = field(default_factory=dict)
    said: list[UserSaid] = field(default_factory=list)
    rounds: list[UserSaid | Answered] = field(default_factory=list)
    spoken: dict[str, AgentSaid] = field(default_factory=dict)
    started: dict[str, NodeStarted] = field(default_factory=dict)
    ended: dict[str, NodeEnded] = field(default_factory=dict)
    failed: Mapping[str, NodeFailed] = field(default_factory=_none)
    runs: dict[str, list[NodeStarted]] = field(default_factory=dict)
    decided: Mapping[str, str] = field(default_factory=_none)
    resumed_at: int = -1
    replied: list[ModelReplied] = field(default_factory=list)
    replies: dict[str, int] = field(default_factory=dict)
    steps: dict[str, list[Step]] = field(default_factory=dict)
    told: dict[str, Told] = field(default_factory=dict)
    _wanted: set[str] | None = None
    _heard: int = 0
    issued: list[ToolCalled] = field(default_factory=list)
    """Every call that was made, in order, whatever their ids; one issued again after a cut once."""
    blocked: Sequence[ToolBlocked] = ()
    """The calls that were refused before they were issued."""
    called: dict[str, ToolCalled] = field(default_factory=dict)
    """The last call of each id."""
    results: dict[str, ToolReturned | ToolFailed] = field(default_factory=dict)
    """The last end of each id."""
    repeated: Mapping[str, list[RepeatedCall]] = field(default_factory=_none)
    """The calls that share an id, each with its own end."""
    yields: Mapping[str, YieldOpened] = field(default_factory=_none)
    answers: Mapping[str, Answer] = field(default_factory=_none)
    cancelled: AbstractSet[str] = _NOBODY
    conflicted: Mapping[Any, int] = field(default_factory=_none)
    """Where writers disagreed (path, scope and key), and when that was last written down."""
    changed_at: int = -1
    """Which event changed the state last."""
    folds: dict[str, State] = field(default_factory=dict)
    """The states of the run and of its open branches."""

    def fold(self, branch: str = "") -> State:
        """The live state of the run, or of one branch."""
        state = self.folds.get(branch)
        if state is None:
            state = deepcopy(self.fold(parent_branch(branch))) if branch else {}
            self.folds[branch] = state
        return state

    def begin_fold(self, state: State) -> None:
        """Begin with this state."""
        self.folds[""] = deepcopy(state)

    def change_everywhere(self, changes: Iterable[Change]) -> None:
        """Change the state of the run and of its open branches."""
        self.fold()
        for state in self.folds.values():
            apply_changes(state, changes)

    def forget_temporary(self, seq: int) -> None:
        """Drop what was to last no longer than its invocation."""
        for state in self.folds.values():
            if state.pop("temp", None):
                self.changed_at = seq

    def join(self, fork: str) -> None:
        """Forget the states of a fork's branches, once it has merged or failed."""
        for branch in [b for b in self.folds if b.startswith(f"{fork}.")]:
            del self.folds[branch]

    def __reduce__(self) -> tuple[type["VoiceIndex"], tuple[Any, ...]]:
        held = (getattr(self, name) for name in self.__struct_fields__)
        return VoiceIndex, tuple({} if one is _NONE else one for one in held)

    def has_wanted(self, call_id: str) -> bool:
        """Whether a model has given this id to a call of its own before."""
        # Only some providers give ids, so they are gathered when somebody asks.
        wanted = self._wanted = set[str]() if self._wanted is None else self._wanted
        for reply in self.replied[self._heard :]:
            wanted.update(call.id for call in reply.calls)
        self._heard = len(self.replied)
        return call_id in wanted

    def call_number(self, tool: str, call_id: str, path: str) -> int:
        """How many calls of `tool` came before this one, as seen from `path`.

        Calls in sibling branches that still run do not count: their order is an accident of time,
        and a number that depended on it could not be found again after a cut. Nor do calls that
        were refused for their arguments: they took nobody's answer.
        """
        known = self.called.get(call_id)
        if known is not None and known.tool == tool and self.end_of(known) is None:
            return known.n
        return sum(
            self._visible(earlier.path, path) and not self._was_refused(earlier)
            for earlier in self.issued
            if earlier.tool == tool
        )

    def _was_refused(self, called: ToolCalled) -> bool:
        end = self.end_of(called)
        return end is not None and end.source == "refused"

    @property
    def asked(self) -> list[ToolCalled]:
        """Every call that the agent asked for, in order: those made, and those that were refused."""
        if not self.blocked:
            return self.issued
        refused = [
            ToolCalled(
                seq=one.seq,
                at=one.at,
                voice=one.voice,
                path=one.path,
                call_id=one.call_id,
                tool=one.tool,
                args=one.args,
            )
            for one in self.blocked
            if not self._was_issued(one)
        ]
        return sorted([*self.issued, *refused], key=lambda call: call.seq)

    def _was_issued(self, blocked: ToolBlocked) -> bool:
        before = self.called.get(blocked.call_id) if blocked.call_id else None
        return before is not None and before.tool == blocked.tool and self.end_of(before) is None

    def end_of(self, called: ToolCalled) -> End | None:
        """How this call ended, if it has; calls that share an id have each an end of their own."""
        if called.call_id in self.repeated:
            held = self.repeated[called.call_id]
            return next((end for one, end in held if one.seq == called.seq), None)
        return self.results.get(called.call_id)

    def is_waiting(self, called: ToolCalled) -> bool:
        """Whether this call is, or was, the user's to answer or to approve."""
        return any(
            opened.call_id == called.call_id and opened.tool == called.tool
            for opened in self.yields.values()
        )

    def is_same_call(
        self, before: ToolCalled, tool: str, args: Mapping[str, Any], cut_at: int = -1
    ) -> bool:
        """Whether a call of `before`'s id is that call once more: cut and continued, or approved.

        Ids alone do not say so: some providers count from zero in every reply.
        """
        if before.tool != tool or not same(dict(before.args), dict(args)):
            return False
        end = self.end_of(before)
        if end is None and max(cut_at, self.resumed_at) > before.seq:
            return True
        over = before.seq if end is None else end.seq
        return any(
            opened.call_id == before.call_id and opened.tool == tool and opened.seq > over
            for opened in self.yields.values()
        )

    def reply_number(self, node: str, path: str) -> int:
        """How many replies this node got before, in runs that ended before this one, and here."""
        count = self.replies.get(path, 0)
        if len(self.runs.get(node, ())) > 1:
            count += sum(self.replies.get(run.path, 0) for run in self.earlier_runs(node, path))
        return count

    def earlier_runs(self, node: str, path: str) -> list[NodeStarted]:
        """This node's runs that were over before the one at `path` began."""
        return [
            run
            for run in self.runs.get(node, ())
            if run.path != path and self.is_over_before(run.path, path)
        ]

    def is_over_before(self, other: str, path: str) -> bool:
        """Whether the node or invocation at `other` had ended when the one at `path` began.

        Invocations that were begun together (several waits of one round) do not see each other:
        which of them ends first is an accident of time.
        """
        end = self.ended.get(other) or self.failed.get(other) or self.invocations_ended.get(other)
        if end is None:
            return False
        mine = self.started[path] if _same_root(other, path) else self._begun(path)
        return mine is None or end.seq < mine.seq

    def _begun(self, path: str) -> InvocationStarted | None:
        return self.invocations.get(root_of(path).split("~")[0])

    def _visible(self, path: str, viewer: str) -> bool:
        return all(
            viewer == branch or viewer.startswith(f"{branch}/") or fork_of(branch) in self.ended
            for branch in branches_of(path)
        )

    @property
    def open_invocation(self) -> InvocationStarted | None:
        """The invocation that has not ended, if any."""
        return self.current

    @property
    def pending(self) -> list[YieldOpened]:
        """Yields opened and not yet answered, oldest first."""
        return [y for y in self.yields.values() if y.yield_id not in self.answers]


class VoiceIndexes(dict[Voice, VoiceIndex]):
    """The trails of a ledger by voice, each made when it is first asked for."""

    __slots__ = ()

    def __missing__(self, voice: Voice) -> VoiceIndex:
        made = self[voice] = VoiceIndex(voice)
        return made


def _same_root(one: str, other: str) -> bool:
    """Whether two paths belong to one invocation, or to a second try at it."""
    return root_of(one).split("~")[0] == root_of(other).split("~")[0]


def _take_answer(index: VoiceIndex, event: ModelReplied | ModelFailed) -> None:
    # A failure is an answer too: a script that fails once goes on with its next line.
    if type(event) is ModelReplied:
        index.replied.append(event)
    path, replies = event.path, index.replies
    replies[path] = replies[path] + 1 if path in replies else 1
    steps = index.steps.get(path)
    if steps is None:
        index.steps[path] = [event]
    else:
        steps.append(event)


def _take_correction(index: VoiceIndex, event: Corrected) -> None:
    index.steps.setdefault(event.path, []).append(event)


def _take_resumption(index: VoiceIndex, event: RunResumed) -> None:
    index.resumed_at = event.seq


def _take_call(index: VoiceIndex, event: ToolCalled) -> None:
    before = index.called.get(event.call_id)
    if before is not None:
        # A call issued again after a cut keeps its number and its place.
        if index.is_same_call(before, event.tool, event.args):
            return
        held = index.repeated.get(event.call_id) or [(before, index.results.get(event.call_id))]
        index.repeated = _with(index.repeated, event.call_id, [*held, (event, None)])
    index.called[event.call_id] = event
    index.issued.append(event)


def _take_blocked(index: VoiceIndex, event: ToolBlocked) -> None:
    index.blocked = (*index.blocked, event)


def _take_result(index: VoiceIndex, event: ToolReturned) -> None:
    _take_failed_call(index, event)
    if event.changes or index.folds:
        _take_changes(index, event)


def _take_failed_call(index: VoiceIndex, event: End) -> None:
    index.results[event.call_id] = event
    if event.call_id in index.repeated:
        _end_repeated(index.repeated[event.call_id], event)


def _end_repeated(held: list[RepeatedCall], event: End) -> None:
    """Give the end to the oldest call that fits it: of its tool and still open, else its tool's last."""
    of_tool = [place for place, (called, _) in enumerate(held) if called.tool == event.tool]
    under_way = [place for place in of_tool if held[place][1] is None]
    for place in under_way[:1] or of_tool[-1:]:
        held[place] = (held[place][0], event)


def _take_start(index: VoiceIndex, event: NodeStarted) -> None:
    index.started[event.path] = event
    runs = index.runs.get(event.node)
    if runs is None:
        index.runs[event.node] = [event]
    else:
        runs.append(event)


def _take_end(index: VoiceIndex, event: NodeEnded) -> None:
    index.ended[event.path] = event
    if event.changes or index.folds:
        _take_changes(index, event)


def _take_failure(index: VoiceIndex, event: NodeFailed) -> None:
    index.failed = _with(index.failed, event.path, event)
    _join(index, event)


def _take_decision(index: VoiceIndex, event: Decided) -> None:
    index.decided = _with(index.decided, event.path, event.choice)


def _take_invocation(index: VoiceIndex, event: InvocationStarted) -> None:
    index.invocations[event.path] = index.current = event


def _take_invocation_end(index: VoiceIndex, event: InvocationEnded) -> None:
    index.invocations_ended[event.path] = event
    if index.folds:
        index.forget_temporary(event.seq)
    if index.current is not None and index.current.path == event.path:
        index.current = None


def _take_run(index: VoiceIndex, event: RunStarted) -> None:
    if event.state:
        index.begin_fold(event.state)


def _take_said(index: VoiceIndex, event: UserSaid) -> None:
    index.said.append(event)
    index.rounds.append(event)
    # The user's changes reach the whole run: open branches see them too.
    if event.changes:
        index.change_everywhere(event.changes)
        index.changed_at = event.seq


def _take_spoken(index: VoiceIndex, event: AgentSaid) -> None:
    index.spoken[event.path] = event


def _take_yield(index: VoiceIndex, event: YieldOpened) -> None:
    index.yields = _with(index.yields, event.yield_id, event)


def _take_answers(index: VoiceIndex, event: Answered) -> None:
    index.rounds.append(event)
    for answer in event.answers:
        index.answers = _with(index.answers, answer.yield_id, answer)
    if event.changes:
        index.change_everywhere(event.changes)
        index.changed_at = event.seq


def _take_cancellation(index: VoiceIndex, event: BranchCancelled) -> None:
    index.cancelled = _and(index.cancelled, event.path)


def _take_conflict(index: VoiceIndex, event: StateConflicted) -> None:
    index.conflicted = _with(index.conflicted, (event.path, event.scope, event.key), event.seq)


def _take_changes(index: VoiceIndex, event: ToolReturned | StateChanged | NodeEnded) -> None:
    if event.changes:
        apply_changes(index.fold(branch_of(event.path)), changes_by(event))
        index.changed_at = event.seq
    _join(index, event)


def changes_by(event: Event) -> Changes:
    """All that an event does to the state, in order."""
    match event:
        case ToolReturned():
            return (*event.changes, *event.settled)
        case StateChanged() | NodeEnded() | UserSaid() | Answered():
            return event.changes
        case _:
            return ()


def _join(index: VoiceIndex, event: Event) -> None:
    if event.path.endswith("/par"):
        index.join(event.path)


def _with(held: Mapping[Any, Any], key: Any, value: Any) -> Mapping[Any, Any]:
    """What is held with one more; it is made when the first comes."""
    kept: dict[Any, Any] = held if isinstance(held, dict) else {}
    kept[key] = value
    return kept


def _and(held: AbstractSet[Any], item: object) -> AbstractSet[Any]:
    kept: set[Any] = held if isinstance(held, set) else set()
    kept.add(item)
    return kept


# A table instead of a match: every event of every run comes through here.
TAKERS: dict[type[Event], Callable[[VoiceIndex, Any], None]] = {
    RunStarted: _take_run,
    ModelReplied: _take_answer,
    RunResumed: _take_resumption,
    Corrected: _take_correction,
    ModelFailed: _take_answer,
    ToolCalled: _take_call,
    ToolBlocked: _take_blocked,
    ToolReturned: _take_result,
    ToolFailed: _take_failed_call,
    NodeStarted: _take_start,
    NodeEnded: _take_end,
    NodeFailed: _take_failure,
    Decided: _take_decision,
    InvocationStarted: _take_invocation,
    InvocationEnded: _take_invocation_end,
    UserSaid: _take_said,
    AgentSaid: _take_spoken,
    YieldOpened: _take_yield,
    Answered: _take_answers,
    StateChanged: _take_changes,
    StateConflicted: _take_conflict,
    BranchCancelled: _take_cancellation,
}
