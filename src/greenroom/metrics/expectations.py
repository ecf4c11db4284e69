"""The metrics implied by what a case expects of its turns.

Each measures one field of `Expect`, over the turns that set it. Its value is the mean over them, and it
passes only if each of them is met. A turn that the trial never reached is not met.
"""

from collections.abc import Mapping, Sequence
from functools import cache
from math import fsum
from typing import ClassVar, cast

from greenroom.cases.case import Case
from greenroom.cases.parts import Metric
from greenroom.cases.scores import NotApplicable, Outcome, Score, Unmeasured
from greenroom.ledger.events import STOPPED, Noted
from greenroom.ledger.ledger import Ledger
from greenroom.ledger.messages import call_text, is_blank
from greenroom.ledger.plain import Json, is_object
from greenroom.ledger.query import matches_state
from greenroom.ledger.questions import state_after
from greenroom.metrics.builtin import shown_value
from greenroom.metrics.comparison import problems_of
from greenroom.metrics.needs import NODES, STATE, WORDS, Needs, call_needs
from greenroom.metrics.node_state import state_after_node
from greenroom.metrics.response import cut, equal_texts, missing_texts, quoted, texts_of
from greenroom.metrics.state import check_lasting, mismatches
from greenroom.metrics.trajectory import difference_of, share_in_place
from greenroom.metrics.turns import ScriptedTurn, scripted_turns
from greenroom.world.world import World

Met = tuple[float, Sequence[str], Sequence[str], Mapping[str, Json]]
"""How far one turn met what was expected of it, what is wrong, what was seen, and further details."""

_NOTHING: Mapping[str, Json] = {}
_PLAIN = frozenset((str, int, float, bool, type(None)))
_AS_EXPECTED = "as expected"
_NO_CALLS = ("no calls",)
_NEVER_REACHED: Met = (0.0, ("never reached",), (), _NOTHING)


class Expectation:
    """Measures one field of `Expect` turn by turn."""

    __slots__ = ()
    name: str
    field: str
    covers: tuple[str, ...]
    needs: ClassVar[Needs]
    heeds_empty: ClassVar[bool] = False
    """Whether an empty value is an expectation too; for most fields anything would meet it."""

    def __init_subclass__(cls) -> None:
        cls.covers = (cls.field,)

    def measure(self, case: Case, ledger: Ledger, world: World) -> Outcome:
        """The mean over the turns that expect something here."""
        found: list[Score] = []
        for turn in scripted_turns(case, ledger):
            wanted, number = getattr(turn.expect, self.field), turn.number
            if not wanted and (wanted is None or not self.heeds_empty):
                continue
            met = self.met(turn) if turn.begin < turn.end else _NEVER_REACHED
            if met is None:
                return Unmeasured(f"the agent's response is empty in turn {number}")
            value, wrong, seen, more = met
            found.append(
                Score(
                    value,
                    not wrong,
                    threshold=1.0,
                    name=self.name,
                    reason=f"turn {number}: {'; '.join(wrong)}" if wrong else _AS_EXPECTED,
                    evidence=[f"turn {number}: {line}" for line in seen],
                    details=[{"turn": number, "value": value, **more}],
                )
            )
        if len(found) == 1:
            return found[0]
        if not found:
            return NotApplicable(f"no turn of the case has Expect({self.field}=...)")
        return self._mean(found)

    def needs_guard(self, case: Case) -> bool:
        """Whether more than strings is compared: a query may be slow, and a function is user code."""
        return False

    def _mean(self, turns: Sequence[Score]) -> Score:
        problems = [one.reason for one in turns if not one.passed]
        return Score(
            fsum([one.value for one in turns]) / len(turns),
            not problems,
            threshold=1.0,
            name=self.name,
            reason=". ".join(problems) if problems else _AS_EXPECTED,
            evidence=[line for one in turns for line in one.evidence],
            details=[part for one in turns for part in cast("list[Json]", one.details)],
        )

    def met(self, turn: ScriptedTurn) -> Met | None:
        """How well a turn that was reached met the expectation; None if the agent said nothing in it."""
        raise NotImplementedError

    def __repr__(self) -> str:
        return self.name


class ExpectedTools(Expectation):
    """The calls of a turn compared with `Expect(tools=[...])`: the same calls, in the same order.

    The value is the share of positions that match if there are as many calls as expected, else 0.
    A bare name takes any arguments; a call must have exactly the arguments it gives.
    """

    __slots__ = ()
    name = "expected_tools"
    field = "tools"
    heeds_empty = True
    """None says nothing; [] says that no tool may be called."""

    def needs_for(self, case: Case) -> Needs:
        """Arguments only if some are expected."""
        return call_needs(case)

    def needs_guard(self, case: Case) -> bool:
        """Whether an expected argument is a query or a function."""
        return any(
            not isinstance(wanted, str) and not _PLAIN.issuperset(map(type, wanted.args.values()))
            for turn in case.script
            for wanted in (turn.expect and turn.expect.tools) or ()
        )

    def met(self, turn: ScriptedTurn) -> Met:
        """How well the calls of this turn match the expected ones."""
        wanted, made = turn.expect.tools or (), turn.calls
        seen = [call_text(call.tool, call.args) for call in made]
        value = share_in_place(wanted, made)
        if value == 1:
            return 1.0, (), seen or _NO_CALLS, _NOTHING
        found = difference_of(wanted, made)
        return value, problems_of(found), seen or _NO_CALLS, found


class ExpectedResponse(Expectation):
    """The last response of a turn equals the expected one, ignoring white space around it."""

    __slots__ = ()
    name = "expected_response"
    field = "response"
    needs = WORDS

    def met(self, turn: ScriptedTurn) -> Met | None:
        """1 if the two are equal; None without a response to compare."""
        wanted, said = turn.expect.response or "", turn.response
        if is_blank(said):
            return None
        if equal_texts(said, wanted):
            return 1.0, (), (said,), _NOTHING
        problem = f"said {quoted(said)}; expected {quoted(wanted)}"
        return 0.0, (problem,), (said,), _NOTHING


class ExpectedContains(Expectation):
    """The share of the expected strings that the last response of a turn contains."""

    __slots__ = ()
    name = "expected_contains"
    field = "contains"
    needs = WORDS

    def met(self, turn: ScriptedTurn) -> Met | None:
        """The share found; None without a response to look in."""
        wanted, said = texts_of(turn.expect.contains or ()), turn.response
        if is_blank(said):
            return None
        missing = missing_texts(said, wanted)
        if not missing:
            return 1.0, (), (said,), _NOTHING
        value = 1 - len(missing) / len(wanted)
        return value, (f"missing {', '.join(map(quoted, missing))}",), (said,), _NOTHING


class ExpectedState(Expectation):
    """The state at the end of a turn matches the expected query."""

    __slots__ = ()
    name = "expected_state"
    field = "state"
    needs = STATE

    def needs_guard(self, case: Case) -> bool:
        """True: the expected state is a query, which may be slow or user code."""
        return True

    def met(self, turn: ScriptedTurn) -> Met:
        """1 if every scope matches."""
        wanted = turn.expect.state or {}
        ledger, last = turn.ledger, turn.end - 1
        check_lasting(wanted, ledger, turn.end)
        held = ledger.fold() if turn.end == len(ledger) else state_after(ledger, last)
        if matches_state(held, wanted):
            return 1.0, (), (), _NOTHING
        seen = {scope: held.get(scope, {}) for scope in wanted}
        problem = f"the state is {cut(repr(seen), 300)}; expected {shown_value(wanted)}"
        return 0.0, (problem,), (), _NOTHING


class ExpectedStateAfter(Expectation):
    """The share of the named nodes after which the state matches the expected query."""

    __slots__ = ()
    name = "expected_state_after"
    field = "state_after"
    needs = STATE | NODES

    def needs_guard(self, case: Case) -> bool:
        """True: the expected states are queries, which may be slow or user code."""
        return True

    def measure(self, case: Case, ledger: Ledger, world: World) -> Outcome:
        """The mean over the turns, unless the state after a node cannot be known."""
        for turn in scripted_turns(case, ledger):
            for node in (turn.expect.state_after or {}) if turn.reached else ():
                found = state_after_node(turn.ledger, node, self.name, (turn.begin, turn.end))
                if isinstance(found, Unmeasured):
                    return found
        return super().measure(case, ledger, world)

    def met(self, turn: ScriptedTurn) -> Met:
        """The share of the nodes that ended in this turn with the state as expected."""
        wrong: list[str] = []
        wanted = turn.expect.state_after or {}
        for node, query in wanted.items():
            held = state_after_node(turn.ledger, node, self.name, (turn.begin, turn.end))
            if isinstance(held, Score):
                wrong.append(held.reason)
            elif not isinstance(held, Unmeasured) and not matches_state(held, query):
                wrong.append(f"after {node!r} {'; '.join(mismatches(held, query))}")
        return 1 - len(wrong) / len(wanted), wrong, (), _NOTHING


class ExpectedStop(Expectation):
    """The agent was stopped in the turn, by any guardrail, or by the one of that name."""

    __slots__ = ()
    name = "expected_stop"
    field = "stopped_by"
    needs = NODES

    def met(self, turn: ScriptedTurn) -> Met:
        """1 if the expected guardrail stopped it."""
        wanted = turn.expect.stopped_by
        notes = [
            event.data
            for event in turn.ledger[turn.begin : turn.end]
            if type(event) is Noted and event.name == STOPPED and is_object(event.data)
        ]
        seen = [f"{note.get('by')} {note.get('name')}" for note in notes]
        if any(wanted in (note.get("by"), note.get("name")) for note in notes):
            return 1.0, (), seen, _NOTHING
        found = f"stopped by {', '.join(seen)}" if seen else "not stopped"
        return 0.0, (f"{found}; expected to be stopped by {wanted}",), seen, _NOTHING


_TOOLS, _RESPONSE = ExpectedTools(), ExpectedResponse()
_CONTAINS, _STATE = ExpectedContains(), ExpectedState()
_STATE_AFTER, _STOP = ExpectedStateAfter(), ExpectedStop()


def expectations(case: Case) -> dict[str, Metric]:
    """The metrics that this case's turns ask for, by name."""
    found: dict[str, Metric] = {}
    for turn in case.script:
        expect = turn.expect
        if expect is None:
            continue
        if expect.tools is not None:
            found[_TOOLS.name] = _TOOLS
        if expect.response:
            found[_RESPONSE.name] = _RESPONSE
        if expect.contains:
            found[_CONTAINS.name] = _CONTAINS
        if expect.state:
            found[_STATE.name] = _STATE
        if expect.state_after:
            found[_STATE_AFTER.name] = _STATE_AFTER
        if expect.stopped_by:
            found[_STOP.name] = _STOP
        if expect.reference:
            found["expected_reference"] = _likeness()[0]
        if expect.intermediate:
            found["intermediate_responses"] = _likeness()[1]
    return found


@cache
def _likeness() -> tuple[Metric, Metric]:
    # Loaded when needed: most cases do not use ROUGE.
    from greenroom.metrics.intermediate import intermediate_responses
    from greenroom.metrics.likeness import expected_reference

    return expected_reference(), intermediate_responses()
