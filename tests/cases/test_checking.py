"""Everything that is wrong with a set is told at once, with its place and what to do."""

from copy import deepcopy
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from greenroom import Case, EvalSet, Expect, Lines, Stop, Turn, UserAgents, call
from greenroom.cases import (
    Criterion,
    Problem,
    case_data,
    case_from,
    check,
    fix,
    from_template,
    multi_turn,
    single_turn,
    tool_test,
)
from greenroom.errors import BadInput, BadMetric
from greenroom.metrics import called, contains

GOOD = Case("good", says="Hi", expect=Expect(contains="Hello"))


def told(cases: Any, **options: Any) -> list[tuple[str, str]]:
    return [(problem.where, problem.message) for problem in check(cases, **options)]


def test_a_good_set_has_no_problems() -> None:
    assert check(EvalSet("shop", [GOOD])) == []


def test_all_problems_are_told_at_once() -> None:
    cases = [
        GOOD,
        Case("good", says="Hi", expect=Expect(contains="x")),
        Case("empty", metrics=["exact"]),
    ]
    assert told(cases) == [
        ("cases[1].id", "the id 'good' is already used by cases[0]"),
        ("cases[2]", "the conversation is empty: the user never speaks"),
    ]


def test_a_problem_of_the_whole_file_has_no_place():
    assert str(Problem("", "it is empty")) == "it is empty"
    assert str(Problem("", "it is empty", line=2)) == "line 2: it is empty"


def test_a_problem_reads_as_a_sentence_with_its_line_and_its_fix() -> None:
    problem = Problem("cases[0].id", "the id is blank", "Name it.", line=3)
    assert str(problem) == "line 3, cases[0].id: the id is blank. Name it."


@pytest.mark.parametrize(
    "id", ["../x", "a/../b", "/etc/x", "a//b", "..", "~root", "C:\\..\\x", " x", "x\n", "a\0b"]
)
def test_an_id_that_plays_tricks_with_paths_is_a_problem(id: str) -> None:
    assert [where for where, _ in told([Case(id, says="Hi", metrics=["exact"])])] == ["cases[0].id"]


@pytest.mark.parametrize("id", ["refund-twice", "Größe 2", "a.b", "refund[eur]"])
def test_a_plain_id_is_none(id: str) -> None:
    assert told([Case(id, says="Hi", metrics=["exact"])]) == []


def test_the_id_of_the_set_is_looked_at_too() -> None:
    assert told(EvalSet("../shop", [GOOD])) == [("id", "the id '../shop' reads like a path")]


@pytest.mark.parametrize(
    "case, where, words",
    [
        (
            Case("c", turns=[Turn("Hi"), Turn("  ")], metrics=["exact"]),
            "cases[0].turns[1].says",
            "the user says '  ', which is blank",
        ),
        (
            Case("c", turns=[Turn("Hi"), Turn("Ho")], stop=Stop(max_turns=1), metrics=["exact"]),
            "cases[0].stop.max_turns",
            "the script has 2 messages, but the trial stops after 1",
        ),
        (
            Case("c", says="Hi", expect=Expect(), metrics=["exact"]),
            "cases[0].expect",
            "the expectation is empty",
        ),
        (
            Case("c", turns=[Turn("Hi", Expect(response="No.", contains=["no", "yes"]))]),
            "cases[0].turns[0].expect.contains",
            "`contains` asks for 'yes', which the expected `response` does not contain",
        ),
        (
            Case("c", says="Hi", metrics=["exact"], tags=["smoke", "smoke "]),
            "cases[0].tags[1]",
            "the tag 'smoke ' is blank or has blanks around it",
        ),
        (
            Case("c", says="Hi", metrics=["exact"], tags=["smoke", "smoke"]),
            "cases[0].tags[1]",
            "the tag 'smoke' is given twice",
        ),
        (
            Case("c", says="Hi", metrics=[Criterion("exact", threshold=1.5)]),
            "cases[0].metrics[0].threshold",
            "the threshold of 'exact' is 1.5",
        ),
        (
            Case("c", says="Hi", metrics=["exact"], state={"sesion": {"order": 7}}),
            "cases[0].state.sesion",
            "the scope 'sesion' is not one of session, user, app, temp",
        ),
        (
            Case("c", says="Hi", expect=Expect(tools=["refund"])),
            "cases[0].expect.tools[0]",
            "the tool 'refund' is expected, but has no mock and is not allowed to run",
        ),
        (
            Case("c", says="Hi", expect=Expect(tools=[]), metrics=[called("refund")]),
            "cases[0].metrics[0]",
            "the metric expects 'refund' to be called, but every turn expects no calls at all",
        ),
        (
            Case(
                "c",
                says="Hi",
                expect=Expect(tools=[]),
                metrics=[Criterion("called", options={"tool": "refund"})],
            ),
            "cases[0].metrics[0]",
            "the metric expects 'refund' to be called, but every turn expects no calls at all",
        ),
        (
            Case("c", says="Hi"),
            "cases[0]",
            "the case has neither metrics nor expectations, so nothing can be evaluated",
        ),
    ],
)
def test_what_cannot_be_met_or_measured_is_told_with_its_place(
    case: Case, where: str, words: str
) -> None:
    found = check([case])
    assert [(problem.where, problem.message) for problem in found] == [(where, words)]
    assert found[0].fix or found[0].hint


@pytest.mark.parametrize(
    "given",
    [
        {"tools": []},
        {"response": "Hello"},
        {"contains": "Hello"},
        {"state": {"session": {"step": 1}}},
        {"state_after": {"clerk": {"session": {"step": 1}}}},
        {"reference": "Hello"},
        {"intermediate": ["One moment"]},
        {"stopped_by": "guardrail"},
    ],
)
def test_a_case_with_any_expectation_can_be_evaluated(given: dict[str, Any]) -> None:
    assert check([Case("c", says="Hi", expect=Expect(**given))]) == []


@pytest.mark.parametrize(
    "case",
    [
        Case("c", says="Hi", expect=Expect(tools=["refund"]), mocks={"refund": "ok"}),
        Case("c", says="Hi", expect=Expect(tools=[call("refund", id=1)]), allow_tools=["refund"]),
        Case("c", says="Hi", expect=Expect(tools=["ask"]), user=UserAgents(tools={"ask": "yes"})),
        Case("c", says="Hi", expect=Expect(tools=[]), metrics=[called("refund", never=True)]),
        Case("c", turns=[Turn("", Expect(contains="Hello"))]),
        Case("c", user=Lines("Hi"), metrics=[contains("Hello")]),
        Case("c", says="Hi", metrics=["exact"], state={"wardrobe": {"hat": 1}}),
    ],
)
def test_what_can_be_met_is_left_in_peace(case: Case) -> None:
    assert check([case]) == []


def test_a_set_with_metrics_measures_cases_without_any() -> None:
    assert check(EvalSet("shop", [Case("c", says="Hi")], metrics=["exact"])) == []


def test_whoever_knows_the_metrics_says_what_is_wrong_with_them() -> None:
    def unknown(metric: Any) -> BadMetric | None:
        return BadMetric(f"there is no metric {metric!r}") if metric == "exakt" else None

    evalset = EvalSet("shop", [Case("c", says="Hi", metrics=["exakt"])], metrics=["exakt"])
    assert told(evalset, metric_check=unknown) == [
        ("metrics[0]", "there is no metric 'exakt'"),
        ("cases[0].metrics[0]", "there is no metric 'exakt'"),
    ]


ODD = st.sampled_from(["", " ", "a", "../a", "<<fill in: x>>", "sesion", "\0"])
SAID = ODD.filter(str.strip)
TURNS = st.builds(
    Turn,
    ODD.filter(bool),
    st.none()
    | st.builds(
        Expect,
        tools=st.none() | st.lists(ODD, max_size=2),
        response=st.none() | SAID,
        contains=st.none() | SAID | st.lists(SAID, min_size=1, max_size=2),
        state=st.none() | st.dictionaries(ODD, st.just({"a": 1}), min_size=1, max_size=1),
    ),
)
TAGS: Any = st.lists(ODD, max_size=2)
CASES = st.builds(
    Case,
    st.sampled_from(["a", "b ", "../c"]),
    turns=st.lists(TURNS, max_size=3),
    tags=TAGS,
    metrics=st.lists(st.just("exact"), max_size=1),
    stop=st.builds(Stop, max_turns=st.integers(1, 3)),
)


@given(cases=st.lists(CASES, max_size=4))
def test_problems_of_one_case_do_not_depend_on_the_others(cases: list[Case]) -> None:
    together = [p for p in check(cases) if "is already used by" not in p.message]
    alone = [
        replace(p, where=p.where.replace("cases[0]", f"cases[{i}]"))
        for i, case in enumerate(cases)
        for p in check([case])
    ]
    assert together == alone


# Templates


@pytest.mark.parametrize("name", ["single-turn", "multi-turn", "tool-test"])
def test_every_blank_of_a_template_is_a_problem_until_it_is_filled_in(name: str) -> None:
    case = from_template(name, "new")
    assert check([case])
    assert all("not filled in yet" in problem.message for problem in check([case]))
    assert check([case_from(case_data(case))]) == check([case])


def test_a_template_takes_what_is_known_already() -> None:
    assert single_turn("a", says="Hi", contains="Hello").says == "Hi"
    assert [turn.says for turn in multi_turn("b", says=("Hi", "Bye")).turns] == ["Hi", "Bye"]
    assert list(tool_test("c", tool="refund").mocks) == ["refund"]
    assert len(multi_turn("d", turns=3).turns) == 3


def test_an_unknown_template_names_the_known_ones() -> None:
    with pytest.raises(BadInput, match="use one of: single-turn, multi-turn, tool-test"):
        from_template("triple-turn", "x")


# Repairs


def test_repairs_are_made_on_a_copy_and_each_is_told() -> None:
    data = {
        "version": 1,
        "cases": [
            {"id": "a", "says": "Hi", "tags": [" smoke", "smoke", ""]},
            {"id": "a", "says": "Ho"},
            {"says": "Hey"},
            {"id": " b ", "turns": [{"says": "Hi"}, {"says": " "}, {}]},
        ],
    }
    before = deepcopy(data)
    mended, repairs = fix(data)
    assert data == before
    assert mended["cases"] == [
        {"id": "a", "says": "Hi", "tags": ["smoke"]},
        {"id": "a-2", "says": "Ho"},
        {"id": "case-3", "says": "Hey"},
        {"id": "b", "turns": [{"says": "Hi"}]},
    ]
    assert [(repair.where, repair.fix) for repair in repairs] == [
        ("cases[1].id", "It is now 'a-2'"),
        ("cases[2].id", "It is now 'case-3'"),
        ("cases[3].id", "It is now 'b'"),
        ("cases[0].tags", "They are now ['smoke']"),
        ("cases[3].turns[2]", "The turn is dropped"),
        ("cases[3].turns[1]", "The turn is dropped"),
    ]


def test_what_might_change_the_meaning_is_left_to_the_author() -> None:
    data = {"cases": [{"id": 7, "turns": [{"says": "Hi"}, {"says": "", "expect": {"tools": []}}]}]}
    assert fix(data) == (data, [])


def test_a_new_id_is_nobody_elses() -> None:
    mended, _ = fix({"cases": [{"id": "a"}, {"id": "a"}, {"id": "a-2"}, {}, {"id": "case-4"}]})
    assert [case["id"] for case in mended["cases"]] == ["a", "a-3", "a-2", "case-4-2", "case-4"]


def test_the_files_of_others_are_mended_too() -> None:
    mended, repairs = fix({"eval_cases": [{"eval_id": "a"}, {"eval_id": "a"}]})
    assert [case["eval_id"] for case in mended["eval_cases"]] == ["a", "a-2"]
    assert [repair.where for repair in repairs] == ["eval_cases[1].eval_id"]


def test_a_fluent_case_without_an_id_lacks_none() -> None:
    data = {"cases": [{"input": "Hi", "tags": [" smoke"]}, {"input": "Ho", "metadata": {"n": 1}}]}
    mended, repairs = fix(data)
    assert mended["cases"] == [{"input": "Hi", "tags": ["smoke"]}, data["cases"][1]]
    assert [repair.where for repair in repairs] == ["cases[0].tags"]


def test_equal_ids_of_fluent_cases_are_mended_where_they_stand() -> None:
    one, two = ({"input": says, "metadata": {"id": "a"}} for says in ("Hi", "Ho"))
    mended, repairs = fix({"num_runs": 2, "cases": [one, {"input": "Hey"}, two]})
    assert [case.get("metadata") for case in mended["cases"]] == [{"id": "a"}, None, {"id": "a-2"}]
    assert not any("id" in case for case in mended["cases"])
    assert [(repair.where, repair.fix) for repair in repairs] == [
        ("cases[2].metadata.id", "It is now 'a-2'")
    ]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(" ab", max_size=3),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["id", "turns", "tags", "says", "expect"]), inner, max_size=3
        )
    ),
    max_leaves=12,
)


@given(cases=st.lists(JSON, max_size=5))
def test_whatever_a_file_says_repairs_make_ids_unique_and_are_done_when_done_once(
    cases: list[Any],
) -> None:
    mended, _ = fix({"cases": cases})
    again, repairs = fix(mended)
    assert (again, repairs) == (mended, [])
    ids = [case["id"] for case in mended["cases"] if isinstance(case, dict)]
    texts = [given for given in ids if isinstance(given, str)]
    assert len(set(texts)) == len(texts)


def test_each_expected_tool_without_a_mock_has_a_place_of_its_own() -> None:
    case = Case("c", says="Hi", expect=Expect(tools=["look", "refund"]))
    assert [problem.where for problem in check([case])] == [
        "cases[0].expect.tools[0]",
        "cases[0].expect.tools[1]",
    ]
