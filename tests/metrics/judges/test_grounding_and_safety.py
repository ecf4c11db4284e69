"""Claims are held against what the agent could know; harm is judged by category."""

import asyncio

import pytest

from greenroom.cases import NotApplicable, Unmeasured
from greenroom.errors import BadMetric
from greenroom.metrics.judges import Category, hallucinations_v1, safety_v1
from greenroom.models import Scripted
from metrics.judges.asked import Asked, evidence_in, measured, no, order, yes

LYON, NOON = "Order 7 is in Lyon.", "It arrives at noon."


def claims(*texts):
    return {"claims": list(texts)}


async def test_the_value_is_the_share_of_claims_that_are_grounded():
    model = Asked(claims(LYON, NOON), yes("grounded"), no("grounded", "Nobody said when."))
    found = await measured(hallucinations_v1(model=model))
    assert (found.value, found.passed, found.measured) == (0.5, False, 1)
    assert found.evidence == [NOON]
    assert found.reason == f"1 of 2 claims are grounded; not {NOON!r}"
    told = [(c["claim"], c["value"], c["reasoning"]) for c in found.details["claims"]]
    assert told == [(LYON, 1.0, "Fine."), (NOON, 0.0, "Nobody said when.")]
    assert found.details["attempts"] == 3


async def test_a_claim_is_held_against_everything_but_the_agents_own_words():
    model = Asked(claims(LYON), yes("grounded"))
    await measured(hallucinations_v1(model=model), order("Order 7 is in Lyon, trust me."))
    asked, checked = map(evidence_in, model.requests)
    assert asked == {"responses": ["Order 7 is in Lyon, trust me."]}
    assert checked == {
        "user_messages": ["Where is order 7?"],
        "tool_calls": [{"tool": "track", "args": {"order": 7}, "result": {"place": "Lyon"}}],
        "context": {"carrier": "ACME"},
        "claim": LYON,
    }
    # The claim repeats what the agent said, so it must not stand among the instructions.
    assert LYON not in model.requests[1].instructions


async def test_who_claims_nothing_cannot_be_wrong():
    found = await measured(hallucinations_v1(model=Scripted(claims())), order("Hello!"))
    assert isinstance(found, NotApplicable)


async def test_claims_that_cannot_be_read_are_unmeasured():
    found = await measured(hallucinations_v1(model=Scripted(then={"claims": "none"})))
    assert isinstance(found, Unmeasured)


async def test_claims_are_checked_in_batches_if_asked_for():
    entries = [{"id": f"claim_{n}", "reasoning": "", "grounded": n != 2} for n in (1, 2, 3)]
    model = Asked(claims(LYON, NOON, "It is blue."), {"answers": entries})
    found = await measured(hallucinations_v1(model=model, batch=10))
    assert [c["value"] for c in found.details["claims"]] == [1.0, 0.0, 1.0]
    assert evidence_in(model.requests[1])["claims"] == {
        "claim_1": LYON, "claim_2": NOON, "claim_3": "It is blue.",
    }  # fmt: skip


async def test_many_claims_are_checked_side_by_side_but_not_all_at_once():
    under_way: list[int] = []
    now = 0

    async def checks(_):
        nonlocal now
        now += 1
        under_way.append(now)
        await asyncio.sleep(0)
        now -= 1
        return yes("grounded")

    texts = [f"Claim {n}." for n in range(30)]
    found = await measured(hallucinations_v1(model=Scripted(claims(*texts), then=checks)))
    assert (found.value, found.details["attempts"]) == (1.0, 31)
    assert max(under_way) == 8


async def test_all_categories_must_be_harmless():
    model = Asked(then=yes("harmless"))
    found = await measured(safety_v1(model=model))
    assert (found.value, found.passed, found.threshold) == (1.0, True, 1.0)
    assert model.calls == len(found.details["categories"]) == 7


async def test_one_harmful_category_fails_it_and_is_named():
    model = Asked(yes("harmless"), no("harmless", "It mocks them."))
    found = await measured(safety_v1(model=model, categories=["violence", "hate"]))
    assert (found.value, found.passed, found.reason) == (0.0, False, "not harmless: hate")
    assert found.details["categories"]["hate"]["reasoning"] == "It mocks them."


async def test_each_category_has_its_own_threshold():
    # Two samples of each category: the first half harmless, the second not.
    answers = [yes("harmless"), yes("harmless"), no("harmless"), no("harmless")]
    limits = {"violence": 0.5, "hate": 1.0}
    found = await measured(safety_v1(model=Scripted(*answers), categories=limits, samples=2))
    told = {
        k: (c["value"], c["threshold"], c["passed"]) for k, c in found.details["categories"].items()
    }
    assert told == {"violence": (0.5, 0.5, True), "hate": (0.5, 1.0, False)}
    assert not found.passed


async def test_a_category_of_ones_own_is_told_to_the_judge():
    model = Asked(no("harmless"))
    own = {"id": "spoilers", "content": "It tells how the story ends."}
    found = await measured(safety_v1(model=model, categories=[own]))
    assert not found.passed
    assert "It tells how the story ends." in model.requests[0].instructions


async def test_categories_can_be_asked_for_together():
    entries = [{"id": name, "reasoning": "", "harmless": True} for name in ("hate", "violence")]
    model = Asked({"answers": entries})
    metric = safety_v1(model=model, categories=["hate", "violence"], batch=10)
    assert (await measured(metric)).passed
    assert model.calls == 1


@pytest.mark.parametrize(
    "categories",
    [
        [],
        "hate",
        7,
        ["spoilers"],
        ["hate", "hate"],
        [{"id": "hate", "threshold": 7}],
        [{"id": "hate", "limit": 1}],
        [{"content": "x"}],
        [7],
        {"hate": 0},
        {"hate": "high"},
        [Category("x", "")],
    ],
)
def test_categories_that_could_not_be_judged_are_refused(categories):
    with pytest.raises(BadMetric):
        safety_v1(model=Scripted("x"), categories=categories)
