"""Everything that a page shows about one trial."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from greenroom.cases.scores import Outcome, Score, Unmeasured
from greenroom.errors import BadInput
from greenroom.ledger.changes import State, state_in
from greenroom.ledger.events import RunStarted
from greenroom.ledger.plain import Json, is_object
from greenroom.reports.failure import CHECKED_BY, differences
from greenroom.reports.page.alignment import beside
from greenroom.reports.page.graph import graph_of
from greenroom.reports.page.head import spent_data
from greenroom.reports.page.shapes import Earlier, Story
from greenroom.reports.page.short_values import Trimmer
from greenroom.reports.page.timeline import Row, step_rows, timeline
from greenroom.results.data import outcome_data, problem_data
from greenroom.results.result import CaseResult
from greenroom.results.text import reasons
from greenroom.results.trials import Parting
from greenroom.results.words import shortened

_LONGEST_WHY = 240
_MOST_PLACES = 200
_PASSED, _FAILED, _NOT_APPLICABLE, _UNMEASURED = range(4)
_RANK = {_FAILED: 0, _UNMEASURED: 1, _PASSED: 2, _NOT_APPLICABLE: 3}
_EMPTY: tuple[Json, ...] = (None, "", [], {})


def story_of(
    result: CaseResult,
    before: Sequence[CaseResult] = (),
    *,
    beside_baseline: bool = False,
    chosen: int | None = None,
    parted: Parting | None = None,
) -> Story:
    """The story of one trial; `before` are the trials of the baseline, and `parted` where its own trials part.

    With `beside_baseline` one of them is shown next to it, if its ledger was kept: the `chosen` one, or the most
    informative one.
    """
    trimmer = Trimmer()
    ledger = result.ledger_or_none
    if ledger is not None:
        result = replace(result, kept=ledger)  # the ledger is read only once
    blame = result.blame
    # The metrics that need a look come first.
    ranked = sorted(result.scores.items(), key=lambda named: _RANK[_mark(named[1])[0]])
    rows, brief = _rows(result, trimmer)
    story = Story(
        ended=result.ended,
        error=trimmer.json(problem_data(result.error)),
        notes=[trimmer.text(note) for note in result.notes],
        trace=(result.trace_id, result.trace_link) if result.trace_id else None,
        blame=None if blame is None else (blame.whom, list(map(trimmer.text, blame.evidence))),
        scores=[
            (name, _outcome(outcome, result.replaced.get(name, ""), trimmer))
            for name, outcome in ranked
        ],
        differences=_differences(result, trimmer),
        before=[_before(earlier, trimmer) for earlier in before],
        parted="" if parted is None else trimmer.text(str(parted)),
        spent=spent_data(result) if result.ended is not None else [],
        timeline=rows,
        brief=brief,
        case=_case(result, trimmer),
    )
    if ledger is not None and isinstance(first := ledger.first, RunStarted):
        # The state that the trial began with.
        places = [*state_places(state_in(first.state))][:_MOST_PLACES] if first.state else []
        story.state = [(place, trimmer.json(value)) for place, value in places]
        story.graph = graph_of(first.agent, ledger)
    if beside_baseline and rows:
        story.earlier = _earlier(result, before, rows, chosen)
    story.cuts = trimmer.cuts
    return story


def state_places(state: State) -> Iterator[tuple[str, Json]]:
    """The places of a state and their values: `session.order`."""
    for scope, held in state.items():
        yield from _leaves(scope, held)


def _leaves(place: str, value: Json) -> Iterator[tuple[str, Json]]:
    if is_object(value) and value:
        for key, inner in value.items():
            yield from _leaves(f"{place}.{key}", inner)
    else:
        yield place, value


def _outcome(outcome: Outcome, replaced: str, trimmer: Trimmer) -> Json:
    data = {**outcome_data(outcome), "replaced": replaced}
    return trimmer.json({key: value for key, value in data.items() if value not in _EMPTY})


def _mark(outcome: Outcome) -> tuple[int, float | None]:
    if isinstance(outcome, Score):
        return (_PASSED if outcome.passed else _FAILED), round(outcome.value, 4)
    return (_UNMEASURED if isinstance(outcome, Unmeasured) else _NOT_APPLICABLE), None


def _differences(result: CaseResult, trimmer: Trimmer) -> list[dict[str, Json]]:
    unmet = [name for name, score in result.measured.items() if not score.passed]
    return [
        {
            "turn": one.turn,
            "part": one.part,
            "metrics": [name for name in unmet if CHECKED_BY.get(name) == one.part],
            "expected": [trimmer.text(text) for text in one.expected],
            "actual": [trimmer.text(text) for text in one.actual],
        }
        for one in differences(result)
    ]


def _before(earlier: CaseResult, trimmer: Trimmer) -> dict[str, Json]:
    """A trial of the baseline: its verdicts, without its ledger."""
    scores = {name: _mark(outcome) for name, outcome in earlier.scores.items()}
    return {
        "n": earlier.trial,
        "status": earlier.status,
        "scores": [[trimmer.text(name), *mark] for name, mark in scores.items()],
        "why": shortened("; ".join(reasons(earlier)), _LONGEST_WHY),
    }


def _earlier(
    result: CaseResult, before: Sequence[CaseResult], rows: Sequence[Row], chosen: int | None
) -> Earlier | None:
    """The chosen trial of the baseline next to this one, or the most informative: one that ended differently."""
    ranked = sorted(before, key=lambda one: (one.trial != chosen, one.passed == result.passed))
    for earlier in ranked:
        then, _ = _rows(earlier, Trimmer())
        if then:
            return Earlier(
                n=earlier.trial,
                status=earlier.status,
                why=shortened("; ".join(reasons(earlier)), _LONGEST_WHY),
                timeline=then,
                beside=beside(then, rows),
            )
    return None


def _rows(result: CaseResult, trimmer: Trimmer) -> tuple[list[Row], bool]:
    """What happened, and whether only the trajectory was kept of it."""
    if (ledger := result.ledger_or_none) is not None:
        return timeline(ledger, trimmer), False
    rows = step_rows(result.steps, trimmer)
    return rows, bool(rows)


def _case(result: CaseResult, trimmer: Trimmer) -> Json:
    try:
        return trimmer.json(result.case)
    except BadInput:
        # A case that is not JSON never ran; its error says why.
        return None
