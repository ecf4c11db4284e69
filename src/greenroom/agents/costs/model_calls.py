"""How often an agent asks its model in a visit, and with how many tokens."""

from collections.abc import Collection, Mapping
from functools import cached_property
from math import inf

from greenroom.agents.agent import Agent
from greenroom.agents.context import History
from greenroom.agents.costs.seen import SeenNode
from greenroom.agents.costs.traffic import Assumed
from greenroom.agents.costs.visits import Reach
from greenroom.agents.graph import Node


class Asking:
    """One agent's questions under some traffic; `as_seen` is how it was reached in the trials seen."""

    def __init__(
        self, node: Node, agent: Agent, assumed: Assumed, reach: Reach, as_seen: Reach | None
    ) -> None:
        self.node = node.id
        self._node = node
        self._agent = agent
        self._assumed = assumed
        self._reach = reach
        self._as_seen = as_seen

    @cached_property
    def seen(self) -> SeenNode | None:
        """What earlier trials have shown about this node, if it was ever visited."""
        learnt = self._assumed.traffic.learnt
        if learnt is None or not learnt.visits.get(self._node.id):
            return None
        return learnt.nodes.get(self._node.id) or SeenNode()

    @cached_property
    def _calls_seen(self) -> float | None:
        learnt = self._assumed.traffic.learnt
        if self.seen is None or learnt is None:
            return None
        return self.seen.calls / learnt.visits[self._node.id]

    @cached_property
    def calls(self) -> float:
        """How often it asks in a visit."""
        known = self._number("calls", self._calls_seen)
        return 1.0 if known is None else known

    @property
    def is_guess(self) -> bool:
        """Whether it is unknown how often it asks."""
        return self._number("calls", self._calls_seen) is None

    def models(self, known: Collection[str]) -> Mapping[str, float] | None:
        """How often each model of a choice answers, as given for this node."""
        return self._assumed.ways("models", self._node, known)

    @cached_property
    def tokens(self) -> tuple[float, float] | None:
        """The tokens that a call reads and writes on average; None if unknown.

        Given numbers are for the first question, and grow with each further one. Seen numbers include that
        growth; they change only as far as there are more or fewer questions now.
        """
        seen = None if self.seen is None else self.seen.tokens_per_call
        written = self._number("tokens_out", None if seen is None else seen[1])
        if written is None:
            return None
        growth = written + (self._number("tokens_tool", None) or 0.0)
        if seen is not None and self._assumed.named("tokens_in", self._node) is None:
            learnt = self.seen.growth if self.seen is not None else None
            growth = growth if learnt is None else learnt
            return max(0.0, seen[0] + growth * self._longer), written
        first = self._number("tokens_in", None)
        return None if first is None else (first + growth * self._resent, written)

    @cached_property
    def likeness(self) -> float | None:
        """The factor between the tokens of a call now and as seen; None if either is unknown."""
        seen = None if self.seen is None else self.seen.tokens_per_call
        if seen is None:
            # Replies that report no tokens may report a cost; it counts unless tokens are given.
            return 1.0 if self.tokens is None else None
        if self.tokens is None or not sum(seen):
            return 1.0 if self.tokens == seen else None
        return 1.0 if self.tokens == seen else sum(self.tokens) / sum(seen)

    def _number(self, field: str, seen: float | None) -> float | None:
        """As given for this node, else as seen, else as given for all."""
        named = self._assumed.named(field, self._node)
        if named is not None:
            return named
        return self._assumed.usual(field) if seen is None else seen

    @cached_property
    def _resent(self) -> float:
        """How many earlier replies a question sends again on average."""
        return _resent(self.calls, self._reach, self._remembered)

    @property
    def _longer(self) -> float:
        """How many more earlier replies a question sends again than in the trials seen."""
        calls = self._calls_seen
        if calls is None or self._as_seen is None:
            return 0.0
        if calls == self.calls and self._as_seen == self._reach:
            return 0.0
        return self._resent - _resent(calls, self._as_seen, self._remembered)

    @property
    def _remembered(self) -> float:
        """How many earlier visits the agent's context rules show its model."""
        rules = [rule for rule in self._agent.context if isinstance(rule, History)]
        return max((inf if rule.last is None else rule.last for rule in rules), default=0.0)


def _resent(calls: float, reach: Reach, remembered: float) -> float:
    """How many earlier replies a question sends again on average: of its visit, and of earlier rounds."""
    within = max(0.0, calls - 1) / 2
    rounds = max(1.0, reach.rounds)
    return within + calls * reach.inside * _earlier(rounds, remembered) / rounds


def _earlier(rounds: float, remembered: float) -> float:
    """How many earlier rounds all rounds together look back to."""
    if rounds - 1 <= remembered:
        return rounds * (rounds - 1) / 2
    return remembered * (remembered + 1) / 2 + (rounds - remembered - 1) * remembered
