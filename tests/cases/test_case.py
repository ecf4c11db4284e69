"""A case that cannot be played is refused where it is written, with what to write instead."""

import copy
import pickle
import re
from collections import UserDict, UserList
from dataclasses import fields, replace
from types import MappingProxyType
from typing import Any

import pytest

from greenroom import Case, EvalSet, Expect, Stop, Turn, call
from greenroom.cases import by_args, fault, in_turn, live
from greenroom.errors import BadCase, BadQuery


def test_a_case_with_says_has_one_turn() -> None:
    expect = Expect(contains="21")
    assert Case("paris", says="Weather?", expect=expect).script == (Turn("Weather?", expect),)


def test_a_case_with_turns_plays_them() -> None:
    turns = [Turn("Hi"), Turn("Bye")]
    assert Case("polite", turns=turns).script == tuple(turns)


def test_a_script_is_made_and_not_given() -> None:
    given: Any = {"script": (Turn("bye"),)}
    with pytest.raises(TypeError, match="unexpected keyword argument 'script'"):
        Case("a", says="hi", **given)


@pytest.mark.parametrize(
    "again", [copy.copy, copy.deepcopy, lambda c: pickle.loads(pickle.dumps(c))]
)
def test_a_copy_of_a_case_has_its_script(again: Any) -> None:
    case = Case("a", says="hi", expect=Expect(tools=[call("find", id=7)]))
    assert again(case) == case
    assert again(case).script == case.script


def test_a_case_with_other_words_has_another_script() -> None:
    case = Case("a", says="hi")
    assert replace(case, says="bye").script == (Turn("bye"),)


def test_a_case_without_a_message_has_no_script() -> None:
    assert Case("open").script == ()


def test_an_expectation_without_a_message_is_about_the_agents_opening() -> None:
    expect = Expect(contains="Hello")
    assert Case("greets", expect=expect).script == (Turn("", expect),)


def test_a_case_shows_its_name_or_else_its_id() -> None:
    assert (Case("a", name="Refund").title, Case("a").title) == ("Refund", "a")


@pytest.mark.parametrize(
    "given, told",
    [
        ({"id": ""}, "a case has no id; give it"),
        ({"id": "  "}, "the id '  '; give it one that is text"),
        ({"id": 7}, "the id 7; give it one that is text"),
        ({"says": 7}, "case 'a': `says` is 7, but should be a string"),
        ({"turns": "Hi"}, "`turns` is 'Hi', but should be a list"),
        ({"turns": ["Hi"]}, r"`turns` holds 'Hi'; write Turn\('Hi'\)"),
        ({"turns": [Turn("Hi")], "says": "Hi"}, "both `turns` and `says`"),
        ({"turns": [Turn("Hi")], "expect": Expect()}, "both `turns` and `says`/`expect`"),
        ({"turns": [Turn("Hi"), Turn("")]}, "a turn in which the user says nothing"),
        ({"expect": {"tools": []}}, r"`expect` is .*, but should be an Expect\(\.\.\.\)"),
        ({"mocks": ["refund"]}, "`mocks` is .*, but should be a mapping"),
        ({"allow_tools": "refund"}, "`allow_tools` is 'refund', but should be a list"),
        ({"state": [1]}, "`state` is .*, but should be a mapping"),
        ({"state": {"order": 7}}, r"has 'order': 7; group by scope: state=\{\"session\""),
        ({"stop": 5}, r"`stop` is 5, but should be a Stop\(\.\.\.\)"),
        ({"stop": {"max_turns": 5}}, "`stop` is .* should be a Stop"),
        ({"metrics": len}, "`metrics` is .*, but should be a list"),
        ({"tags": "smoke"}, "`tags` is 'smoke', but should be a list"),
        ({"metadata": "x"}, "`metadata` is 'x', but should be a mapping"),
        ({"name": 5}, "`name` is 5, but should be a string"),
        ({"now": "noon"}, "`now` is 'noon', but should be a number of seconds"),
        ({"now": float("nan")}, "`now` is nan, but should be a number of seconds"),
        ({"user": "Bob"}, r"`user` is 'Bob', but should be Lines\(\.\.\.\)"),
        ({"user": {"lines": ["Hi"]}}, "`user` is .*, but should be Lines"),
        ({"bridge": "Bob"}, r"`bridge` is 'Bob', but should be a Bridge\(\.\.\.\)"),
    ],
)
def test_a_case_says_what_is_wrong_with_it(given: dict[str, Any], told: str) -> None:
    wrong: dict[str, Any] = {"id": "a", **given}
    with pytest.raises(BadCase, match=told):
        Case(**wrong)


_FREE = {"user", "bridge", "agent"}  # may be anybody's object


@pytest.mark.parametrize("part, given", [(Case, {"id": "a"}), (Turn, {"says": "Hi"}), (Expect, {})])
def test_no_field_takes_what_it_cannot_be(part: Any, given: dict[str, Any]) -> None:
    names = {p.name for p in fields(part) if p.init} - _FREE
    assert names
    for name in names:
        wrong = object() if name != "id" else 7
        shown = f"{re.escape(repr(wrong))}|<object object>"  # with its address or without
        with pytest.raises(BadCase, match=shown):
            part(**{**given, name: wrong})


def test_uncommon_sequences_and_mappings_will_do_as_well() -> None:
    few = UserList(["refund"])
    state = UserDict(session={"paid": True})
    expect = Expect(tools=few, contains=("a", "b"), intermediate=few, state=state, extra={})
    case = Case(
        "a",
        expect=expect,
        mocks=UserDict(refund="ok"),
        allow_tools=few,
        state=MappingProxyType({"session": {}}),
        tags=few,
        metrics=("response_match_score",),
        now=5,
        extra=UserDict(),
    )
    assert case.script == (Turn("", expect),)
    assert Case("b", turns=UserList([Turn("Hi", extra=UserDict())])).script[0].says == "Hi"


@pytest.mark.parametrize(
    "given, told",
    [
        ({"tools": "refund"}, r"`tools` is 'refund', but should be a list: \['refund'\]"),
        ({"tools": 5}, "`tools` is 5, but should be a list"),
        ({"tools": [5]}, r"an expected tool call is 5; use call\('name', arg=\.\.\.\)"),
        ({"tools": [("refund", {})]}, "use call"),
        ({"response": 21}, "`response` is 21, but should be a string"),
        ({"contains": 21}, "`contains` is 21, but should be a string or a list of strings"),
        ({"contains": ["Paris", 21]}, "holds 21; write it as a string"),
        ({"state": "done"}, "`state` is 'done', but should be a query by scope"),
        ({"state": {"done": True}}, r"'done': True; group by scope: \{\"session\""),
    ],
)
def test_an_expectation_says_what_is_wrong_with_it(given: Any, told: str) -> None:
    with pytest.raises(BadCase, match=told):
        Expect(**given)


def test_an_expected_state_with_an_unknown_operator_is_refused() -> None:
    with pytest.raises(BadQuery, match=r"'\$exist'"):
        Expect(state={"session": {"done": {"$exist": True}}})


def test_expecting_no_tools_is_not_the_same_as_expecting_nothing() -> None:
    assert Expect(tools=[]) != Expect()


@pytest.mark.parametrize("given", [{"says": 5}, {"says": "Hi", "expect": "Hello"}])
def test_a_turn_says_what_is_wrong_with_it(given: Any) -> None:
    with pytest.raises(BadCase, match=r"Turn\(\.\.\.\): `\w+` is"):
        Turn(**given)


@pytest.mark.parametrize(
    "given, told",
    [
        ({"max_turns": 0}, "both must be positive"),
        ({"max_turns": -1}, "both must be positive"),
        ({"max_seconds": 0}, "both must be positive"),
        ({"max_seconds": float("nan")}, "both must be positive"),
        ({"max_seconds": float("inf")}, "positive and finite"),
        ({"max_turns": "3"}, "`max_turns` is '3', but should be a whole number"),
        ({"max_turns": 2.5}, "`max_turns` is 2.5, but should be a whole number"),
        ({"max_seconds": "60"}, "`max_seconds` is '60', but should be a number"),
        ({"max_seconds": None}, "`max_seconds` is None, but should be a number"),
        ({"state_matches": [1]}, "should be a query by scope"),
        ({"state_matches": {"done": True}}, "group by scope"),
        ({"state_matches": {}}, "would match at once"),
    ],
)
def test_a_stop_says_what_is_wrong_with_it(given: Any, told: str) -> None:
    with pytest.raises(BadCase, match=told):
        Stop(**given)


def test_cases_and_their_parts_cannot_be_changed() -> None:
    for part, name in [
        (Case("a"), "says"),
        (Turn("Hi"), "says"),
        (Expect(), "tools"),
        (Stop(), "max_turns"),
        (EvalSet("s"), "cases"),
    ]:
        with pytest.raises(AttributeError):
            setattr(part, name, "x")


def test_an_eval_set_holds_cases_by_id() -> None:
    one, other = Case("one", tags=["smoke"]), Case("other")
    evalset = EvalSet("demo", [one, other])
    assert (list(evalset), len(evalset), evalset["other"]) == ([one, other], 2, other)
    assert list(evalset.tagged("smoke")) == [one]


def test_an_eval_set_is_not_changed_by_what_happens_to_the_list_it_was_given() -> None:
    cases = [Case("one")]
    evalset = EvalSet("demo", cases)
    cases.append(Case("two"))
    assert len(evalset) == 1


def test_two_cases_of_one_id_are_refused() -> None:
    with pytest.raises(BadCase, match="'demo' has two cases 'a'; rename one"):
        EvalSet("demo", [Case("a"), Case("a")])


def test_what_is_no_case_is_refused_from_an_eval_set() -> None:
    strings: Any = ["a"]
    with pytest.raises(BadCase, match="'demo' holds 'a', which is not a Case"):
        EvalSet("demo", strings)


def test_an_unknown_case_is_named_with_the_known_ones() -> None:
    with pytest.raises(BadCase, match=r"no case 'b'; it has \['a'\]"):
        EvalSet("demo", [Case("a")])["b"]


@pytest.mark.parametrize(
    "make, args, options, told",
    [
        (fault, [], {}, "exactly one of"),
        (fault, ["broken"], {"timeout": 3}, "exactly one of"),
        (fault, [], {"slow": "long"}, "give seconds"),
        (fault, [], {"timeout": -1}, "give seconds"),
        (in_turn, [], {}, "at least one"),
        (by_args, [{"city": "Oslo"}], {}, "pairs of arguments and an answer"),
        (live, [call], {"hosts": "example.org"}, r"\['example.org'\]"),
    ],
)
def test_a_mock_says_what_is_wrong_with_it(make: Any, args: Any, options: Any, told: str) -> None:
    with pytest.raises(BadCase, match=told):
        make(*args, **options)


def test_faults_read_like_their_source() -> None:
    assert repr(fault(slow=2, value={"ok": True})) == "fault(slow=2, value={'ok': True})"
    assert repr(fault("no stock")) == "fault(error='no stock')"


@pytest.mark.parametrize(
    "given",
    [
        {"response": ""},
        {"response": " \n"},
        {"reference": ""},
        {"contains": ""},
        {"contains": []},
        {"contains": ["a", ""]},
        {"contains": ("a", "\t")},
        {"intermediate": []},
        {"intermediate": ["a", " "]},
        {"state": {}},
        {"state": {"session": {}}},
        {"state": {"session": {"a": 1}, "user": {}}},
    ],
)
def test_an_expectation_that_every_answer_meets_is_refused(given: dict[str, Any]) -> None:
    with pytest.raises(BadCase, match="checks nothing"):
        Expect(**given)


def test_a_goal_that_every_state_meets_is_refused() -> None:
    with pytest.raises(BadCase, match="would match at once"):
        Stop(state_matches={"session": {}})


@pytest.mark.parametrize("tags", [[2024], ["a", None], [True]])
def test_a_tag_is_a_string(tags: list[Any]) -> None:
    with pytest.raises(BadCase, match=r"`tags` holds .*; write it as a string"):
        Case("c", "Hi", tags=tags)


@pytest.mark.parametrize(
    "make",
    [
        lambda: Stop(max_turns=True),
        lambda: Stop(max_seconds=True),
        lambda: Case("a", says="Hi", seed=True),
        lambda: Case("a", says="Hi", now=False),
    ],
)
def test_true_is_not_a_number_of_a_case(make: Any) -> None:
    with pytest.raises(BadCase, match=r"is (True|False), but should be a (whole )?number"):
        make()
