"""Eval sets in files say the same as in code, and a bad file is named with its place."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from greenroom import Case, EvalSet, Expect, Lines, Stop, Turn, call
from greenroom.cases import (
    Criterion,
    by_args,
    case_data,
    case_from,
    fault,
    in_turn,
    read_evalset,
    write_evalset,
)
from greenroom.errors import BadFile, BadInput

WORDS = st.text(min_size=1, max_size=6).filter(str.strip)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(WORDS, inner, max_size=2),
    max_leaves=4,
)
CONSTANTS = VALUES
ARGS = st.dictionaries(WORDS, VALUES, max_size=2)
FAULTS = st.one_of(
    st.builds(fault, WORDS),
    st.builds(lambda s: fault(timeout=s), st.integers(0, 9)),
    st.builds(lambda s, v: fault(slow=s, value=v), st.integers(0, 9), VALUES),
    st.builds(lambda t: fault(malformed=t), st.text(max_size=4)),
    st.builds(lambda t, v: fault(injected=t, value=v), WORDS, VALUES),
    st.builds(lambda v: fault(lost=v), VALUES),
)
MOCKS = st.recursive(
    CONSTANTS | FAULTS,
    lambda inner: st.one_of(
        st.lists(inner, min_size=1, max_size=2).map(lambda answers: in_turn(*answers)),
        st.lists(st.tuples(ARGS, inner), max_size=2).map(lambda pairs: by_args(*pairs)),
        st.builds(
            lambda pairs, rest: by_args(*pairs, otherwise=rest),
            st.lists(st.tuples(ARGS, inner), max_size=2),
            inner,
        ),
    ),
    max_leaves=3,
)
EXPECTS = st.builds(
    Expect,
    tools=st.none() | st.lists(st.builds(lambda t: call(t, order=7), WORDS) | WORDS, max_size=2),
    response=st.none() | WORDS,
    contains=st.none() | WORDS | st.lists(WORDS, min_size=1, max_size=2),
    state=st.none() | st.just({"session": {"done": {"$exists": True}}}),
).filter(lambda expect: expect != Expect())
TURNS = st.lists(st.builds(Turn, says=WORDS, expect=st.none() | EXPECTS), max_size=2)
CASES = st.builds(
    Case,
    id=WORDS,
    turns=TURNS,
    mocks=st.dictionaries(WORDS, MOCKS, max_size=2),
    allow_tools=st.lists(WORDS, max_size=1),
    state=st.dictionaries(WORDS, ARGS, max_size=2),
    stop=st.builds(Stop, max_turns=st.integers(1, 9), max_seconds=st.integers(1, 9)),
    name=st.text(max_size=3),
    tags=st.lists(WORDS, max_size=2),
    metadata=ARGS,
    now=st.none() | st.floats(0, 9),
)


@given(CASES)
def test_a_case_of_data_survives_being_written_down(case: Case) -> None:
    data = json.loads(json.dumps(case_data(case)))
    again = case_from(data)
    assert case_data(again) == data
    assert again.script == case.script
    assert (again.stop, again.now, again.state) == (case.stop, case.now, case.state)


FULL = Case(
    "refund",
    turns=[
        Turn("Money back.", Expect(tools=[], contains=["order"])),
        Turn("Order 7.", Expect(tools=[call("refund", order=7), "mail"], response="Done.")),
    ],
    mocks={
        "refund": by_args(({"order": 7}, {"ok": True}), otherwise=fault("no such order")),
        "mail": in_turn("sent", fault(timeout=30)),
        "look": {"celsius": 21},
    },
    state={"session": {"n": 1}, "patient": {"name": "Ada"}},
    stop=Stop(max_turns=4, state_matches={"session": {"n": {"$gt": 3}}}),
    name="Refund",
    description="pays back",
    tags=["smoke"],
    metadata={"owner": "ada"},
    now=0.0,
)


def assert_is_full(found: EvalSet) -> None:
    assert (found.id, found.name, found.metadata) == ("shop", "Shop", {"team": "a"})
    case = found["refund"]
    assert case_data(case) == case_data(FULL)
    assert case.turns == FULL.turns
    assert case.mocks["look"] == {"celsius": 21}


SHOP = EvalSet("shop", [FULL], name="Shop", description="the shop", metadata={"team": "a"})


def test_an_eval_set_written_as_json_can_be_read_back(tmp_path: Path) -> None:
    write_evalset(SHOP, tmp_path / "deep" / "shop.json")
    assert_is_full(read_evalset(tmp_path / "deep" / "shop.json"))
    assert [file.name for file in (tmp_path / "deep").iterdir()] == ["shop.json"]


@pytest.mark.parametrize("suffix", ["yaml", "yml"])
def test_yaml_says_the_same_as_json(tmp_path: Path, suffix: str) -> None:
    write_evalset(SHOP, tmp_path / "shop.json")
    data = json.loads((tmp_path / "shop.json").read_text())
    (tmp_path / f"shop.{suffix}").write_text(yaml.safe_dump(data))
    assert_is_full(read_evalset(tmp_path / f"shop.{suffix}"))


def test_an_eval_set_without_an_id_is_called_like_its_file(tmp_path: Path) -> None:
    (tmp_path / "smoke.yaml").write_text("version: 1\ncases: []\n")
    assert read_evalset(tmp_path / "smoke.yaml").id == "smoke"


def reading(tmp_path: Path, text: str, name: str = "set.json") -> EvalSet:
    (tmp_path / name).write_text(text, encoding="utf-8")
    return read_evalset(tmp_path / name)


def reading_case(tmp_path: Path, **case: Any) -> EvalSet:
    return reading(tmp_path, json.dumps({"version": 1, "cases": [{"id": "a", **case}]}))


@pytest.mark.parametrize(
    "field, value, told",
    [
        ("sayz", "Hi", "the field 'sayz' is unknown. Did you mean 'says'"),
        ("id", 7, r"\.id: 7 should be a string"),
        ("says", 7, r"\.says: 7 should be a string"),
        ("turns", "Hi", r"\.turns: 'Hi' should be a list"),
        ("turns", ["Hi"], r"turns\[0\]: 'Hi' should be a mapping"),
        (
            "turns",
            [{"says": "Hi", "expects": {}}],
            r"turns\[0\]\.expects: the field 'expects' is unknown. Did you mean 'expect'",
        ),
        ("expect", {"tool": []}, "expect.tool: the field 'tool' is unknown. Did you mean 'tools'"),
        ("expect", {"tools": "refund"}, "expect.tools: 'refund' should be a list"),
        ("expect", {"tools": 5}, "expect.tools: 5 should be a list"),
        ("expect", {"tools": [{"args": {}}]}, r"expect.tools\[0\]: .*names no tool"),
        (
            "expect",
            {"tools": [{"name": "refund"}]},
            r"expect.tools\[0\].name: the field 'name' is unknown. Use one of: tool, args",
        ),
        ("expect", {"response": 21}, "response: 21 should be a string"),
        ("expect", {"contains": [21]}, "contains\\[0\\]: 21 should be a string"),
        ("expect", {"state": {"session": {"a": {"$bogus": 1}}}}, r"'\$bogus'"),
        (
            "stop",
            {"max_turn": 3},
            "stop.max_turn: the field 'max_turn' is unknown. Did you mean 'max_turns'",
        ),
        ("stop", {"max_turns": "3"}, "stop.max_turns: '3' should be a whole number"),
        ("stop", {"max_turns": 0}, "stop.max_turns: 0 should be 1 or more"),
        ("state", {"session": 3}, "group by scope"),
        (
            "mocks",
            {"refund": {"ok": True}},
            r"mocks.refund: {'ok': true} is not a mock.* Write {\"value\": {\"ok\": true}}",
        ),
        ("mocks", {"refund": "ok"}, 'mocks.refund: \'ok\' is not a mock.* Write {"value": "ok"}'),
        ("mocks", {"refund": {}}, "is not a mock: it may have value"),
        ("mocks", {"refund": {"value": 1, "fault": {"error": "x"}}}, "is not a mock"),
        ("mocks", {"refund": {"value": 1, "otherwise": {"value": 2}}}, "is not a mock"),
        ("mocks", {"refund": {"in_turn": []}}, "at least one"),
        (
            "mocks",
            {"refund": {"by_args": [5]}},
            r"by_args\[0\]: 5 should be a pair of arguments and a mock",
        ),
        ("mocks", {"refund": {"fault": {"explode": 1}}}, "the field 'explode' is unknown"),
        ("mocks", {"refund": {"fault": {}}}, "exactly one of"),
        ("mocks", {"refund": {"fault": {"slow": "long"}}}, "give seconds"),
        ("allow_tools", "refund", "allow_tools: 'refund' should be a list"),
        (
            "allow_tools",
            [{"live": "m.refund:1"}],
            r"allow_tools\[0\]: .* is not the name of a tool",
        ),
        ("now", "noon", r"\.now: 'noon' should be a number"),
        ("name", 7, r"\.name: 7 should be a string"),
    ],
)
def test_a_bad_case_is_named_with_its_file_and_place(
    tmp_path: Path, field: str, value: Any, told: str
) -> None:
    with pytest.raises(BadFile, match=rf"set\.json: line 1, column \d+, cases\[0\].*{told}"):
        reading_case(
            tmp_path, **{"says": "Hi", field: value} if field != "turns" else {field: value}
        )


@pytest.mark.parametrize("field", ["user", "bridge", "agent"])
def test_a_part_that_is_code_is_refused_instead_of_left_out(tmp_path: Path, field: str) -> None:
    with pytest.raises(BadFile, match=f"`{field}`, which is code.*Python module"):
        reading_case(tmp_path, **{field: {"live": "m.x:1"}})


CODE = Case(
    "a",
    "Hi",
    user=Lines("More.", then=len),
    metrics=[len, "exact"],
    mocks={
        "one": lambda: 1,
        "two": in_turn("x", len),
        "three": by_args(({"a": 1}, "x"), otherwise=len),
        "kept": {"live": True},
        "kept_too": by_args(({"live": 1}, "x")),
    },
    allow_tools=["known", len],
)


def test_a_case_that_holds_code_is_not_written_without_saying_what_would_be_lost(
    tmp_path: Path,
) -> None:
    with pytest.raises(BadFile, match=r"would lose what is code: a\.user") as refused:
        write_evalset(EvalSet("s", [CODE]), tmp_path / "s.json")
    for place in ("a.user", "a.metrics.len", "a.mocks.one", "a.mocks.two", "a.mocks.three"):
        assert place in str(refused.value)
    assert "kept" not in str(refused.value)
    assert list(tmp_path.iterdir()) == []


def test_a_case_may_be_written_without_its_code(tmp_path: Path) -> None:
    write_evalset(EvalSet("s", [CODE]), tmp_path / "s.json", lossy=True)
    (case,) = read_evalset(tmp_path / "s.json")
    assert (case.user, case.allow_tools) == (None, ["known"])
    assert case.metrics == [Criterion("exact")]
    assert sorted(case.mocks) == ["kept", "kept_too"]
    assert case.mocks["kept"] == {"live": True}


def test_a_recorded_case_may_leave_its_code_behind() -> None:
    case = Case("a", "Hi", user=Lines(len), metrics=[len], mocks={"refund": lambda: 1})
    assert case_from(case_data(case), live=True) == Case("a", "Hi")


@pytest.mark.parametrize(
    "text, told",
    [
        ('{"version": 1, "cases": [}', "Invalid JSON"),
        ('{"version": 1, "cases": [], "cases": []}', "the key 'cases' is given twice"),
        (
            '{"version": 1, "cases": [{"id": "a", "metadata": {"x": NaN}}]}',
            "NaN is not a number that JSON can hold",
        ),
        (
            '{"version": 1, "cases": [{"id": "a", "metadata": {"x": 1e999}}]}',
            "1e999 is not a number",
        ),
        ('{"version": 2, "cases": []}', "version 2; use version 1"),
        ('{"cases": []}', "it has no `version`; use version 1"),
        ('{"version": 1}', "not an eval set"),
        ("[]", "not an eval set"),
        ("null", "not an eval set"),
        ('{"version": 1, "cases": {}}', "cases: {} should be a list"),
        (
            '{"version": 1, "case": [], "cases": []}',
            "the field 'case' is unknown. Did you mean 'cases'",
        ),
        ('{"version": 1, "metadata": 4, "cases": []}', "metadata: 4 should be a mapping"),
        ("[" * 100_000, "Invalid JSON"),
        ('{"version": 1, "cases": ["a"]}', r"cases\[0\]: 'a' should be a mapping"),
    ],
)
def test_json_that_is_no_eval_set_is_refused(tmp_path: Path, text: str, told: str) -> None:
    with pytest.raises(BadFile, match=told):
        reading(tmp_path, text)


@pytest.mark.parametrize(
    "body, told",
    [
        ("- id: [a", "Invalid YAML"),
        (
            "- id: a\n  says: one\n  says: two",
            "line 5, column 3, cases\\[0\\].says: the key 'says' is given twice",
        ),
        ("- {id: a, state: {session: {x: 1, x: 2}}}", "the key 'x' is given twice"),
        ("- {id: a, metadata: {x: .nan}}", "cases.*x: '.nan' is a string to some readers"),
        ("- {id: a, metadata: {x: .inf}}", "cases.*x: '.inf' is a string to some readers"),
        ("- {id: a, metadata: {1: x}}", "the key '1' may not be a string"),
        ("- {id: a, on: x}", "the key 'on' may not be a string"),
        ("- &a {id: a}\n- *a", "aliases"),
        ("- {id: a, metadata: {x: &x [1], y: *x}}", "aliases"),
        ("- {id: a, metadata: &m {x: *m}}", "aliases"),
        ("- !!python/object/apply:os.getcwd []", "YAML tags are refused"),
        ("- {id: a}\n---\nversion: 1", "Invalid YAML"),
        ("- {id: a, metadata: {x: !!binary aGk=}}", "tags are refused, but this has .*binary"),
        ("[" * 5_000, "Invalid YAML"),
    ],
)
def test_yaml_that_is_no_eval_set_is_refused(tmp_path: Path, body: str, told: str) -> None:
    with pytest.raises(BadFile, match=told):
        reading(tmp_path, f"version: 1\ncases:\n{body}\n", "set.yaml")


def test_a_date_in_yaml_is_a_text(tmp_path: Path) -> None:
    text = "version: 1\ncases:\n- {id: a, says: Hi, state: {session: {day: 2026-01-02}}}\n"
    assert reading(tmp_path, text, "set.yaml")["a"].state == {"session": {"day": "2026-01-02"}}


def test_an_empty_file_is_refused(tmp_path: Path) -> None:
    for name in ("set.yaml", "set.json", "set.csv", "set.jsonl"):
        with pytest.raises(BadFile, match=rf"{name} is empty\. Write a case into it"):
            reading(tmp_path, " \n", name)
    with pytest.raises(BadFile, match=r"set\.yml is empty"):
        reading(tmp_path, "---\n# to be written\n", "set.yml")


def test_a_set_without_cases_is_not_written_as_a_table(tmp_path: Path) -> None:
    for name in ("set.csv", "set.jsonl"):
        with pytest.raises(BadFile, match=r"each row is a case, and the set has none\. Write"):
            write_evalset(EvalSet("set"), tmp_path / name, lossy=True)
        assert not (tmp_path / name).exists()


def test_a_tab_in_yaml_is_named(tmp_path: Path) -> None:
    with pytest.raises(
        BadFile, match="line 3, column 1: there is a tab here; YAML is indented with"
    ):
        reading(tmp_path, "version: 1\ncases:\n\t- id: a\n\t  says: Hi\n", "set.yaml")


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(BadFile, match=r"there is no file '.*nowhere\.json'\.$"):
        read_evalset(tmp_path / "nowhere.json")


def test_the_file_that_was_probably_meant_is_named(tmp_path: Path) -> None:
    (tmp_path / "refunds.yaml").touch()
    with pytest.raises(BadFile, match=r"refund\.yaml'\. Did you mean '.*refunds\.yaml'\?"):
        read_evalset(tmp_path / "refund.yaml")


def test_a_folder_is_no_eval_set(tmp_path: Path) -> None:
    (tmp_path / "set.json").mkdir()
    with pytest.raises(BadFile, match="cannot read"):
        read_evalset(tmp_path / "set.json")


def test_a_file_of_another_kind_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadFile, match=r"not one of \.json, \.yaml, \.yml"):
        reading(tmp_path, "version: 1", "set.toml")


def test_bytes_that_are_no_text_are_refused(tmp_path: Path) -> None:
    (tmp_path / "set.json").write_bytes(b"\xff\xfe")
    with pytest.raises(BadFile, match="cannot read"):
        read_evalset(tmp_path / "set.json")


def test_two_cases_of_one_id_in_a_file_are_refused(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="two cases 'a'"):
        reading(tmp_path, '{"version": 1, "cases": [{"id": "a"}, {"id": "a"}]}')


@pytest.mark.parametrize(
    "line, write",
    [
        ("tools: [{refund: {order: 7}}]", "Write {tool: refund, args: {order: 7}}"),
        ("tools: [{refund: }]", "Write {tool: refund, args: {}}"),
        ("metrics: [{called: {tool: refund}}]", "Write {criterion: called, tool: refund}"),
        ("metrics: [{likeness: 0.9}]", "Write {criterion: likeness, threshold: 0.9}"),
        ("tools: [{tol: refund}]", "Did you mean 'tool'"),
        ("metrics: [{critrion: called, tool: refund}]", "Did you mean 'criterion'"),
    ],
)
def test_a_name_before_its_details_is_shown_as_it_is_written_here(
    tmp_path: Path, line: str, write: str
) -> None:
    inside = line if line.startswith("metrics") else f"expect: {{{line}}}"
    text = f"version: 1\nid: a\ncases:\n  - id: one\n    says: Hi\n    {inside}\n"
    (tmp_path / "a.yaml").write_text(text)
    with pytest.raises(BadFile) as caught:
        read_evalset(tmp_path / "a.yaml")
    assert "line 6" in str(caught.value)
    assert write in str(caught.value)
