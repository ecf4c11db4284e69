"""An index over the events of one voice, so that resuming a trial is a lookup."""

from collections.abc import Iterable, Mapping
from copy import deepcopy
from itertools import islice
from math import inf
from typing import Any

from msgspec import Struct, field

from greenroom.ledger.changes import Change, State, apply_changes
from greenroom.ledger.events import (
    AgentSaid,
    Answer,
    Answered,
    Corrected,
    InvocationEnded,
    InvocationStarted,
    ModelCalled,
    ModelFailed,
    ModelReplied,
    NodeEnded,
    NodeFailed,
    NodeStarted,
    Noted,
    ToolBlocked,
    ToolCalled,
    ToolFailed,
    ToolReturned,
    UserSaid,
    YieldOpened,
)
from greenroom.ledger.messages import Message, Voice
from greenroom.ledger.paths import (
    above_of,
    branch_of,
    branches_of,
    fork_of,
    parent_branch,
    root_of,
)
from greenroom.ledger.plain import same

Step = ModelReplied | ModelFailed | Corrected
End = ToolReturned | ToolFailed
RepeatedCall = tuple[ToolCalled, End | None]


class VoiceIndex(Struct, eq=False):
    """Index over one voice's events. It is computed from the ledger and never saved."""

    voice: Voice
    open_invocation: InvocationStarted | None = None
    """The invocation that has not ended, if any."""
    invocations: dict[str, InvocationStarted] = field(default_factory=dict)
    invocations_ended: dict[str, InvocationEnded] = field(default_factory=dict)
    said: list[UserSaid] = field(default_factory=list)
    rounds: list[UserSaid | Answered] = field(default_factory=list)
    spoken: dict[str, AgentSaid] = field(default_factory=dict)
    started: dict[str, NodeStarted] = field(default_factory=dict)
    ended: dict[str, NodeEnded] = field(default_factory=dict)
    failed: dict[str, NodeFailed] = field(default_factory=dict)
    runs: dict[str, list[NodeStarted]] = field(default_factory=dict)
    """The runs of each node, by its name."""
    decided: dict[str, str] = field(default_factory=dict)
    resumed_at: int = -1
    """Which event resumed the trial last."""
    replied: list[ModelReplied] = field(default_factory=list)
    replies: dict[str, int] = field(default_factory=dict)
    """How many answers of models, failures included, each run of a node got."""
    steps: dict[str, list[Step]] = field(default_factory=dict)
    exchanges: dict[str, tuple[tuple[Message, ...], int]] = field(default_factory=dict)
    """The messages of each run of a node so far, and how many of its steps they cover."""
    questions: dict[str, ModelCalled] = field(default_factory=dict)
    """The first question at each path."""
    requests: dict[str, Any] = field(default_factory=dict)
    """The last question at each path as it was asked, so that the next can refer to it."""
    _asked_at: dict[tuple[str, str], list[str]] = field(default_factory=dict)
    _placed: int = 0
    wanted_ids: set[str] = field(default_factory=set)
    """The ids that models gave to their calls."""
    issued: list[ToolCalled] = field(default_factory=list)
    """Every call that was made, in order, whatever their ids; one issued again after an interruption counts once."""
    blocked: list[ToolBlocked] = field(default_factory=list)
    """The calls that were refused before they were issued."""
    called: dict[str, ToolCalled] = field(default_factory=dict)
    """The last call of each id."""
    results: dict[str, End] = field(default_factory=dict)
    """The last end of each id."""
    results_shown: dict[int, Message] = field(default_factory=dict)
    """What models see of the ends of calls, by the event that ends each."""
    repeated: dict[str, list[RepeatedCall]] = field(default_factory=dict)
    """The calls that share an id, each with its own end."""
    yields: dict[str, YieldOpened] = field(default_factory=dict)
    answers: dict[str, Answer] = field(default_factory=dict)
    noted: list[Noted] = field(default_factory=list)
    cancelled: set[str] = field(default_factory=set)
    closed: set[str] = field(default_factory=set)
    """Branches, and guards whose time was up: nothing further happens below them."""
    given_up: dict[str, int] = field(default_factory=dict)
    """The attempts that failed and were followed by another, each with the event that says so."""
    conflicted: dict[tuple[str, str, str], int] = field(default_factory=dict)
    """Where writers disagreed (path, scope and key), and the event that recorded it last."""
    changed_at: int = -1
    """Which event changed the state last."""
    folds: dict[str, State] = field(default_factory=dict)
    """The states of the trial and of its open branches."""

    def fold(self, branch: str = "") -> State:
        """The live state of the trial, or of one branch."""
        state = self.folds.get(branch)
        if state is None:
            state = deepcopy(self.fold(parent_branch(branch))) if branch else {}
            self.folds[branch] = state
        return state

    def change_everywhere(self, changes: Iterable[Change]) -> None:
        """Change the state of the trial and of its open branches."""
        self.fold()
        for state in self.folds.values():
            apply_changes(state, changes)

    def has_wanted(self, call_id: str) -> bool:
        """Whether a model has given this id to a call of its own before."""
        return call_id in self.wanted_ids

    def call_number(self, tool: str, call_id: str, path: str) -> int:
        """How many calls of `tool` came before this one, as seen from `path`.

        Calls in sibling branches that still run do not count: their order is an accident of time,
        and a number that depended on it could not be found again after an interruption. Nor do calls that
        were refused for their arguments: they used up no answer.
        """
        known = self.called.get(call_id)
        if known is not None and known.tool == tool and self.end_of(known) is None:
            return known.n
        return len(self.calls_before(tool, path))

    def calls_before(self, tool: str, path: str, seq: float = inf) -> list[ToolCalled]:
        """The calls of `tool` that count at `path` for a call that is made at event `seq`."""
        return [
            earlier
            for earlier in self.issued
            if earlier.tool == tool
            and earlier.seq < seq
            and self.is_visible(earlier.path, path, seq)
            and not self._was_refused(earlier)
        ]

    def is_visible(self, path: str, viewer: str, seq: float = inf) -> bool:
        """Whether what happened at `path` is known at `viewer`, at event `seq`.

        Neighbours in a fork learn of each other when it ends. Of a race only the branch that won is
        ever known: how far the others got is an accident of time.
        """
        return all(
            viewer.startswith(f"{branch}/") or viewer == branch or self._is_joined(branch, seq)
            for branch in branches_of(path)
        )

    def is_known(self, other: str, path: str) -> bool:
        """Whether what happened at `other` is sure to be known at `path`, whichever was faster.

        Branches that still run alongside it are not, nor are invocations that were begun together. What
        was stopped is: nothing further happens there.
        """
        invocation = root_of(other)
        if invocation != root_of(path) and not self.is_over_before(invocation, path):
            return False
        for branch in branches_of(other):
            is_over = fork_of(branch) in self.ended or fork_of(branch) in self.failed
            if not is_over and not path.startswith(f"{branch}/"):
                return self.is_closed(other)
        return True

    def _is_joined(self, branch: str, seq: float) -> bool:
        fork, key = branch.rsplit(".", 1)
        end = self.ended.get(fork)
        return end is not None and end.seq < seq and self.decided.get(fork, key) == key

    def is_closed(self, path: str) -> bool:
        """Whether the part that contains `path` was stopped, so that nothing further happens there."""
        return any(above in self.closed for above in above_of(path))

    def _was_refused(self, called: ToolCalled) -> bool:
        end = self.end_of(called)
        return end is not None and end.source == "refused"

    @property
    def asked(self) -> list[ToolCalled]:
        """Every call that the agent asked for, in order: those made, and those that were refused."""
        if not self.blocked:
            return self.issued
        found = [*self.issued]
        for one in self.blocked:
            issued = self.called.get(one.call_id) if one.call_id else None
            if issued is not None and issued.tool == one.tool and self.end_of(issued) is None:
                continue  # it was recorded as a call before it was refused
            found.append(
                ToolCalled(
                    seq=one.seq,
                    at=one.at,
                    voice=one.voice,
                    path=one.path,
                    call_id=one.call_id,
                    tool=one.tool,
                    args=one.args,
                )
            )
        return sorted(found, key=lambda call: call.seq)

    def end_of(self, called: ToolCalled) -> End | None:
        """How this call ended, if it has; calls that share an id each have their own end."""
        if called.call_id in self.repeated:
            held = self.repeated[called.call_id]
            return next((end for one, end in held if one.seq == called.seq), None)
        return self.results.get(called.call_id)

    def result_message(self, end: End) -> Message:
        """What a model sees of the end of a call; written once, since every later question refers to it."""
        known = self.results_shown.get(end.seq)
        if known is None:
            known = self.results_shown[end.seq] = end.message
        return known

    def is_waiting(self, called: ToolCalled) -> bool:
        """Whether the user has to answer or approve this call, or had to."""
        return any(
            opened.call_id == called.call_id and opened.tool == called.tool
            for opened in self.yields.values()
        )

    def is_same_call(
        self, before: ToolCalled, tool: str, args: Mapping[str, Any], cut_at: int = -1
    ) -> bool:
        """Whether a call with `before`'s id repeats it: interrupted and continued, or approved.

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

    def asked_in(self, branch: str, node: str) -> list[str]:
        """The paths at which a node asked its model in a branch, in order."""
        if self._placed < len(self.questions):
            for path, first in islice(self.questions.items(), self._placed, None):
                self._asked_at.setdefault((branch_of(path), first.node), []).append(path)
            self._placed = len(self.questions)
        return self._asked_at.get((branch, node), [])

    def reply_number(self, node: str, path: str) -> int:
        """How many replies this node got before, in runs that ended before this one, and here."""
        count = self.replies.get(path, 0)
        if len(self.runs.get(node, ())) > 1:
            count += sum(self.replies.get(run.path, 0) for run in self.earlier_runs(node, path))
        return count

    def earlier_runs(self, node: str, path: str) -> list[NodeStarted]:
        """This node's runs that ended before the one at `path` began."""
        return [
            run
            for run in self.runs.get(node, ())
            if run.path != path
            and self.is_over_before(run.path, path)
            and self.is_visible(run.path, path)
        ]

    def is_over_before(self, other: str, path: str) -> bool:
        """Whether the node or invocation at `other` had ended when the one at `path` began.

        Invocations that were begun together (several waits of one round) do not see each other:
        which of them ends first is an accident of time.
        """
        over_at = self._over_at(other)
        if over_at is None:
            return False
        invocation = _invocation_of(path)
        if _invocation_of(other) == invocation:
            return over_at < self.started[path].seq
        begun = self.invocations.get(invocation)
        return begun is None or over_at < begun.seq

    def _over_at(self, path: str) -> int | None:
        """The event with which the node or invocation at `path` ended: its own end, or that of the attempt it was part of."""
        end = self.ended.get(path) or self.failed.get(path) or self.invocations_ended.get(path)
        if end is not None:
            return end.seq
        if not self.given_up:
            return None
        return min((self.given_up[a] for a in above_of(path) if a in self.given_up), default=None)

    @property
    def pending(self) -> list[YieldOpened]:
        """Yields opened and not yet answered, oldest first; what was stopped waits for nothing."""
        return [
            opened
            for opened in self.yields.values()
            if opened.yield_id not in self.answers and not self.is_closed(opened.path)
        ]


class VoiceIndexes(dict[Voice, VoiceIndex]):
    """The indexes of a ledger by voice, each made when it is first asked for."""

    __slots__ = ()

    def __missing__(self, voice: Voice) -> VoiceIndex:
        made = self[voice] = VoiceIndex(voice)
        return made


def _invocation_of(path: str) -> str:
    """The invocation a path belongs to; a second attempt (`@1~2`) counts as the first."""
    return root_of(path).split("~")[0]
