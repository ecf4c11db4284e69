"""What a case expects of its turns, as metrics: no one has to ask for them.

Each looks at the scripted turns that say something about it and takes the mean over them; it passes
only if every one of them is met. A turn that the run never came to is not met.
"""

from collections.abc import Sequence
from typing import Any

from greenroom.cases.case import Case, Expect
from greenroom.cases.parts import Metric
from greenroom.cases.scores import NotApplicable, Outcome, Score, Unmeasured
from greenroom.ledger.ledger import Ledger
from greenroom.ledger.plain import Json, plain
from greenroom.ledger.query import matches_state
from greenroom.ledger.questions import state_after
from greenroom.ledger.records import record
from greenroom.metrics.calls import call_text, calls_in
from greenroom.metrics.response import cut, equal_texts, missing_texts, quoted, texts_of
from greenroom.metrics.trajectory import compared, share_in_place, wanted_text
from greenroom.metrics.turns import PlayedTurn, played_turns


@record
class Met:
    """How far one turn met what was expected of it, and what it fell short of."""

    value: float
    problems: Sequence[str] = ()
    seen: Sequence[str] = ()
    details: Json = None


class Expectation:
    """Measures one field of `Expect` turn by turn."""

    __slots__ = ()
    field: str

    @property
    def name(self) -> str:
        """The field it is about: expected_tools, expected_response, and so on."""
        return f"expected_{self.field}"

    def measure(self, case: Case, ledger: Ledger, world: Any) -> Outcome:  # noqa: ARG002
        """The mean over the turns that expect something here."""
        turns = [turn for turn in played_turns(case, ledger) if self.is_given(turn.expect)]
        if not turns:
            return NotApplicable(f"no turn of the case has Expect({self.field}=...)")
        silent = [t.number for t in turns if t.reached and self.is_silent(t)]
        if silent:
            return Unmeasured(f"the agent's response is empty in turn {silent[0]}")
        met = [self._met(turn, ledger) for turn in turns]
        return self._score(turns, met)

    def _met(self, turn: PlayedTurn, ledger: Ledger) -> Met:
        return self.met(turn, ledger) if turn.reached else Met(0.0, ["never reached"])

    def _score(self, turns: Sequence[PlayedTurn], met: Sequence[Met]) -> Score:
        by_turn = list(zip(turns, met, strict=True))
        # One turn is the common case, and this is the hot path of every evaluation.
        problems = [f"turn {t.number}: {'; '.join(m.problems)}" for t, m in by_turn if m.problems]
        return Score(
            sum(m.value for m in met) / len(met),
            not problems,
            threshold=1.0,
            name=self.name,
            reason=". ".join(problems) or "as expected",
            evidence=[f"turn {t.number}: {line}" for t, m in by_turn for line in m.seen],
            details=[{"turn": t.number, "value": m.value, **(m.details or {})} for t, m in by_turn],
        )

    def is_given(self, expect: Expect) -> bool:
        """Whether the turn says anything here; an empty wish would be met by everything."""
        return bool(getattr(expect, self.field))

    def is_silent(self, turn: PlayedTurn) -> bool:  # noqa: ARG002
        """Whether the turn lacks the very thing to be measured."""
        return False

    def met(self, turn: PlayedTurn, ledger: Ledger) -> Met:
        """How far a turn that was reached met the expectation."""
        raise NotImplementedError

    def __repr__(self) -> str:
        return self.name


class ExpectedTools(Expectation):
    """The calls of a turn against `Expect(tools=[...])`: the same calls, in the same order.

    The value is the share of positions that match if there are as many calls as expected, else 0.
    A bare name takes any arguments; a call must have exactly the arguments it gives.
    """

    __slots__ = ()
    field = "tools"

    def is_given(self, expect: Expect) -> bool:
        """None says nothing; [] says that no tool may be called."""
        return expect.tools is not None

    def met(self, turn: PlayedTurn, ledger: Ledger) -> Met:  # noqa: ARG002
        """How far the calls of this turn are the expected ones."""
        wanted, made = turn.expect.tools or (), calls_in(turn.events)
        seen = [call_text(call.tool, call.args) for call in made] or ["no calls"]
        value = share_in_place(wanted, made)
        if value == 1:
            return Met(1.0, (), seen)
        found = compared(wanted, made)
        order = f"another order than {', '.join(map(wanted_text, wanted))}"
        return Met(value, found.problems or [order], seen, plain(found))


class ExpectedResponse(Expectation):
    """The last response of a turn equals the expected one, white space around it aside."""

    __slots__ = ()
    field = "response"

    def is_silent(self, turn: PlayedTurn) -> bool:
        """Without a response there is nothing to compare."""
        return not turn.response.strip()

    def met(self, turn: PlayedTurn, ledger: Ledger) -> Met:  # noqa: ARG002
        """1 if the texts are equal."""
        wanted = turn.expect.response or ""
        if equal_texts(turn.response, wanted):
            return Met(1.0, (), [turn.response])
        problem = f"said {quoted(turn.response)}; expected {quoted(wanted)}"
        return Met(0.0, [problem], [turn.response])


class ExpectedContains(Expectation):
    """The share of the expected texts that the last response of a turn contains."""

    __slots__ = ()
    field = "contains"

    def is_silent(self, turn: PlayedTurn) -> bool:
        """Without a response there is nowhere to look."""
        return not turn.response.strip()

    def met(self, turn: PlayedTurn, ledger: Ledger) -> Met:  # noqa: ARG002
        """The share found."""
        wanted = texts_of(turn.expect.contains or ())
        missing = missing_texts(turn.response, wanted)
        if not missing:
            return Met(1.0, (), [turn.response])
        value = 1 - len(missing) / len(wanted)
        return Met(value, [f"missing {', '.join(map(quoted, missing))}"], [turn.response])


class ExpectedState(Expectation):
    """The state at the end of a turn matches the expected query."""

    __slots__ = ()
    field = "state"

    def met(self, turn: PlayedTurn, ledger: Ledger) -> Met:
        """1 if every scope matches."""
        wanted = turn.expect.state or {}
        last = turn.events[-1].seq
        held = ledger.fold() if last == len(ledger) - 1 else state_after(ledger, last)
        if matches_state(held, wanted):
            return Met(1.0)
        seen = {scope: held.get(scope, {}) for scope in wanted}
        return Met(0.0, [f"the state is {cut(repr(seen), 300)}; expected {dict(wanted)!r}"])


_TOOLS, _RESPONSE = ExpectedTools(), ExpectedResponse()
_CONTAINS, _STATE = ExpectedContains(), ExpectedState()


def expectations(case: Case) -> list[Metric]:
    """The metrics that this case's turns ask for."""
    found: dict[Expectation, None] = {}
    for turn in case.script:
        expect = turn.expect
        if expect is None:
            continue
        if expect.tools is not None:
            found[_TOOLS] = None
        if expect.response:
            found[_RESPONSE] = None
        if expect.contains:
            found[_CONTAINS] = None
        if expect.state:
            found[_STATE] = None
    return list(found)
