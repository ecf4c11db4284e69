"""The summary of a simulated conversation, read from its ledger."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from greenroom.cases.case import Case
from greenroom.cases.goals import Claim, claims, shown_goals
from greenroom.cases.reader import case_from
from greenroom.cases.users import person_of
from greenroom.ledger import questions
from greenroom.ledger.events import CUT_SHORT, EndReason
from greenroom.ledger.ledger import Ledger
from greenroom.ledger.messages import Message
from greenroom.ledger.plain import Json, as_object


@dataclass(frozen=True, slots=True, kw_only=True)
class Simulation:
    """One simulated conversation: how it ended, what was said, and which goals were reached.

    `goals_achieved` are those the user called reached with words that the agent really said; the
    other `claims` show nothing. Whether a goal was met is for metrics to judge.
    """

    case_id: str
    ended: EndReason | None = None
    turns: int = 0
    conversation: Sequence[Message] = ()
    goals: Sequence[str] = ()
    goals_achieved: Sequence[str] = ()
    claims: Sequence[Claim] = ()
    error: str = ""
    ledger: Ledger | None = field(default=None, compare=False, repr=False)

    @property
    def completed(self) -> bool:
        """Whether the conversation ended by itself: no limit, no error."""
        return self.ended is not None and self.ended not in CUT_SHORT


def simulation_of(ledger: Ledger, case: Case | None = None) -> Simulation:
    """The summary of a trial; without `case`, the one recorded in the ledger is used."""
    if case is None:
        first = questions.started(ledger)
        recorded = None if first is None else first.case
        case = Case("unrecorded")
        if recorded is not None:
            case = case_from(as_object(recorded), "the recorded case", live=True)
    person = person_of(case.user)
    end = questions.ended(ledger)
    found = claims(ledger, person.goals, person.stop_signal) if person else []
    return Simulation(
        case_id=case.id,
        ended=end.reason if end else None,
        turns=questions.turns(ledger),
        conversation=tuple(questions.messages(ledger)),
        goals=person.goals if person else (),
        goals_achieved=tuple(shown_goals(found)),
        claims=tuple(found),
        error=end.error if end else "",
        ledger=ledger,
    )


def simulation_data(one: Simulation) -> dict[str, Json]:
    """A simulation as JSON, to be written to a file."""
    return {
        "scenario_id": one.case_id,
        "completed": one.completed,
        "ended": one.ended,
        "turns": one.turns,
        "conversation": [{"role": m.role, "content": m.text} for m in one.conversation],
        "goals": list(one.goals),
        "goals_achieved": list(one.goals_achieved),
        "claims": [{"goal": c.goal, "quote": c.quote, "shown": c.shown} for c in one.claims],
        "error": one.error,
    }
