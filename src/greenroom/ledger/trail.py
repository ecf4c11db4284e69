"""Where a run stands: one pass over its events, remembered, so that resuming is a look-up."""

from collections.abc import Callable
from typing import Any

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
    StateConflicted,
    ToolCalled,
    ToolFailed,
    ToolReturned,
    UserSaid,
    YieldOpened,
)
from greenroom.ledger.messages import Message, Voice
from greenroom.ledger.paths import branches_of, fork_of, root_of

Step = ModelReplied | ModelFailed | Corrected
Told = tuple[tuple[Message, ...], int]
"""What one run of a node said and heard so far, and how many of its steps that takes in."""


class Trail:
    """Index over one voice's events. It follows from the ledger and is never saved."""

    __slots__ = (
        "answers",
        "called",
        "calls_of",
        "cancelled",
        "conflicted",
        "current",
        "decided",
        "ended",
        "failed",
        "has_repeated_calls",
        "invocations",
        "invocations_ended",
        "replied",
        "replies",
        "results",
        "resumed",
        "rounds",
        "runs",
        "said",
        "spoken",
        "started",
        "steps",
        "told",
        "voice",
        "wanted",
        "yields",
    )

    def __init__(self, voice: Voice) -> None:
        self.voice: Voice = voice
        self.current: InvocationStarted | None = None
        self.invocations: dict[str, InvocationStarted] = {}
        self.invocations_ended: dict[str, InvocationEnded] = {}
        self.said: list[UserSaid] = []
        self.rounds: list[UserSaid | Answered] = []
        self.spoken: dict[str, AgentSaid] = {}
        self.started: dict[str, NodeStarted] = {}
        self.ended: dict[str, NodeEnded] = {}
        self.failed: dict[str, NodeFailed] = {}
        self.runs: dict[str, list[NodeStarted]] = {}
        self.decided: dict[str, str] = {}
        self.resumed: bool = False
        self.replied: list[ModelReplied] = []
        self.replies: dict[str, int] = {}
        self.steps: dict[str, list[Step]] = {}
        self.told: dict[str, Told] = {}
        self.wanted: set[str] = set()
        self.called: dict[str, ToolCalled] = {}
        self.calls_of: dict[str, list[ToolCalled]] = {}
        self.has_repeated_calls: bool = False
        self.results: dict[str, ToolReturned | ToolFailed] = {}
        self.yields: dict[str, YieldOpened] = {}
        self.answers: dict[str, Answer] = {}
        self.cancelled: set[str] = set()
        self.conflicted: set[tuple[str, str, str]] = set()

    def call_number(self, tool: str, call_id: str, path: str) -> int:
        """How many calls of `tool` came before this one, as seen from `path`.

        Calls in sibling branches that still run do not count: their order is an accident of time,
        and a number that depended on it could not be found again after a cut. Nor do calls that
        were refused for their arguments: they took nobody's answer.
        """
        known = self.called.get(call_id)
        if known is not None:
            return known.n
        before = self.calls_of.get(tool)
        if before is None:
            return 0
        return sum(
            self._visible(earlier.path, path) and not self._was_refused(earlier.call_id)
            for earlier in before
        )

    def _was_refused(self, call_id: str) -> bool:
        end = self.results.get(call_id)
        return end is not None and end.source == "refused"

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


def _same_root(one: str, other: str) -> bool:
    """Whether two paths belong to one invocation, or to a second try at it."""
    return root_of(one).split("~")[0] == root_of(other).split("~")[0]


def _take_reply(trail: Trail, event: ModelReplied) -> None:
    trail.replied.append(event)
    if event.calls:
        trail.wanted.update([call.id for call in event.calls])
    _take_answer(trail, event)


def _take_answer(trail: Trail, event: ModelReplied | ModelFailed) -> None:
    # A failure is an answer too: a script that fails once goes on with its next line.
    path = event.path
    trail.replies[path] = trail.replies.get(path, 0) + 1
    trail.steps.setdefault(path, []).append(event)


def _take_step(trail: Trail, event: Step) -> None:
    trail.steps.setdefault(event.path, []).append(event)


def _take_resumption(trail: Trail, _: RunResumed) -> None:
    trail.resumed = True


def _take_call(trail: Trail, event: ToolCalled) -> None:
    # A call issued again after a cut keeps its number and its place.
    if event.call_id in trail.called:
        trail.has_repeated_calls = True
    else:
        trail.calls_of.setdefault(event.tool, []).append(event)
    trail.called[event.call_id] = event


def _take_result(trail: Trail, event: ToolReturned | ToolFailed) -> None:
    trail.results[event.call_id] = event


def _take_start(trail: Trail, event: NodeStarted) -> None:
    trail.started[event.path] = event
    trail.runs.setdefault(event.node, []).append(event)


def _take_end(trail: Trail, event: NodeEnded) -> None:
    trail.ended[event.path] = event


def _take_failure(trail: Trail, event: NodeFailed) -> None:
    trail.failed[event.path] = event


def _take_decision(trail: Trail, event: Decided) -> None:
    trail.decided[event.path] = event.choice


def _take_invocation(trail: Trail, event: InvocationStarted) -> None:
    trail.invocations[event.path] = trail.current = event


def _take_invocation_end(trail: Trail, event: InvocationEnded) -> None:
    trail.invocations_ended[event.path] = event
    if trail.current is not None and trail.current.path == event.path:
        trail.current = None


def _take_said(trail: Trail, event: UserSaid) -> None:
    trail.said.append(event)
    trail.rounds.append(event)


def _take_spoken(trail: Trail, event: AgentSaid) -> None:
    trail.spoken[event.path] = event


def _take_yield(trail: Trail, event: YieldOpened) -> None:
    trail.yields[event.yield_id] = event


def _take_answers(trail: Trail, event: Answered) -> None:
    trail.rounds.append(event)
    trail.answers.update({answer.yield_id: answer for answer in event.answers})


def _take_cancellation(trail: Trail, event: BranchCancelled) -> None:
    trail.cancelled.add(event.path)


def _take_conflict(trail: Trail, event: StateConflicted) -> None:
    trail.conflicted.add((event.path, event.scope, event.key))


# A table instead of a match: every event of every run comes through here.
TAKERS: dict[type[Event], Callable[[Trail, Any], None]] = {
    ModelReplied: _take_reply,
    RunResumed: _take_resumption,
    Corrected: _take_step,
    ModelFailed: _take_answer,
    ToolCalled: _take_call,
    ToolReturned: _take_result,
    ToolFailed: _take_result,
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
    StateConflicted: _take_conflict,
    BranchCancelled: _take_cancellation,
}
