"""Tools that ran where they could not be seen: no judge reads that none were called."""

import pytest

from greenroom.cases import Case, Score, Unmeasured, case_data
from greenroom.ledger import AgentSaid, Ledger, RunEnded, RunStarted, UserSaid
from greenroom.metrics import judge
from greenroom.metrics.judges import (
    factual_accuracy,
    gathered,
    hallucinations_v1,
    jury,
    llm_judge,
    response_evaluation_score,
    rubric_based_final_response_quality_v1,
    rubric_based_tool_use_quality_v1,
    safety_v1,
)
from metrics.judges.asked import CASE, Asked, evidence_in, measured, order, yes
from metrics.runs import timed

NOT_SEEN = "`tool_calls` is not seen: the agent's tools ran where they could not be seen"
GRADE = {"reasoning": "", "score": 5}


def opaque(case: Case = CASE) -> Ledger:
    begun = RunStarted(run_id="r", case=case_data(case), opaque=("tools",))
    said = [UserSaid(text="Where is order 7?"), AgentSaid(text="It is in Lyon.")]
    return timed([begun, *said, RunEnded(reason="completed")], 1.0)


@pytest.mark.parametrize(
    "factory, options",
    [
        (hallucinations_v1, {}),
        (rubric_based_tool_use_quality_v1, {"rubrics": ["It looked first."]}),
        (rubric_based_final_response_quality_v1, {"rubrics": ["?"], "evidence": ["tool_calls"]}),
        (factual_accuracy, {"evidence": ["response", "tool_calls"]}),
        (llm_judge, {"prompt": "?", "evidence": ["tool_calls"]}),
    ],
)
async def test_what_rests_on_unseen_calls_is_unmeasured_and_asks_nobody(factory, options):
    model = Asked(then=yes())
    found = await measured(factory(model=model, **options), opaque())
    assert isinstance(found, Unmeasured)
    assert "cannot be seen" in found.why
    assert model.calls == 0


@pytest.mark.parametrize(
    "factory, options, answer",
    [
        (llm_judge, {"prompt": "?"}, yes()),
        (llm_judge, {"prompt": "?", "evidence": ["response", "tool_calls?"]}, yes()),
        (safety_v1, {}, yes("harmless")),
        (factual_accuracy, {}, yes("is_correct")),
        (response_evaluation_score, {}, GRADE),
        (rubric_based_final_response_quality_v1, {"rubrics": ["It is short."]}, yes()),
    ],
)
async def test_other_judges_are_told_that_the_calls_were_not_seen(factory, options, answer):
    model = Asked(then=answer)
    found = await measured(factory(model=model, **options), opaque())
    assert isinstance(found, Score)
    for request in model.requests:
        assert evidence_in(request)["tool_calls"] is None
        assert NOT_SEEN in request.instructions
        assert "the tools the agent called" not in request.instructions


async def test_a_judge_by_rubrics_of_one_s_own_is_told_as_well():
    model = Asked(then=yes())
    await measured(judge("t", "?", form="rubric", rubrics=["Fine."], model=model), opaque())
    assert evidence_in(model.requests[0])["tool_calls"] is None


async def test_a_cut_record_still_says_that_the_calls_were_not_seen():
    model = Asked(yes())
    case = Case("long", says="?", metadata={"text": "blah " * 5000})
    fields = ["response", "context", "tool_calls?"]
    await measured(judge("t", "?", model=model, evidence=fields, limit=2000), opaque(case))
    assert NOT_SEEN in model.requests[0].instructions


async def test_a_jury_with_a_seat_that_needs_unseen_calls_lacks_its_quorum():
    tools = judge("tools", "?", evidence=["tool_calls"], model=Asked(yes()))
    tone = judge("tone", "?", model=Asked(yes()))
    found = await measured(jury([tools, tone]), opaque())
    assert isinstance(found, Unmeasured)
    assert "1 of 2 judges came to a verdict, 2 must: tools: " in found.why


async def test_a_silent_agent_whose_tools_nobody_sees_is_not_said_to_have_called_none():
    begun = RunStarted(run_id="r", case=case_data(CASE), opaque=("tools",))
    silent = timed([begun, UserSaid(text="Hi"), RunEnded(reason="completed")], 1.0)
    found = await measured(judge("t", "?", model=Asked(yes())), silent)
    assert isinstance(found, Unmeasured)
    assert "never spoke, and the agent's tools run where they cannot be seen" in found.why


def test_calls_that_were_seen_are_shown_as_ever():
    shown = [{"tool": "track", "args": {"order": 7}, "result": {"place": "Lyon"}}]
    for name in ("tool_calls", "tool_calls?"):
        assert gathered([name], CASE, order()) == {"tool_calls": shown}


def test_an_agent_that_was_watched_and_called_nothing_called_nothing():
    begun = RunStarted(run_id="r", case=case_data(CASE))
    watched = timed([begun, AgentSaid(text="Hm."), RunEnded(reason="completed")], 1.0)
    assert gathered(["tool_calls?"], CASE, watched) == {"tool_calls": []}
