"""A run turn by turn: each as a case and a ledger of its own, for judges that look at single turns."""

from collections.abc import Mapping
from dataclasses import replace

from greenroom.cases.case import Case, Expect, Turn
from greenroom.ledger.events import StateChanged
from greenroom.ledger.ledger import Ledger
from greenroom.ledger.records import record
from greenroom.metrics.turns import turn_spans

Span = tuple[int, int]


@record
class JudgedTurn:
    """One turn as if it were a whole run: what it expects, and what happened in it."""

    number: int
    case: Case
    ledger: Ledger
    reached: bool


def judged_turns(case: Case, ledger: Ledger) -> list[JudgedTurn]:
    """Every turn of the script and every other that the user began, whatever it expects."""
    spans = turn_spans(case, ledger)
    count = max(len(case.script), *(index + 1 for index in spans), 0)
    return [_turn(case, ledger, spans, index) for index in range(count)]


def _turn(case: Case, ledger: Ledger, spans: Mapping[int, Span], index: int) -> JudgedTurn:
    script = case.script
    turn = script[index] if index < len(script) else Turn("")
    alone = replace(turn, expect=turn.expect or Expect())
    single = replace(case, says="", expect=None, turns=[alone], user=None)
    reached = index in spans
    events = _events(ledger, spans, index) if reached else Ledger()
    return JudgedTurn(index + 1, single, events, reached)


def _events(ledger: Ledger, spans: Mapping[int, Span], index: int) -> Ledger:
    """What happened in a turn, after how the run began and what earlier turns made of the state."""
    first = min(begin for begin, _ in spans.values())
    begin, end = spans[index]
    part = Ledger()
    for event in ledger[:end]:
        if event.seq < first or event.seq >= begin or isinstance(event, StateChanged):
            part.append(replace(event, seq=-1), event.at)
    return part
