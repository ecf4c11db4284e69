"""The cases of a report as the page's script reads them: rows of a list, and what opens behind."""

from collections.abc import Sequence

from greenroom.cases.scores import Outcome, Score, Unmeasured
from greenroom.errors import BadInput
from greenroom.ledger.messages import Usage
from greenroom.ledger.plain import Json
from greenroom.reports.failure import differences
from greenroom.reports.html.packed import Place, Trimmer
from greenroom.reports.html.timeline import step_rows, timeline
from greenroom.reports.words import shortened
from greenroom.results.data import outcome_data, problem_data
from greenroom.results.result import CaseResult
from greenroom.results.text import reasons

_LONGEST_WHY = 240
_PASSED, _FAILED, _NOT_APPLICABLE, _UNMEASURED = range(4)
_RANK = {_FAILED: 0, _UNMEASURED: 1, _PASSED: 2, _NOT_APPLICABLE: 3}
_EMPTY: tuple[Json, ...] = (None, "", [], {})


class Names:
    """Names by number, so that ten thousand rows need not repeat them."""

    def __init__(self) -> None:
        self.known: dict[str, int] = {}

    def number(self, name: str) -> int:
        """The number of a name, the same every time."""
        return self.known.setdefault(name, len(self.known))


def case_row(
    trials: Sequence[tuple[CaseResult, Place | None]], metrics: Names, tags: Names
) -> dict[str, Json]:
    """One case in the list, with a short entry for each of its trials."""
    first = trials[0][0]
    names = dict.fromkeys(str(tag) for result, _ in trials for tag in result.tags)
    row: dict[str, Json] = {
        "id": first.case_id,
        "tags": [tags.number(tag) for tag in names],
        "trials": [_trial(result, place, metrics) for result, place in trials],
    }
    name = shortened(first.name, _LONGEST_WHY)
    return {**row, "name": name} if name not in ("", first.case_id) else row


def _trial(result: CaseResult, place: Place | None, metrics: Names) -> dict[str, Json]:
    values = [score.value for score in result.measured.values()]
    ran = result.ended is not None
    why = "; ".join(reasons(result))
    return {
        "n": result.trial,
        "status": result.status,
        "score": round(sum(values) / len(values), 4) if values else None,
        "scores": [[metrics.number(n), *_mark(found)] for n, found in result.scores.items()],
        "s": round(result.seconds, 4) if ran else None,
        "cost": result.cost if ran else None,
        "turns": result.turns if ran else None,
        "why": shortened(" ".join(why.split()), _LONGEST_WHY),
        "pack": None if place is None else [*place],
    }


def _mark(outcome: Outcome) -> tuple[int, float | None]:
    if isinstance(outcome, Score):
        return (_PASSED if outcome.passed else _FAILED), round(outcome.value, 4)
    return (_UNMEASURED if isinstance(outcome, Unmeasured) else _NOT_APPLICABLE), None


def case_details(result: CaseResult, before: Sequence[CaseResult] = ()) -> dict[str, Json]:
    """Everything about one result that is worth opening it for; `before` is its baseline."""
    trimmer = Trimmer()
    blame = result.blame
    # The metrics that need a look come first.
    ranked = sorted(result.scores.items(), key=lambda named: _RANK[_mark(named[1])[0]])
    found: dict[str, Json] = {
        "ended": result.ended,
        "error": trimmer.json(problem_data(result.error)),
        "notes": [trimmer.text(note) for note in [*result.notes, *_replaced(result)]],
        "trace": [result.trace_id, result.trace_link] if result.trace_id else None,
        "blame": None if blame is None else trimmer.json([blame.whom, list(blame.evidence)]),
        "scores": [[name, _outcome(outcome, trimmer)] for name, outcome in ranked],
        "differences": _differences(result, trimmer),
        "before": [_before(earlier, trimmer) for earlier in before],
        **_spent(result, trimmer),
        **_run(result, trimmer),
        "case": _case(result, trimmer),
    }
    kept = {key: value for key, value in found.items() if value not in _EMPTY}
    return {**kept, "cuts": trimmer.cuts} if trimmer.cuts else kept


def _outcome(outcome: Outcome, trimmer: Trimmer) -> Json:
    data = outcome_data(outcome)
    return trimmer.json({key: value for key, value in data.items() if value not in _EMPTY})


def _differences(result: CaseResult, trimmer: Trimmer) -> list[Json]:
    return [
        {
            "turn": one.turn,
            "part": one.part,
            "expected": [trimmer.text(text) for text in one.expected],
            "actual": [trimmer.text(text) for text in one.actual],
        }
        for one in differences(result)
    ]


def _before(earlier: CaseResult, trimmer: Trimmer) -> Json:
    """A trial of the baseline: its verdicts, without its run."""
    scores = {name: _mark(outcome) for name, outcome in earlier.scores.items()}
    return {
        "n": earlier.trial,
        "status": earlier.status,
        "scores": [[trimmer.text(name), *mark] for name, mark in scores.items()],
        "why": shortened("; ".join(reasons(earlier)), _LONGEST_WHY),
    }


def _spent(result: CaseResult, trimmer: Trimmer) -> dict[str, Json]:
    if result.ended is None:
        return {}
    found: dict[str, Json] = {}
    for role in ("", "user_", "judge_"):
        usage: Usage | None = getattr(result, f"{role}usage")
        found[f"{role}cost"] = getattr(result, f"{role}cost")
        found[f"{role}tokens"] = None if usage is None else [usage.input, usage.output]
        found[f"{role}models"] = trimmer.json(getattr(result, f"{role}models"))
    return found


def _run(result: CaseResult, trimmer: Trimmer) -> dict[str, Json]:
    if (ledger := result.ledger_or_none) is not None:
        return {"timeline": [*timeline(ledger, trimmer)]}
    rows = step_rows(result.steps, trimmer)
    return {"timeline": [*rows], "brief": True} if rows else {}


def _case(result: CaseResult, trimmer: Trimmer) -> Json:
    try:
        return trimmer.json(result.case)
    except BadInput:
        # A case that is not JSON was not run either; its error says why.
        return None


def _replaced(result: CaseResult) -> list[str]:
    return [f"{name} was replaced {how}" for name, how in result.replaced.items()]
