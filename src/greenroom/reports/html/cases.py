"""The cases of a report as the page's script reads them: rows of a list, and what opens behind."""

from collections.abc import Sequence

from greenroom.cases.scores import Outcome, Score, Unmeasured
from greenroom.errors import BadInput
from greenroom.ledger.messages import Usage
from greenroom.ledger.plain import Json
from greenroom.reports.difference import differences
from greenroom.reports.html.packed import Place
from greenroom.reports.html.timeline import step_rows, timeline
from greenroom.reports.html.trim import Trimmer
from greenroom.reports.words import shortened
from greenroom.results.data import outcome_data, problem_data
from greenroom.results.result import CaseResult
from greenroom.results.text import reasons

_LONGEST_WHY = 240
_PASSED, _FAILED, _NOT_APPLICABLE, _UNMEASURED = range(4)


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
    worn = dict.fromkeys(str(tag) for result, _ in trials for tag in result.tags)
    row: dict[str, Json] = {
        "id": first.case_id,
        "tags": [tags.number(tag) for tag in worn],
        "trials": [_trial(result, place, metrics) for result, place in trials],
    }
    name = shortened(first.name, _LONGEST_WHY)
    return {**row, "name": name} if name not in ("", first.case_id) else row


def _trial(result: CaseResult, place: Place | None, metrics: Names) -> dict[str, Json]:
    values = [score.value for score in result.measured.values()]
    played = result.ended is not None
    why = "; ".join(reasons(result))
    return {
        "n": result.trial,
        "status": result.status,
        "score": round(sum(values) / len(values), 4) if values else None,
        "scores": [[metrics.number(n), *_mark(found)] for n, found in result.scores.items()],
        "s": round(result.seconds, 4) if played else None,
        "cost": result.cost if played else None,
        "turns": result.turns if played else None,
        "why": shortened(" ".join(why.split()), _LONGEST_WHY),
        "pack": place,
    }


def _mark(outcome: Outcome) -> tuple[int, float | None]:
    if isinstance(outcome, Score):
        return (_PASSED if outcome.passed else _FAILED), round(outcome.value, 4)
    return (_UNMEASURED if isinstance(outcome, Unmeasured) else _NOT_APPLICABLE), None


def case_details(result: CaseResult, before: Sequence[CaseResult] = ()) -> dict[str, Json]:
    """Everything about one result that is worth opening it for; `before` is its baseline."""
    scissors = Trimmer()
    blame = result.blame
    found: dict[str, Json] = {
        "ended": result.ended,
        "error": scissors.json(problem_data(result.error)),
        "notes": [scissors.text(note) for note in result.notes],
        "blame": None if blame is None else scissors.json([blame.whom, list(blame.evidence)]),
        "scores": _scores(result, scissors),
        "differences": _differences(result, scissors),
        "before": [_before(earlier, scissors) for earlier in before],
        **_spent(result, scissors),
        **_run(result, scissors),
        "case": _case(result, scissors),
    }
    kept = {key: value for key, value in found.items() if value not in _SILENT}
    return {**kept, "cuts": scissors.cuts} if scissors.cuts else kept


def _scores(result: CaseResult, scissors: Trimmer) -> list[Json]:
    """Name and outcome of each metric, those that need a look first."""
    ranked = sorted(result.scores.items(), key=lambda named: _RANK[_mark(named[1])[0]])
    return [[name, _outcome(outcome, scissors)] for name, outcome in ranked]


_RANK = {_FAILED: 0, _UNMEASURED: 1, _PASSED: 2, _NOT_APPLICABLE: 3}


def _outcome(outcome: Outcome, scissors: Trimmer) -> Json:
    data = outcome_data(outcome)
    return scissors.json({key: value for key, value in data.items() if value not in _SILENT})


_SILENT: tuple[Json, ...] = (None, "", [], {})


def _differences(result: CaseResult, scissors: Trimmer) -> list[Json]:
    return [
        {
            "turn": one.turn,
            "part": one.part,
            "expected": [scissors.text(text) for text in one.expected],
            "actual": [scissors.text(text) for text in one.actual],
        }
        for one in differences(result)
    ]


def _before(earlier: CaseResult, scissors: Trimmer) -> Json:
    """A trial of the baseline: its verdicts, without its run."""
    scores = {name: _mark(outcome) for name, outcome in earlier.scores.items()}
    return {
        "n": earlier.trial,
        "status": earlier.status,
        "scores": [[scissors.text(name), *mark] for name, mark in scores.items()],
        "why": shortened("; ".join(reasons(earlier)), _LONGEST_WHY),
    }


def _spent(result: CaseResult, scissors: Trimmer) -> dict[str, Json]:
    if result.ended is None:
        return {}
    return {
        "cost": result.cost,
        "tokens": _tokens(result.usage),
        "models": scissors.json(result.models),
        "user_cost": result.user_cost,
        "user_tokens": _tokens(result.user_usage),
        "user_models": scissors.json(result.user_models),
        "judge_cost": result.judge_cost,
        "judge_tokens": _tokens(result.judge_usage),
        "judge_models": scissors.json(result.judge_models),
    }


def _tokens(usage: Usage | None) -> list[int] | None:
    return None if usage is None else [usage.input, usage.output]


def _run(result: CaseResult, scissors: Trimmer) -> dict[str, Json]:
    if (ledger := result.ledger) is not None:
        return {"timeline": timeline(ledger, scissors)}
    rows = step_rows(result.steps, scissors)
    return {"timeline": rows, "brief": True} if rows else {}


def _case(result: CaseResult, scissors: Trimmer) -> Json:
    try:
        return scissors.json(result.case)
    except BadInput:
        # A case that cannot be written down was not played either; its error says why.
        return None
