"""A report comes back from its file as it was, and a bad file is named with its place."""

import json
from copy import deepcopy
from dataclasses import replace
from math import nan
from pathlib import Path
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from greenroom import (
    Agent,
    Case,
    EvalSet,
    Expect,
    Lines,
    NotApplicable,
    Report,
    Score,
    Scripted,
    Turn,
    Unmeasured,
    call,
    metric,
    rehearse,
    tool,
)
from greenroom.errors import BadFile
from greenroom.ledger import Usage
from greenroom.ledger.events import LIMITS
from greenroom.ledger.trajectory import Step
from greenroom.metrics import contains
from greenroom.results import CaseResult, Problem
from greenroom.results.blame import Blame
from greenroom.results.data import report_data


@tool
def stock(item: str) -> int:
    """How many are left."""
    raise RuntimeError("never reached in a rehearsal")


@metric
def broken(response: str) -> float:
    raise ValueError(f"no idea about {response!r}")


AGENT = Agent("shop", model=Scripted(call("stock", item="cup"), "3 cups.", "Bye."), tools=[stock])
SHOP = EvalSet(
    "shop",
    [
        Case("good", says="Cups?", mocks={"stock": 3}, metrics=[contains("3")], tags=["smoke"]),
        Case("bad", says="Cups?", mocks={"stock": 3}, expect=Expect(contains="4 cups")),
        Case("unmocked", says="Cups?", metrics=[contains("3")]),
        Case("broken", says="Cups?", mocks={"stock": 3}, metrics=[broken, contains("3")]),
        Case(
            "two", turns=[Turn("Cups?"), Turn("Bye")], mocks={"stock": 3}, metrics=[contains("B")]
        ),
    ],
    name="The shop",
)


@pytest.fixture(scope="module")
def played() -> Report:
    return rehearse(AGENT, SHOP)


def reloaded(report: Report, folder: Path) -> Report:
    return Report.load(report.save(folder / "eval_report.json"))


def test_a_played_report_comes_back_as_it_was(played: Report, tmp_path: Path) -> None:
    again = reloaded(played, tmp_path)
    assert report_data(again) == report_data(played)
    assert (again.id, again.evalset_id, again.name) == (played.id, "shop", "The shop")
    assert (again.summary, again.metrics, again.at) == (played.summary, played.metrics, played.at)
    assert str(again) == str(played)
    for one, other in zip(again, played, strict=True):
        assert one.trajectory == other.trajectory
        assert one.responses == other.responses
        assert (one.case, one.error, one.status) == (other.case, other.error, other.status)


def test_a_report_knows_its_run(played: Report) -> None:
    assert len(played.id) == 12
    assert played.id != rehearse(AGENT, SHOP.limit(1)).id
    assert [result.case_id for result in played.failures] == ["bad", "unmocked", "broken"]
    assert [result.case_id for result in played.errors] == ["unmocked", "broken"]


def test_a_file_says_all_that_a_reader_needs(played: Report, tmp_path: Path) -> None:
    data = json.loads(played.save(tmp_path / "r.json").read_text())
    assert (data["version"], data["kind"], data["evalset_id"]) == (1, "report", "shop")
    counts = {key: data["summary"][key] for key in ("total", "passed", "failed", "errors")}
    assert counts == {"total": 5, "passed": 2, "failed": 1, "errors": 2}
    assert data["summary"]["pass_rate"] == pytest.approx(2 / 3)
    name = contains("3").name
    assert data["summary"]["metrics"][name] == {
        "measured": 2,
        "passed": 2,
        "failed": 0,
        "not_applicable": 0,
        "unmeasured": 1,
        "mean": 1.0,
        "min": 1.0,
        "max": 1.0,
    }
    assert [(e["case_id"], e["phase"]) for e in data["errors"]] == [
        ("unmocked", "system"),
        ("broken", "metric"),
    ]
    two = data["results"][4]
    assert two["responses"] == ["3 cups.", "Bye."]
    assert [step["name"] for step in two["trajectory"] if step["type"] == "tool"] == ["stock"]
    assert two["case"]["turns"] == [{"says": "Cups?"}, {"says": "Bye"}]
    assert two["ended"] == "completed"


def test_without_ledgers_what_fell_short_is_still_told(played: Report, tmp_path: Path) -> None:
    lean = rehearse(AGENT, SHOP, keep_ledgers=False)
    assert all(result.ledger_or_none is None for result in lean)
    for one, other in zip(reloaded(lean, tmp_path), played, strict=True):
        if one.passed:
            assert one.trajectory == []
            continue
        assert one.responses == other.responses
        shown = [(step.type, step.name, step.args) for step in one.trajectory]
        assert shown == [(step.type, step.name, step.args) for step in other.trajectory]
        assert one.case == other.case
        assert (one.blame is None) == (other.blame is None)


def test_failures_only_shows_what_did_not_pass_and_counts_everything(
    played: Report, tmp_path: Path
) -> None:
    path = played.save(tmp_path / "failures.json", failures_only=True)
    data = json.loads(path.read_text())
    assert [result["case_id"] for result in data["results"]] == ["bad", "unmocked", "broken"]
    assert data["summary"]["total"] == 5
    with pytest.raises(BadFile, match="failures only, so its counts cannot be restored"):
        Report.load(path)


def test_a_file_is_pretty_or_on_one_line(played: Report, tmp_path: Path) -> None:
    pretty = played.save(tmp_path / "a.json").read_text()
    short = played.save(tmp_path / "b.json", indent=None).read_text()
    assert pretty.startswith('{\n  "version": 1')
    assert short.count("\n") == 1
    assert json.loads(pretty) == json.loads(short)


def test_the_usual_name_is_eval_report(
    played: Report, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert played.save() == Path("eval_report.json")
    assert Report.load().id == played.id
    assert [path.name for path in tmp_path.iterdir()] == ["eval_report.json"]


def test_a_report_that_cannot_be_written_leaves_the_old_one(
    played: Report, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = played.save(tmp_path / "r.json")

    def full(*_: object) -> None:
        raise OSError("no space left on device")

    monkeypatch.setattr(Path, "replace", full)
    with pytest.raises(BadFile, match="cannot write the report"):
        rehearse(AGENT, SHOP.limit(1)).save(path)
    assert Report.load(path).id == played.id
    assert [file.name for file in tmp_path.iterdir()] == ["r.json"]


class _Shy:
    def __repr__(self) -> str:
        raise RuntimeError("not today")


def test_details_that_are_no_json_are_shown_and_never_nan(tmp_path: Path) -> None:
    odd = {"nan": nan, "set": {1}, "fine": [1, {"deep": nan}], "shy": _Shy()}
    score = Score(0.5, details=odd, measured=nan, threshold=nan, passed=False)
    report = Report([CaseResult(case_id="c", status="failed", scores={"m": score})])
    text = report.save(tmp_path / "r.json").read_text()
    assert "NaN" not in text
    [result] = Report.load(tmp_path / "r.json")
    assert result.scores["m"] == Score(
        0.5,
        passed=False,
        details={
            "nan": "nan",
            "set": "{1}",
            "fine": [1, {"deep": "nan"}],
            "shy": "<_Shy that cannot be shown: RuntimeError>",
        },
        measured="nan",
    )


def test_half_a_character_survives(tmp_path: Path) -> None:
    report = Report([CaseResult(case_id="c", status="skipped", notes=("caf\udce9 é",))])
    [result] = reloaded(report, tmp_path)
    assert result.notes == ("caf\udce9 é",)


def test_half_a_character_in_the_name_of_a_report_survives(tmp_path: Path) -> None:
    report = Report([CaseResult(case_id="c", status="skipped")], name="caf\udce9")
    assert reloaded(report, tmp_path).name == "caf\udce9"


class _Half(float):
    """As numbers of numpy are: a float to Python, and foreign to an encoder."""


def test_a_number_of_another_library_is_written_as_a_number(tmp_path: Path) -> None:
    scored = CaseResult(case_id="c", status="passed", scores={"m": Score(_Half(0.5), True)})
    [result] = reloaded(Report([scored]), tmp_path)
    assert result.measured["m"].value == 0.5


# Any report

TEXTS = st.text(max_size=5)
NUMBERS = st.floats(0, 1e6, allow_nan=False)
JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-9, 9)
    | TEXTS
    | st.floats(allow_nan=False, allow_infinity=False),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(TEXTS, inner, max_size=2),
    max_leaves=4,
)
PHASES = st.sampled_from(["system", "agent", "user_agent", "metric"])
OUTCOMES = st.one_of(
    st.builds(NotApplicable, TEXTS),
    st.builds(Unmeasured, TEXTS, PHASES),
    st.builds(
        Score,
        st.floats(0, 1),
        st.booleans(),
        threshold=st.none() | st.floats(0, 1),
        reason=TEXTS,
        evidence=st.lists(TEXTS, max_size=2).map(tuple),
        details=JSON,
        measured=JSON,
        name=TEXTS,
    ),
)
USAGES = st.none() | st.builds(Usage, st.integers(0, 9), st.integers(0, 9))
STEPS = st.builds(
    Step,
    st.sampled_from(["node", "tool", "message", "conditional", "custom"]),
    TEXTS | st.just("user"),
    JSON,
    NUMBERS,
    NUMBERS,
    JSON,
)
MODELS = st.dictionaries(TEXTS, st.integers(0, 9), max_size=2)
RESULTS = st.builds(
    CaseResult,
    case_id=TEXTS,
    status=st.sampled_from(["passed", "failed", "error", "terminated", "skipped"]),
    name=TEXTS,
    tags=st.lists(TEXTS, max_size=2).map(tuple),
    trial=st.integers(1, 5),
    scores=st.dictionaries(TEXTS, OUTCOMES, max_size=3),
    ended=st.none() | st.sampled_from(["completed", "finished", "max_turns", "error"]),
    error=st.none() | st.builds(Problem, PHASES, TEXTS, TEXTS),
    turns=st.integers(0, 9),
    seconds=NUMBERS,
    usage=USAGES,
    cost=st.none() | NUMBERS,
    user_usage=USAGES,
    user_cost=st.none() | NUMBERS,
    judge_usage=USAGES,
    judge_cost=st.none() | NUMBERS,
    models=MODELS,
    user_models=MODELS,
    judge_models=MODELS,
    notes=st.lists(TEXTS, max_size=2).map(tuple),
    asked=st.none() | st.dictionaries(TEXTS, JSON, max_size=2),
    steps=st.lists(STEPS, max_size=4),
    blamed=st.none()
    | st.builds(Blame, st.sampled_from(["agent", "user"]), st.lists(TEXTS, max_size=2).map(tuple)),
)


def sound(result: CaseResult) -> CaseResult:
    """The result with a status that its scores and its end do not speak against."""
    fell = any(one.passed is False or isinstance(one, Unmeasured) for one in result.scores.values())
    if result.status == "skipped":
        return result if result.error else replace(result, scores={})
    limit = (result.ended in LIMITS) != (result.status == "terminated") and result.ended is not None
    broke = result.ended == "error" or (limit and result.status in ("passed", "terminated"))
    lacks = any(isinstance(one, Unmeasured) for one in result.scores.values()) or result.error
    fails = any(isinstance(one, Score) and not one.passed for one in result.scores.values())
    broke = broke or (result.passed and (fell or result.error))
    broke = broke or (result.status == "failed" and (lacks or (result.scores and not fails)))
    if result.status != "error" and not broke:
        return result
    return replace(result, status="error", error=result.error or Problem("agent", "broke", "E"))


REPORTS = st.builds(
    Report,
    st.lists(RESULTS.map(sound), max_size=3, unique_by=lambda one: (one.case_id, one.trial)),
    TEXTS,
    NUMBERS,
    st.lists(TEXTS, max_size=2).map(tuple),
    id=TEXTS,
    evalset_id=TEXTS,
    at=st.none() | NUMBERS,
)


@given(report=REPORTS)
def test_every_report_comes_back_equal(
    report: Report, tmp_path_factory: pytest.TempPathFactory
) -> None:
    again = reloaded(report, tmp_path_factory.mktemp("reports"))
    assert again == report
    assert [result.trajectory for result in again] == [result.trajectory for result in report]
    assert [result.case for result in again] == [result.case for result in report]
    assert [result.blame for result in again] == [result.blame for result in report]
    assert report_data(again) == report_data(report)


# Reports that contradict themselves


def told(report: Report, tmp_path: Path, **changed: Any) -> str:
    """Why a report is refused in which this was changed."""
    data = cast("Any", report_data(report))
    for key, value in changed.items():
        data["results"][0][key] = value
    (tmp_path / "r.json").write_text(json.dumps(data))
    with pytest.raises(BadFile) as refused:
        Report.load(tmp_path / "r.json")
    return str(refused.value)


@pytest.mark.parametrize("found", [Score(0.0, False), Unmeasured("broke")])
def test_a_pass_that_its_scores_speak_against_is_refused(found: Any, tmp_path: Path) -> None:
    report = Report([CaseResult(case_id="a", status="failed", scores={"exact": found})])
    assert "its status is 'passed', but 'exact' did not pass" in told(
        report, tmp_path, status="passed"
    )


@pytest.mark.parametrize("scores", [{}, {"exact": NotApplicable("no reference")}])
def test_a_pass_that_nothing_measured_is_refused(scores: Any, tmp_path: Path) -> None:
    report = Report([CaseResult(case_id="a", status="failed", scores=scores)])
    assert "its status is 'passed', but no metric gave a score" in told(
        report, tmp_path, status="passed"
    )


def test_a_failure_that_every_score_speaks_against_is_refused(tmp_path: Path) -> None:
    report = Report([CaseResult(case_id="a", status="passed", scores={"exact": Score(1.0)})])
    assert "its status is 'failed', but every score passed" in told(
        report, tmp_path, status="failed"
    )


@pytest.mark.parametrize(
    "scores, error, why",
    [
        ({"exact": Unmeasured("broke")}, None, "'exact' was not measured"),
        ({"exact": NotApplicable("no reference")}, None, "no metric gave a score"),
        ({"exact": Score(0.0)}, Problem("system", "broke", "E"), "something broke"),
    ],
)
def test_a_failure_that_nothing_measured_is_refused(
    scores: Any, error: Problem | None, why: str, tmp_path: Path
) -> None:
    broke = error or Problem("metric", "broke", "E")
    report = Report([CaseResult(case_id="a", status="error", scores=scores, error=broke)])
    said = told(report, tmp_path, status="failed", **({} if error else {"error": None}))
    assert f"its status is 'failed', but {why}" in said


def test_an_error_that_does_not_say_what_broke_is_refused(tmp_path: Path) -> None:
    report = Report([CaseResult(case_id="a", status="failed", scores={"exact": Score(0.0)})])
    assert "its status is 'error', but it does not say what broke" in told(
        report, tmp_path, status="error"
    )
    assert "its status is 'failed', but it ended in an error" in told(
        report, tmp_path, ended="error"
    )


@pytest.mark.parametrize(
    "changed, follows",
    [
        ({"status": "passed", "ended": "max_turns"}, "it was stopped at a limit"),
        ({"status": "terminated", "ended": "completed"}, "it was not stopped at a limit"),
        ({"status": "skipped"}, "it has scores, and nothing broke"),
    ],
)
def test_a_status_that_does_not_follow_from_the_end_and_the_scores_is_refused(
    changed: dict[str, Any], follows: str, tmp_path: Path
) -> None:
    passed = CaseResult(
        case_id="a", status="passed", ended="completed", scores={"exact": Score(1.0)}
    )
    assert follows in told(Report([passed]), tmp_path, **changed)


def test_a_report_whose_count_was_taken_out_is_refused(tmp_path: Path) -> None:
    report = Report([CaseResult(case_id="a", status="passed", scores={"exact": Score(1.0)})])
    data = cast("Any", report_data(report))
    del data["summary"]["total"]
    (tmp_path / "r.json").write_text(json.dumps(data))
    with pytest.raises(BadFile, match="counts nothing, but it holds 1"):
        Report.load(tmp_path / "r.json")


def test_what_is_wrong_in_a_mapping_is_refused_with_its_place(tmp_path: Path) -> None:
    report = Report([CaseResult(case_id="a", status="passed", scores={"exact": Score(1.0)})])
    spent = {"clerk": {"usage": None, "cost": "much", "models": {}, "known_cost": 0.0}}
    assert "results[0].nodes[...].cost: expected" in told(report, tmp_path, nodes=spent)


def test_a_pass_with_an_error_is_refused(tmp_path: Path) -> None:
    report = Report(
        [CaseResult(case_id="a", status="error", error=Problem("metric", "broke", "E"))]
    )
    assert "it ended in an error" in told(report, tmp_path, status="passed")


def test_a_report_in_which_results_are_missing_or_given_twice_is_refused(tmp_path: Path) -> None:
    whole = cast(
        "Any",
        report_data(
            Report(
                [CaseResult(case_id="a", status="failed"), CaseResult(case_id="b", status="failed")]
            )
        ),
    )
    cut = {**whole, "results": whole["results"][:1]}
    twice = {**whole, "results": [whole["results"][0]] * 2}
    for data, why in (
        (cut, "counts 2 results, but it holds 1"),
        (twice, "'a', trial 1, more than"),
    ):
        (tmp_path / "r.json").write_text(json.dumps(data))
        with pytest.raises(BadFile, match=why):
            Report.load(tmp_path / "r.json")


# Hostile files

SMALL = Report(
    [
        CaseResult(
            case_id="c",
            status="error",
            scores={"m": Score(0.5), "n": Unmeasured("why")},
            error=Problem("metric", "broke"),
            usage=Usage(1, 2),
            asked={"id": "c"},
            steps=[Step("tool", "stock")],
        )
    ],
    id="r",
)


@pytest.mark.parametrize(
    "text, told",
    [
        ("", "is empty: it has no report"),
        ("[]", "is not a report: it has no `kind`"),
        ('{"kind": "ledger"}', "is not a report: its `kind` is 'ledger'"),
        ('{"kind": "report", "version": true}', "a report of version True, which is not supported"),
        ('{"kind": "report", "version": 1.0}', "a report of version 1.0, which is not supported"),
        ('{"kind": "report", "version": 9}', "version 9, which is not supported; use version 1"),
        ('{"kind": "report", "version": 1}', "missing required field `id`"),
        ('{"version": 1, "version": 1}', "'version' is given twice"),
        ('{"a": NaN}', "Invalid JSON"),
        ('{"a": 1e999}', "Invalid JSON"),
        ("[" * 100_000, "Invalid JSON"),
        ('{"a": ' * 200 + "1" + "}" * 200, "nested deeper"),
        ("9" * 5000, "Invalid JSON"),
    ],
)
def test_what_is_no_report_is_refused(text: str, told: str, tmp_path: Path) -> None:
    (tmp_path / "r.json").write_text(text)
    with pytest.raises(BadFile, match=told):
        Report.load(tmp_path / "r.json")


def test_a_file_that_is_not_there_or_no_text_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadFile, match="there is no file"):
        Report.load(tmp_path / "none.json")
    (tmp_path / "r.json").write_bytes(b"\xff\xfe{}")
    with pytest.raises(BadFile, match="cannot read"):
        Report.load(tmp_path / "r.json")
    with pytest.raises(BadFile, match="cannot read"):
        Report.load(tmp_path)


@pytest.mark.parametrize(
    "path, value, told",
    [
        (
            ["results", 0, "status"],
            "splendid",
            r"results\[0\].status is 'splendid': invalid enum value",
        ),
        (["results", 0, "status"], ["passed"], r"status is \['passed'\]: expected `str`"),
        (["results", 0, "turns"], True, "turns is True: expected `int`, got `bool`"),
        (["results", 0, "turns"], -1, "turns is -1: expected `int` >= 0"),
        (["results", 0, "seconds"], -1.5, "seconds is -1.5: expected `float` >= 0"),
        (["results", 0, "cost"], "free", "cost is 'free': expected `float . null`"),
        (["results", 0, "cost"], 10**400, "cost is 1000.*: number out of range"),
        (["results", 0, "scores", "m", "score"], 1.5, "a number from 0 to 1"),
        (
            ["results", 0, "scores", "m", "passed"],
            1,
            r"results\[0\].scores.m: passed is 1: expected `bool`",
        ),
        (["results", 0, "scores", "m", "surprise"], 1, "scores.m: .* unknown field `surprise`"),
        (
            ["results", 0, "scores", "n", "phase"],
            "moon",
            "scores.n: phase is 'moon': invalid enum value",
        ),
        (["results", 0, "error", "phase"], None, "error.phase is None: expected `str`"),
        (["results", 0, "trajectory"], {}, "trajectory is {}: expected `array`"),
        (["results", 0, "trajectory", 0, "type"], "dance", r"trajectory\[0\].type"),
        (["results", 0, "tags"], [1], r"tags\[0\] is 1: expected `str`"),
        (["results", 0, "case"], [], r"case is \[\]: expected `object . null`"),
        (["results", 0, "extra"], 1, r"results\[0\] is .*: object contains unknown field `extra`"),
        (["results"], "none", "results is 'none': expected `array`"),
        (["surprise"], 1, "unknown field `surprise`"),
    ],
)
def test_a_bad_value_is_named_with_its_place(
    path: list[Any], value: Any, told: str, tmp_path: Path
) -> None:
    data = report_data(SMALL)
    place: Any = data
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = value
    (tmp_path / "r.json").write_text(json.dumps(data))
    with pytest.raises(BadFile, match=told):
        Report.load(tmp_path / "r.json")


def test_counts_are_found_again_and_not_believed(tmp_path: Path) -> None:
    data: Any = report_data(SMALL)
    data["summary"]["passed"] = 99
    (tmp_path / "r.json").write_text(json.dumps(data))
    assert Report.load(tmp_path / "r.json").summary.passed == 0


PLACES = st.sampled_from(["results", "seconds", "notes", "id", "name", "at", "kind", "version"])
INSIDE = st.sampled_from(sorted(cast("Any", report_data(SMALL))["results"][0]))


@given(place=PLACES, inside=INSIDE, value=JSON, deep=st.booleans())
def test_whatever_a_file_says_it_is_a_report_or_a_bad_file(
    place: str,
    inside: str,
    value: Any,
    deep: bool,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    data: Any = deepcopy(report_data(SMALL))
    if deep:
        data["results"][0][inside] = value
    else:
        data[place] = value
    path = tmp_path_factory.mktemp("hostile") / "r.json"
    path.write_text(json.dumps(data))
    try:
        found = Report.load(path)
    except BadFile:
        return
    assert str(found)
    assert report_data(found)


def test_a_user_with_lines_is_in_the_case_data(tmp_path: Path) -> None:
    agent = Agent("a", model=Scripted("A", "B"))
    case = Case("c", says="Hi", user=Lines("Ho"), metrics=[contains("B")])
    [result] = reloaded(rehearse(agent, case), tmp_path)
    assert result.case is not None
    assert result.case["user"] == {"lines": ["Ho"]}
