"""A case in Python may expect with functions; data says that they were there."""

from typing import Any

import pytest

from greenroom import Case, EvalSet, Expect, Stop, Turn, call
from greenroom.cases import case_data, case_from, read_evalset, write_evalset
from greenroom.cases.data import live_parts
from greenroom.errors import BadFile
from greenroom.metrics import state_matches, tool_trajectory_avg_score


def paid(total):
    return total > 3


CASE = Case(
    "c",
    turns=[
        Turn("one", Expect(state={"session": {"total": paid}}, contains="ok")),
        Turn("two", Expect(tools=[call("pay", usd=paid), "mail"])),
    ],
    stop=Stop(state_matches={"session": {"done": paid}}),
)


def test_every_function_is_found_by_its_place():
    assert live_parts(CASE) == [
        "c.stop.state_matches",
        "c.turns[0].expect.state",
        "c.turns[1].expect.tools",
    ]


def test_a_change_inside_a_function_changes_the_data():
    other = Case("c", says="x", expect=Expect(state={"session": {"total": lambda v: v > 4}}))
    same = Case("c", says="x", expect=Expect(state={"session": {"total": paid}}))
    assert case_data(other) != case_data(same)
    assert case_data(same) == case_data(same)


def test_a_file_refuses_what_it_would_lose(tmp_path):
    with pytest.raises(BadFile, match=r"would lose what is code.*c\.turns\[0\]\.expect\.state"):
        write_evalset(EvalSet("s", [CASE]), tmp_path / "s.json")
    write_evalset(EvalSet("s", [CASE]), tmp_path / "s.json", lossy=True)
    (kept,) = read_evalset(tmp_path / "s.json").cases
    first, second = kept.turns
    assert first.expect == Expect(contains="ok")
    assert second.expect is None
    assert kept.stop == Stop()


def test_a_file_cannot_bring_a_function_along():
    with pytest.raises(BadFile, match=r"turns\[0\]\.expect\.state: it has `\$live`"):
        case_from({"id": "c", **{k: v for k, v in case_data(CASE).items() if k != "stop"}})


def test_a_key_called_live_is_no_function():
    plain = Case("c", says="x", expect=Expect(state={"session": {"live": "on air"}}))
    assert live_parts(plain) == []
    assert case_from(case_data(plain)).expect == plain.expect


def test_functions_inside_a_metrics_options_are_noticed():
    for metric in (
        tool_trajectory_avg_score(tool_args={"pay": paid}),
        state_matches({"session": {"total": paid}}),
    ):
        written: Any = case_data(Case("c", says="x", metrics=[metric]))
        (data,) = written["metrics"]
        assert [name.rpartition(":")[0].endswith("paid") for name in data["live"]] == [True]
