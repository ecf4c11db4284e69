"""What metrics need to have been recorded: without it there is no score."""

from collections.abc import Callable, Iterable, Mapping
from typing import cast, get_args

from greenroom.cases.case import Case
from greenroom.cases.scores import Unmeasured
from greenroom.errors import BadMetric
from greenroom.ledger import questions
from greenroom.ledger.events import Unseen
from greenroom.ledger.ledger import Ledger

Needs = frozenset[Unseen]

EVERYTHING: Needs = frozenset(get_args(Unseen))
NOTHING: Needs = frozenset()
WORDS: Needs = frozenset(("words",))
MODELS: Needs = frozenset(("models",))
USER: Needs = frozenset(("user",))
TIMES: Needs = frozenset(("times",))
STATE: Needs = frozenset(("state",))
NODES: Needs = frozenset(("nodes",))
CALLS: Needs = frozenset(("tools", "args", "results"))
CALL_NAMES: Needs = frozenset(("tools",))
CALL_ARGS: Needs = frozenset(("tools", "args"))

_ALSO: Mapping[Unseen, Needs] = {
    "tools": frozenset(("args", "results", "nodes")),
    "models": frozenset(("nodes",)),
}
"""What else cannot be seen if something cannot."""
_WORDS: Mapping[Unseen, str] = {
    "models": "its models run where they cannot be seen, so what they used is unknown",
    "tools": "the agent's tools run where they cannot be seen, so its calls are unknown",
    "args": "the record does not hold what tools were given",
    "results": "the record does not hold what tools returned",
    "words": "the record does not hold what the agent said",
    "user": "the record does not hold what the user said",
    "state": "the record does not hold the state",
    "nodes": "the agent's inner steps are not seen, including handovers",
    "times": "the record does not say when anything happened",
}


def unseen_facts(ledger: Ledger) -> Needs:
    """What a trial does not show, with what follows from that."""
    named = questions.unseen(ledger)
    if not named:
        return NOTHING
    return frozenset(named).union(*(_ALSO.get(name, NOTHING) for name in named))


def lacking(ledger: Ledger, needs: Needs) -> Unmeasured | None:
    """Why a trial cannot be measured by these needs; None if it can."""
    missing = needs & unseen_facts(ledger) if needs else NOTHING
    return without(missing) if missing else None


def without(missing: Needs) -> Unmeasured:
    """The outcome of a metric that needs what is missing: the most basic one is the reason."""
    return Unmeasured(next(words for name, words in _WORDS.items() if name in missing))


def needs_of(metric: object, case: Case) -> Needs:
    """What a metric needs for a case: as declared by `needs` or `needs_for(case)`; else everything."""
    for_case: Callable[[Case], Needs] | None = getattr(metric, "needs_for", None)
    if for_case is not None:
        return for_case(case)
    declared = getattr(metric, "needs", None)
    return EVERYTHING if declared is None else checked_needs(declared, "the metric")


def checked_needs(given: object, where: str) -> Needs:
    """The facts that are named, if each is one."""
    if not isinstance(given, Iterable):
        raise BadMetric(f"{where} has needs={given!r}; give a list of names.")
    names: list[object] = (
        [given] if isinstance(given, str) else list(cast("Iterable[object]", given))
    )
    for name in names:
        if name not in EVERYTHING:
            raise BadMetric(
                f"{where} needs {name!r}, which no record holds; use names from {', '.join(get_args(Unseen))}."
            )
    return frozenset(names)  # pyright: ignore[reportReturnType] - each is known


def call_needs(case: Case) -> Needs:
    """What it takes to compare calls with the expected ones: arguments only if some are expected."""
    turns = (turn.expect.tools or () for turn in case.script if turn.expect is not None)
    by_name = all(isinstance(wanted, str) for tools in turns for wanted in tools)
    return CALL_NAMES if by_name else CALL_ARGS
