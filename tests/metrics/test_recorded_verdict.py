"""`recorded_verdict` repeats what another tool said of a conversation, or says why it cannot."""

from typing import Any

import pytest

from greenroom import score
from greenroom.cases import Case, NotApplicable, Unmeasured
from greenroom.ledger import Event, Ledger, Noted
from greenroom.metrics import recorded_verdict
from greenroom.traces.writer import VERDICTS
from metrics.runs import agent, run, user


def judged(**verdicts: Any) -> Ledger:
    noted: list[Event] = [Noted(name=VERDICTS, data=verdicts)]
    return run(user("Hi"), agent("Hello."), noted)


async def outcome(metric: Any, ledger: Ledger) -> Any:
    return (await score(ledger, [metric], Case("c")))["recorded_verdict"]


@pytest.mark.parametrize("value, passed", [(1, True), (0.5, False), (True, True), (False, False)])
async def test_a_recorded_verdict_is_quoted(value: Any, passed: bool) -> None:
    found = await outcome(recorded_verdict("reward"), judged(other="?", reward=value))
    assert (found.value, found.passed) == (float(value), passed)
    assert (await outcome(recorded_verdict(), judged(reward=value))).passed is passed


@pytest.mark.parametrize("value", ["good", None, 7, -0.1, [1], {"value": 1}])
async def test_a_verdict_that_cannot_be_used_is_unmeasured(value: Any) -> None:
    for metric in (recorded_verdict(), recorded_verdict("reward")):
        found = await outcome(metric, judged(reward=value, other=1))
        assert isinstance(found, Unmeasured)
        assert found.why.startswith("reward was recorded as ")


async def test_a_verdict_of_another_name_is_unmeasured() -> None:
    found = await outcome(recorded_verdict("rewards"), judged(reward=1))
    assert found == Unmeasured("no verdict 'rewards' came with the record; there are ['reward']")


async def test_without_any_verdict_there_is_nothing_to_quote() -> None:
    found = await outcome(recorded_verdict(), run(user("Hi"), agent("Hello.")))
    assert found == NotApplicable("no verdict came with the record")
