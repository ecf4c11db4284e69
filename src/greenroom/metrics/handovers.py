"""Did the agents hand the conversation over as they should?"""

from collections.abc import Iterable
from typing import ClassVar

from greenroom.cases.case import Case
from greenroom.cases.scores import Outcome, Score, Unmeasured
from greenroom.ledger.choices import near
from greenroom.ledger.events import ModelCalled, NodeStarted
from greenroom.ledger.handovers import handovers
from greenroom.ledger.ledger import Ledger
from greenroom.ledger.questions import started
from greenroom.ledger.snapshots import as_facts, names_all, names_in
from greenroom.metrics.builtin import QuickMetric, checked_switch, checked_text, written
from greenroom.metrics.needs import NODES, Needs
from greenroom.metrics.turns import checked_turn, turn_span
from greenroom.world.world import World

_ALIKE = 0.8


class HandedOver(QuickMetric, frozen=True, kw_only=True):
    """Checks whether an agent was handed the conversation by another."""

    needs: ClassVar[Needs] = NODES
    to: str
    by: str | None
    turn: int | None
    never: bool

    def agents_named(self) -> dict[str, bool]:
        """The agents or nodes on both sides of the hand-over."""
        return dict.fromkeys([name for name in (self.to, self.by) if name], self.never)

    def measure(self, case: Case, ledger: Ledger, world: World) -> Outcome:
        """1 if it was handed over as expected."""
        found = handovers(ledger)
        if self.turn is not None:
            span = turn_span(case, ledger, self.turn)
            if span is None:
                return Score(0.0, False, name=self.name, reason=f"turn {self.turn}: never reached")
            found = [one for one in found if span[0] <= one.seq < span[1]]
        fitting = [one for one in found if one.to == self.to and self.by in (None, one.by)]
        passed = bool(fitting) != self.never
        doubt, is_certain = ("", False)
        if passed and self.never:
            doubt, is_certain = _unknown_name(ledger, self.agents_named())
        if is_certain:
            return Unmeasured(doubt)
        seen = [f"{one.by} to {one.to}" for one in found]
        whom = f"to {self.to}" + (f" by {self.by}" if self.by else "")
        happened = f"handed over {whom}" if fitting else f"never handed over {whom}"
        if doubt:
            happened = f"{happened}; {doubt}"
        others = "" if passed or fitting else f"; seen: {', '.join(seen) or 'no handover'}"
        return Score(
            float(passed),
            passed,
            name=self.name,
            reason=f"{happened}{others}",
            evidence=seen,
            measured=len(fitting),
        )


def _unknown_name(ledger: Ledger, names: Iterable[str]) -> tuple[str, bool]:
    """Why one of these names may be misspelt, and whether that is certain, as all agents are known.

    Where they are not, only a similar name is worth a word: `support-us` may just not have been asked.
    """
    first = started(ledger)
    facts = as_facts({} if first is None else first.agent or {})
    known = names_in(facts)
    known |= {event.node.rpartition("/")[2] for event in ledger.of(NodeStarted)}
    known |= {event.agent for event in ledger.of(ModelCalled)}
    for name in names:
        meant = near(name, known, alike=_ALIKE)
        if name not in known and (meant or names_all(facts)):
            hint = f"did you mean {meant[0]!r}? It" if meant else "it"
            why = f"there is no agent or node {name!r} in this trial; {hint} has {sorted(known)}"
            return why, names_all(facts)
    return "", False


def handed_over(
    to: str,
    *,
    by: str | None = None,
    turn: int | None = None,
    never: bool = False,
    name: str | None = None,
) -> HandedOver:
    """The conversation was handed over to the agent, or node of a graph, called `to`.

    `by` names the one that had it before, `turn` the turn in which it happened; `never=True` demands
    that it did not; a name that no agent or node has then leaves it unmeasured, if all of them are known.
    It works for agents of every framework whose calls are seen.
    """
    checked_text(to, "handed_over")
    if by is not None:
        checked_text(by, "handed_over")
    checked_switch(never, "never", "handed_over")
    return HandedOver(
        to=to,
        by=by,
        turn=checked_turn(turn, "handed_over"),
        never=never,
        **written("handed_over", to, by=by, turn=turn, never=never or None, name=name),
    )
