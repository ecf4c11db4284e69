"""What judges were asked is kept next to the trial that they judged."""

import json
from pathlib import Path
from typing import Any

from greenroom import Agent, Case, Ledger, Scripted, rehearse
from greenroom.ledger import model_interactions
from greenroom.metrics import judge
from greenroom.models.model import ModelReply, ModelRequest
from greenroom.store import Store
from greenroom.store.runs import Key
from greenroom.world import pii_filter


class Verdicts:
    """A judge that always says yes."""

    name = "verdicts"

    async def respond(self, request: ModelRequest, on_delta: Any = None) -> ModelReply:
        return ModelReply(json.dumps({"reasoning": "Hi, ann@example.org", "verdict": True}))


CASE = Case(
    "hello",
    says="I am ann@example.org",
    metrics=[judge("kind", "Was it kind to bob@example.org?", model=Verdicts(), samples=3)],
)
CLERK = Agent("clerk", model=Scripted("Hello."))


def judging(place: Path, **options: Any) -> Ledger:
    report = rehearse(CLERK, CASE, store=place, **options)
    assert report.passed, report.results[0].scores
    return Store(place).ledger(report.id, Key("hello", 1), "judging")


def test_what_a_judge_was_asked_is_in_its_ledger(tmp_path: Path) -> None:
    ledger = judging(tmp_path)
    asked = model_interactions(ledger)
    assert [one.agent for one in asked] == ["judge:kind"] * 3
    for one in asked:
        assert one.request is not None
        assert "Was it kind to bob@example.org?" in one.request.instructions
        assert "I am ann@example.org" in one.request.messages[0].text


def test_it_can_be_left_out(tmp_path: Path) -> None:
    ledger = judging(tmp_path, omit_questions=True)
    assert [one.request for one in model_interactions(ledger)] == [None] * 3
    assert "bob@example.org" not in ledger.dumps()


def test_personal_data_is_not_kept_there_either(tmp_path: Path) -> None:
    ledger = judging(tmp_path, middleware=[pii_filter(ledger=True)])
    assert len(model_interactions(ledger)) == 3
    assert "example.org" not in ledger.dumps()
