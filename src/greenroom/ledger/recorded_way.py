"""The path that a recorded trial took through its graph: visits, seconds and cost of each node."""

from collections.abc import Collection, Iterator, Mapping
from functools import cached_property
from itertools import pairwise

from greenroom.ledger.events import Answered, Event, RunResumed
from greenroom.ledger.ledger import Ledger
from greenroom.ledger.questions import Spending, spending_by_node


class RecordedWay:
    """What the agent's ledger says about its nodes, each identified by its static id or its name.

    `members` are the agents that may hand the conversation over.
    """

    def __init__(self, ledger: Ledger, members: Collection[str] = ()) -> None:
        self._ledger = ledger
        self._members = members
        self._index = ledger.index_of()

    @property
    def nodes(self) -> list[str]:
        """The nodes that were visited, in the order of their first visits."""
        return list(self._index.runs)

    @property
    def began(self) -> bool:
        """Whether the agent was started at all."""
        return bool(self._index.invocations or self._index.started)

    @property
    def ended(self) -> bool:
        """Whether it ended at least once without failing."""
        ends = self._index.invocations_ended.values()
        return any(end.outcome != "failed" for end in ends)

    def runs(self, node: str) -> list[str]:
        """The paths of a node's visits."""
        return [started.path for started in self._index.runs.get(node, ())]

    def finished(self, node: str) -> list[str]:
        """The paths of the visits that ended and did not hand over to another."""
        return [
            path
            for path in self.runs(node)
            if path in self._index.ended
            and not (node in self._members and path in self._index.decided)
        ]

    def handed_over(self, node: str, to: str) -> bool:
        """Whether an agent handed the conversation over to the one called `to`."""
        return any(self._index.decided.get(path) == to for path in self.runs(node))

    def left(self, node: str, whole: str) -> bool:
        """Whether a node ended inside a part of the graph that also ended."""
        return any(
            _is_inside(path, end) for path in self.finished(node) for end in self.finished(whole)
        )

    def went_on(self, node: str, following: str, whole: str) -> bool:
        """Whether, in one visit of the sequence `whole`, `following` began after `node` had ended."""
        return any(
            _is_inside(path, visit)
            and any(_is_inside(later, visit) for later in self.runs(following))
            for visit in self.runs(whole)
            for path in self.finished(node)
        )

    def went_again(self, body: str, loop: str) -> bool:
        """Whether a loop ran a second round."""
        return any(
            path.startswith(f"{visit}#") and not path.startswith(f"{visit}#1/")
            for visit in self.runs(loop)
            for path in self.runs(body)
        )

    def had_nothing(self, body: str, whole: str) -> bool:
        """Whether a map ended without an item."""
        return any(
            not any(_is_inside(path, visit) for path in self.runs(body))
            for visit in self.finished(whole)
        )

    def won(self, part: str, race: str) -> bool:
        """Whether this part won a race."""
        winners = {
            f"{path}.{self._index.decided[path]}/"
            for path in self.runs(race)
            if path in self._index.decided
        }
        return (
            any(path.startswith(tuple(winners)) for path in self.runs(part)) if winners else False
        )

    def calls(self, node: str, tool: str) -> int:
        """How often a node called a tool."""
        paths = set(self.runs(node))
        return sum(call.tool == tool and call.path in paths for call in self._index.issued)

    def seconds(self, node: str) -> float:
        """How long the node was active in total, without waits for the user and interruptions."""
        return sum(
            max(0.0, end.at - started.at - self._idle(started.at, end.at))
            for started in self._index.runs.get(node, ())
            if (end := self._index.ended.get(started.path) or self._index.failed.get(started.path))
        )

    def unfinished(self, node: str) -> int:
        """How many visits did not end: they were stopped, or are still in progress."""
        over = self._index.ended.keys() | self._index.failed.keys()
        return sum(path not in over for path in self.runs(node))

    def failures(self, node: str) -> int:
        """How many visits failed."""
        return sum(path in self._index.failed for path in self.runs(node))

    def spending(self, node: str) -> Spending | None:
        """What the models of a node used and cost; None if it asked none."""
        return self._spending.get(node)

    @cached_property
    def _spending(self) -> Mapping[str, Spending]:
        return spending_by_node(self._ledger)

    def _idle(self, begun: float, over: float) -> float:
        return sum(max(0.0, min(end, over) - max(start, begun)) for start, end in self._rests)

    @cached_property
    def _rests(self) -> list[tuple[float, float]]:
        """When the agent was idle: until the user had answered, or until the trial was resumed."""
        return [*_rests(self._ledger)]


def _rests(ledger: Ledger) -> Iterator[tuple[float, float]]:
    last: Event | None = ledger.first
    for before, event in pairwise(ledger):
        if isinstance(event, RunResumed):
            yield before.at, event.at
        elif isinstance(event, Answered) and last is not None:
            yield last.at, event.at
        if event.voice == "agent" or isinstance(event, RunResumed):
            last = event


def _is_inside(path: str, whole: str) -> bool:
    return path == whole or path.startswith((f"{whole}.", f"{whole}#", f"{whole}/", f"{whole}~"))
