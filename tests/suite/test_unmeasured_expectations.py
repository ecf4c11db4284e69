"""What a case expects and no metric of the run looks at is told, and not taken for met."""

import json
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pytest

from greenroom import Agent, Case, Expect, Scripted, metric, rehearse
from greenroom.cases import EvalConfig
from greenroom.metrics import contains, exact, turns_within

CASE = Case("a", "Hi", expect=Expect(tools=["look"], contains="never said"), implied=False)


def notes(*metrics: Any, case: Case = CASE) -> list[str]:
    agent = Agent("host", model=Scripted("Hello."))
    return list(rehearse(agent, [replace(case, metrics=metrics)]).notes)


def test_what_nobody_looks_at_is_named() -> None:
    assert notes(contains("Hello")) == [
        "1 case expected `tools`, which no metric of the run looks at: a",
        "1 case expected `contains`, which no metric of the run looks at: a",
    ]


@pytest.mark.parametrize(
    "expect",
    [
        Expect(tools=["look"]),
        Expect(response="Hi"),
        Expect(reference="Hi"),
        Expect(contains="Hi"),
        Expect(intermediate=["One moment."]),
        Expect(state={"session": {"seat": 1}}),
        Expect(state_after={"host": {"session": {"seat": 1}}}),
        Expect(stopped_by="host"),
    ],
    ids=lambda expect: next(f.name for f in fields(expect) if getattr(expect, f.name) is not None),
)
def test_every_field_that_nobody_looks_at_is_named(expect: Expect) -> None:
    (note,) = notes(turns_within(3), case=replace(CASE, expect=expect))
    (name,) = (f.name for f in fields(expect) if getattr(expect, f.name) is not None)
    assert note == f"1 case expected `{name}`, which no metric of the run looks at: a"


def test_what_a_metric_looks_up_in_the_case_is_heeded() -> None:
    assert notes(contains(), "tool_trajectory_avg_score") == []
    asked = replace(CASE, expect=Expect(reference="Hello."))
    assert notes(exact(), case=asked) == []
    assert len(notes(exact("Hello."), case=asked)) == 1


def test_of_code_that_may_look_at_anything_nothing_is_said() -> None:
    @metric
    def mine(response: str, case: Case) -> bool:
        return case.id in response

    assert notes(mine) == []


def test_what_is_measured_by_itself_is_heeded() -> None:
    assert notes(turns_within(3), case=replace(CASE, implied=True)) == []


@pytest.mark.parametrize(
    "criteria, field",
    [({"response_match_score": 0.5}, "tools"), ({"tool_trajectory_avg_score": 1.0}, "reference")],
)
def test_a_config_that_leaves_out_what_a_file_expects_is_told(
    tmp_path: Path, criteria: Any, field: str
) -> None:
    turn = {
        "user_content": {"role": "user", "parts": [{"text": "Hi"}]},
        "final_response": {"role": "model", "parts": [{"text": "Hello."}]},
        "intermediate_data": {"tool_uses": []},
    }
    case = {"eval_id": "a", "conversation": [turn]}
    file = tmp_path / "s.evalset.json"
    file.write_text(json.dumps({"eval_set_id": "s", "eval_cases": [case]}))
    agent = Agent("host", model=Scripted("Hello."))
    assert rehearse(agent, str(file)).notes == []
    (note,) = rehearse(agent, str(file), config=EvalConfig(criteria=criteria)).notes
    assert f"1 case expected `{field}`" in note
