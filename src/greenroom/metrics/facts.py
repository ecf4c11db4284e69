"""Facts of a case or trial that may be missing.

Each function returns the fact, or the outcome that says why there is none: what the case does not
say makes a metric not applicable, what the trial does not show leaves it unmeasured.
"""

from collections.abc import Iterable, Mapping
from itertools import pairwise
from math import fsum
from operator import attrgetter
from typing import Final, TypeVar

from greenroom.cases.case import Case, Expect
from greenroom.cases.scores import NotApplicable, Unmeasured
from greenroom.ledger import questions
from greenroom.ledger.events import (
    Event,
    ModelReplied,
    RunResumed,
    Source,
    ToolFailed,
    ToolReturned,
)
from greenroom.ledger.ledger import Ledger
from greenroom.ledger.messages import ToolCall, Usage, is_blank
from greenroom.metrics.needs import CALLS, MODELS, TIMES, WORDS, lacking
from greenroom.metrics.turns import ScriptedTurn, scripted_turns

Fact = TypeVar("Fact")
Missing = NotApplicable | Unmeasured

_ANSWERS = (ModelReplied, ToolReturned, ToolFailed)
_KEPT: Final[Mapping[Source, str]] = {
    "replayed": "answers in this trial come from a recording",
    "cached": "answers in this trial come from a cache",
}
_CLOCK_JITTER = 1e-3
"""By how many seconds a clock that is kept in step with others may go back."""


def spoken(ledger: Ledger) -> str | Unmeasured:
    """The agent's last words."""
    if (lacks := lacking(ledger, WORDS)) is not None:
        return lacks
    # There are few paths, each with its last words, but there may be many events.
    said = ledger.index_of().spoken.values()
    if not said:
        return Unmeasured("the agent never spoke, so there is no response to measure")
    last = max(said, key=attrgetter("seq")).text
    if is_blank(last):
        return Unmeasured("the agent's last response is empty, so there is nothing to measure")
    return last


def kept_answers(events: Iterable[Event]) -> str:
    """Which kept answers the agent got in place of new ones, in words; empty if it got none."""
    sources = {e.source for e in events if isinstance(e, _ANSWERS) and e.voice == "agent"}
    return next((words for source, words in _KEPT.items() if source in sources), "")


def clock_trouble(ledger: Ledger) -> Unmeasured | None:
    """Why the times of a trial measure nothing; None if they do.

    Those of an imported one are from several clocks, and a call may end after the last words.
    """
    steps = (b.at - a.at for a, b in pairwise(ledger) if not isinstance(b, RunResumed))
    if min(steps, default=0.0) >= -_CLOCK_JITTER or questions.is_imported(ledger):
        return None
    return Unmeasured("the clock was set back meanwhile, so how long it took is unknown")


def known_seconds(ledger: Ledger) -> float | Missing:
    """How long the trial took, if its answers came when they were asked for."""
    if (lacks := lacking(ledger, TIMES) or clock_trouble(ledger)) is not None:
        return lacks
    if kept := kept_answers(ledger):
        return NotApplicable(f"{kept}, so its time is not the agent's")
    return questions.seconds(ledger)


def known_cost(ledger: Ledger) -> float | Missing:
    """What the agent's models cost in USD; for a replay, the cost when they were recorded."""
    if (lacks := lacking(ledger, MODELS) or _cached(ledger)) is not None:
        return lacks
    total = questions.cost(ledger)
    if total is not None:
        before = (r for r in ledger.index_of().replied if r.source == "replayed")
        return total + fsum(reply.cost or 0.0 for reply in before)
    unpriced = {r.model or "unnamed" for r in ledger.of(ModelReplied) if r.cost is None}
    return Unmeasured(f"the cost is unknown: no price for {', '.join(sorted(unpriced))}")


def known_usage(ledger: Ledger) -> Usage | Missing:
    """The tokens of the agent's models; for a replay, those when they were recorded."""
    if (lacks := lacking(ledger, MODELS) or _cached(ledger)) is not None:
        return lacks
    total = questions.usage(ledger)
    if total is not None:
        return total
    silent = {r.model or "unnamed" for r in ledger.of(ModelReplied) if r.usage is None}
    return Unmeasured(f"the usage is unknown: no token counts from {', '.join(sorted(silent))}")


def _cached(ledger: Ledger) -> NotApplicable | None:
    """Why what the models used is not what the agent needs; None if it is."""
    if all(reply.source != "cached" for reply in ledger.index_of().replied):
        return None
    return NotApplicable(f"{_KEPT['cached']}, which cost nothing and used no tokens")


def seen_calls(ledger: Ledger) -> list[questions.CallRecord] | Unmeasured:
    """The tool calls of a trial with their results, if they could be observed."""
    return lacking(ledger, CALLS) or questions.asked_calls(ledger)


def reference(case: Case) -> str | NotApplicable:
    """The response the case expects of the last turn that expects one."""
    for turn in reversed(case.script):
        if turn.expect is not None and (text := reference_of(turn.expect)):
            return text
    return NotApplicable(
        "the case gives no reference: no turn has Expect(reference=...) or Expect(response=...)"
    )


def last_pair(case: Case, ledger: Ledger) -> tuple[ScriptedTurn, str] | Missing:
    """The last turn that has a reference, if the trial reached it, and the reference."""
    wanted = reference(case)
    if isinstance(wanted, NotApplicable):
        return wanted
    turn = [turn for turn in scripted_turns(case, ledger) if reference_of(turn.expect)][-1]
    if not turn.reached:
        return Unmeasured(f"turn {turn.number}, which has the reference, was never reached")
    return turn, wanted


def reference_of_last_words(case: Case, ledger: Ledger) -> str | Missing:
    """The reference that the agent's last words can be compared with: that of the same turn."""
    found = last_pair(case, ledger)
    if isinstance(found, Missing):
        return found
    turn, wanted = found
    if all(said.seq < turn.end for said in ledger.index_of().spoken.values()):
        return wanted
    return NotApplicable(
        f"the case's last reference is for turn {turn.number}, and the agent spoke again in a later one"
    )


def reference_of(expect: Expect) -> str | None:
    """The text that a turn's response is compared with: its `reference`, else its `response`."""
    return expect.response if expect.reference is None else expect.reference


def expected_calls(case: Case) -> list[ToolCall | str] | NotApplicable:
    """The calls the case expects, turn by turn, as it wrote them; [] allows none."""
    expected = [turn.expect.tools for turn in case.script if turn.expect is not None]
    given = [tools for tools in expected if tools is not None]
    if not given:
        return NotApplicable("the case expects no particular calls: no turn has Expect(tools=...)")
    return [wanted for tools in given for wanted in tools]


def or_none(fact: Fact | Missing) -> Fact | None:
    """The fact, or None where it is missing."""
    return None if isinstance(fact, NotApplicable | Unmeasured) else fact
