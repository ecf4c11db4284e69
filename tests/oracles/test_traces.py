"""Traces and logs that others recorded: nothing is lost, and the published figures come out."""

import json
import os
from pathlib import Path

import pytest

from greenroom.ledger import Ledger, ModelReplied, ToolReturned, UserSaid
from greenroom.ledger.interactions import model_interactions
from greenroom.ledger.plain import as_object
from greenroom.ledger.questions import tool_calls, usage
from greenroom.suite import load_cases, score_traces
from greenroom.traces import Imported, read_traces

DATA = Path(os.environ.get("GREENROOM_DATA", ""))

pytestmark = pytest.mark.skipif(
    "GREENROOM_DATA" not in os.environ, reason="GREENROOM_DATA names no folder with tau and traces"
)


@pytest.mark.parametrize(
    "trace, cases, expected",
    [
        ("helm.json", "eval_set_helm.json", 1.0),
        ("k8s.json", "evalset_k8s_2026-02-20.json", 1.0),
        ("k8s.json", "eval_set_helm.json", 0.0),
    ],
)
async def test_calls_in_a_jaeger_export_are_scored_as_published(trace, cases, expected):
    found = read_traces(DATA / "traces" / trace)
    known = load_cases(str(DATA / "traces" / cases))
    report = await score_traces(found, metrics=["tool_trajectory_avg_score"], cases=known)
    (result,) = report.results
    assert result.measured["tool_trajectory_avg_score"].value == expected


@pytest.mark.parametrize("trace, tokens", [("helm.json", (3776, 130)), ("k8s.json", (2203, 139))])
def test_a_call_that_two_instrumentations_tell_of_counts_once(trace, tokens):
    (found,) = read_traces(DATA / "traces" / trace)
    used = usage(found.ledger)
    assert used is not None
    assert (used.input, used.output) == tokens


@pytest.fixture(scope="module")
def tau() -> list[Imported]:
    return list(read_traces(DATA / "tau" / "gpt-4o-airline.json"))


def test_two_hundred_conversations_come_back_word_for_word(tau):
    trials = json.loads((DATA / "tau" / "gpt-4o-airline.json").read_text())
    assert len(tau) == len(trials) == 200
    assert sum(len(tool_calls(found.ledger)) for found in tau) == 1164
    for found, trial in zip(tau, trials, strict=True):
        ledger = Ledger.loads(found.ledger.dumps())
        assert messages_of(ledger) == plain_messages(trial["traj"][1:])
        first = model_interactions(ledger)[0].request
        assert first is not None
        assert first.instructions == trial["traj"][0]["content"]


def messages_of(ledger: Ledger) -> list[object]:
    found: list[object] = []
    for event in ledger:
        if isinstance(event, UserSaid):
            found.append(("user", event.text))
        elif isinstance(event, ModelReplied):
            calls = [(call.tool, dict(call.args), call.id) for call in event.calls]
            found.append(("assistant", event.text, calls))
        elif isinstance(event, ToolReturned):
            found.append(("tool", event.call_id.split("~")[0], event.value))
    return found


def plain_messages(traj: list[dict[str, object]]) -> list[object]:
    found: list[object] = []
    for message in traj:
        if message["role"] == "user":
            found.append(("user", message["content"]))
        elif message["role"] == "tool":
            found.append(("tool", message["tool_call_id"], message["content"]))
        else:
            calls = [
                (one["function"]["name"], json.loads(one["function"]["arguments"]), one["id"])
                for one in message.get("tool_calls") or []  # type: ignore[union-attr]
            ]
            found.append(("assistant", message["content"] or "", calls))
    return found


async def test_the_verdicts_of_another_tool_give_its_published_figures(tau):
    report = await score_traces(tau, metrics=["recorded_verdict"])
    figures = [report.all_of(k) for k in (1, 2, 3, 4)]
    assert figures == [pytest.approx(f, abs=5e-5) for f in (0.420, 0.2733, 0.220, 0.200)]


def test_the_verdict_of_another_tool_is_kept_beside_and_never_taken_for_ours(tau):
    assert {found.verdicts["reward"] for found in tau} == {0.0, 1.0}
    assert all(as_object(found.verdicts) for found in tau)
