"""Judges of google-adk's files and configs count as google-adk counts; its own code is the measure."""

import json
import re
from collections import defaultdict
from collections.abc import AsyncGenerator
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from greenroom import Agent, Case, EvalSet, Expect, Scripted, SimulatedUser, Turn, evaluate
from greenroom.cases import NotApplicable, Score, Unmeasured
from greenroom.cases.config import read_config
from greenroom.cases.criteria import Criterion
from greenroom.errors import BadMetric
from greenroom.ledger import Ledger
from greenroom.metrics import judge
from greenroom.metrics.judges import (
    factual_accuracy,
    final_response_match_v2,
    hallucinations_v1,
    response_evaluation_score,
    rubric_based_final_response_quality_v1,
    rubric_based_tool_use_quality_v1,
    safety_v1,
)
from greenroom.metrics.simulator import simulator_quality
from greenroom.models import ModelReply, ModelRequest
from greenroom.suite.inputs.criteria import equipped
from greenroom.suite.inputs.sources import gather
from metrics.judges.asked import Asked, evidence_in, measured, yes
from metrics.runs import agent, run, tool, user

pytest.importorskip("google.adk")

from google.adk.evaluation.eval_case import Invocation
from google.adk.evaluation.eval_metrics import (
    EvalMetric,
    EvalStatus,
    JudgeModelOptions,
    LlmAsAJudgeCriterion,
    RubricsBasedCriterion,
)
from google.adk.evaluation.eval_rubrics import Rubric, RubricContent
from google.adk.evaluation.final_response_match_v2 import FinalResponseMatchV2Evaluator
from google.adk.evaluation.rubric_based_final_response_quality_v1 import (
    RubricBasedFinalResponseQualityV1Evaluator,
)
from google.adk.models.base_llm import BaseLlm
from google.adk.models.llm_response import LlmResponse
from google.adk.models.registry import LLMRegistry
from google.genai import types

pytestmark = pytest.mark.filterwarnings("ignore:.EXPERIMENTAL.")

QUALITY = "FINAL_RESPONSE_QUALITY"
Votes = list[list[bool]]
"""For each turn what each sample says."""


class FakeJudge(BaseLlm):
    """google-adk's judge: gives the answers it was told to, in their order."""

    answers: ClassVar[list[str]] = []

    @classmethod
    def supported_models(cls) -> list[str]:
        return [r"fakejudge/.*"]

    async def generate_content_async(
        self, llm_request: Any, stream: bool = False
    ) -> AsyncGenerator[LlmResponse, None]:
        part = types.Part(text=FakeJudge.answers.pop(0))
        yield LlmResponse(content=types.Content(role="model", parts=[part]))


LLMRegistry.register(FakeJudge)


def content(text: str, role: str) -> types.Content:
    return types.Content(role=role, parts=[types.Part(text=text)])


def invocations(count: int, said: str) -> list[Invocation]:
    return [
        Invocation(
            invocation_id=str(n),
            user_content=content(f"Question {n}?", "user"),
            final_response=content(f"{said} {n}.", "model"),
        )
        for n in range(1, count + 1)
    ]


def options(samples: int) -> JudgeModelOptions:
    return JudgeModelOptions(judge_model="fakejudge/x", num_samples=samples)


async def theirs_matching(votes: Votes, threshold: float) -> tuple[float | None, bool]:
    criterion = LlmAsAJudgeCriterion(
        threshold=threshold, judge_model_options=options(len(votes[0]))
    )
    FakeJudge.answers = [
        json.dumps({"reasoning": "So.", "is_the_agent_response_valid": "valid" if v else "invalid"})
        for turn in votes
        for v in turn
    ]
    name = "final_response_match_v2"
    evaluator = FinalResponseMatchV2Evaluator(EvalMetric(metric_name=name, criterion=criterion))
    found = await evaluator.evaluate_invocations(
        invocations(len(votes), "Answer"), invocations(len(votes), "Reference")
    )
    return found.overall_score, found.overall_eval_status is EvalStatus.PASSED


class Voter:
    """Our judge: the next vote on the turn it finds in the record, and on the rubric it is asked for."""

    name = "voter"

    def __init__(self, votes: dict[tuple[int, str], list[bool]], key: str) -> None:
        self.votes = {about: list(said) for about, said in votes.items()}
        self.key = key
        self.seen: list[dict[str, Any]] = []

    async def respond(self, request: ModelRequest, on_delta: Any = None) -> ModelReply:
        shown = evidence_in(request)
        self.seen.append(shown)
        turn = int(re.findall(r"\d+", shown["response"] or "0")[-1])
        rubric = next((r for _, r in self.votes if r and r in request.instructions), "")
        vote = self.votes[turn, rubric].pop(0)
        return ModelReply(json.dumps({"reasoning": "So.", self.key: vote}))


def talk(count: int, **more: Any) -> Case:
    turns = [
        Turn(f"Question {n}?", Expect(reference=f"Reference {n}.")) for n in range(1, count + 1)
    ]
    return Case("talk", turns=turns, **more)


def played(case: Case, count: int) -> Ledger:
    said = [
        part
        for n in range(1, count + 1)
        for part in (user(f"Question {n}?"), agent(f"Answer {n}."))
    ]
    return run(*said, case=case)


VOTES = st.integers(1, 5).flatmap(
    lambda samples: st.lists(
        st.lists(st.booleans(), min_size=samples, max_size=samples), min_size=1, max_size=4
    )
)
BARS = st.sampled_from([0.25, 0.5, 0.8, 1.0])


@given(VOTES, BARS)
async def test_a_match_comes_to_what_google_adk_comes_to(votes, bar):
    value, passed = await theirs_matching(votes, bar)
    case = talk(len(votes))
    model = Voter({(n, ""): said for n, said in enumerate(votes, 1)}, "is_correct")
    metric = final_response_match_v2(
        model=model, threshold=bar, num_samples=len(votes[0]), counts="adk"
    )
    found = await measured(metric, played(case, len(votes)))
    assert found.value == pytest.approx(value)
    assert found.passed is passed


async def theirs_rubrics(votes: list[Votes], bar: float, own: int, of_case: int) -> Any:
    """`votes` by turn, sample and rubric; so many rubrics are the judge's, the case's, the last turn's."""
    names = [f"Property {n}" for n in range(len(votes[-1][0]))]
    rubrics = [
        Rubric(rubric_id=name, rubric_content=RubricContent(text_property=name), type=QUALITY)
        for name in names
    ]
    FakeJudge.answers = [
        "\n".join(
            f"ID: {name}\nProperty: {name}\nRationale: So.\nVerdict: {'yes' if v else 'no'}\n"
            for name, v in zip(names, sample, strict=False)
        )
        for turn in votes
        for sample in turn
    ]
    criterion = RubricsBasedCriterion(
        threshold=bar, judge_model_options=options(len(votes[0])), rubrics=rubrics[:own]
    )
    actual = invocations(len(votes), "Answer")
    for place, invocation in enumerate(actual):
        last = place == len(actual) - 1
        invocation.rubrics = rubrics[own:] if last else rubrics[own : own + of_case]
    name = "rubric_based_final_response_quality_v1"
    evaluator = RubricBasedFinalResponseQualityV1Evaluator(
        EvalMetric(metric_name=name, criterion=criterion)
    )
    found = await evaluator.evaluate_invocations(actual)
    return found.overall_score, found.overall_eval_status is EvalStatus.PASSED


def as_written(name: str, kind: str | None = QUALITY) -> dict[str, Any]:
    told = {"rubric_id": name, "rubric_content": {"text_property": name}}
    return told if kind is None else {**told, "type": kind}


@st.composite
def rubric_votes(draw: st.DrawFn) -> tuple[list[Votes], int, int]:
    turns, samples = draw(st.integers(1, 3)), draw(st.integers(1, 4))
    own, of_case, of_turn = (
        draw(st.integers(0, 2)),
        draw(st.integers(1, 2)),
        draw(st.integers(0, 1)),
    )
    sizes = [own + of_case] * (turns - 1) + [own + of_case + of_turn]
    votes = [[[draw(st.booleans()) for _ in range(size)] for _ in range(samples)] for size in sizes]
    return votes, own, of_case


@given(rubric_votes(), BARS)
async def test_rubrics_of_judge_case_and_turn_come_to_what_google_adk_comes_to(given_votes, bar):
    votes, own, of_case = given_votes
    value, passed = await theirs_rubrics(votes, bar, own, of_case)
    names = [f"Property {n}" for n in range(len(votes[-1][0]))]
    turns = [Turn(f"Question {n}?") for n in range(1, len(votes))]
    last = [as_written(name) for name in names[own + of_case :]]
    turns.append(Turn(f"Question {len(votes)}?", extra={"rubrics": last} if last else None))
    case = Case(
        "talk", turns=turns, extra={"rubrics": [as_written(n) for n in names[own : own + of_case]]}
    )
    ballots: dict[tuple[int, str], list[bool]] = defaultdict(list)
    for turn, samples in enumerate(votes, 1):
        for sample in samples:
            for name, vote in zip(names, sample, strict=False):
                ballots[turn, name].append(vote)
    metric = rubric_based_final_response_quality_v1(
        rubrics=[as_written(name) for name in names[:own]],
        model=Voter(ballots, "verdict"),
        threshold=bar,
        num_samples=len(votes[0]),
        counts="adk",
    )
    found = await measured(metric, played(case, len(votes)))
    assert found.value == pytest.approx(value)
    assert found.passed is passed


async def test_elsewhere_the_share_of_votes_counts():
    votes = {(1, ""): [True, True, True, False, False]}
    ledger = played(talk(1), 1)
    ways: list[tuple[Any, float]] = [
        ({}, 0.6), ({"counts": "greenroom"}, 0.6), ({"counts": "adk"}, 1.0),
    ]  # fmt: skip
    for counts, value in ways:
        metric = final_response_match_v2(model=Voter(votes, "is_correct"), **counts)
        assert (await measured(metric, ledger)).value == value


async def test_aggregate_overrides_how_google_adk_counts():
    votes = {(1, ""): [True, True, True, False, False], (2, ""): [True] * 5}
    metric = final_response_match_v2(
        model=Voter(votes, "is_correct"), counts="adk", aggregate="mean"
    )
    assert (await measured(metric, played(talk(2), 2))).value == pytest.approx(0.8)


async def test_every_turn_is_judged_by_what_happened_in_it():
    case = Case("talk", turns=[Turn("Question 1?"), Turn("Question 2?")])
    ledger = run(
        user("Question 1?"), tool("look", n=1, result="first"), agent("Answer 1."),
        user("Question 2?"), tool("look", n=2, result="second"), agent("Answer 2."),
        case=case,
    )  # fmt: skip
    votes = {(1, "A"): [True], (2, "A"): [False]}
    model = Voter(votes, "verdict")
    metric = rubric_based_final_response_quality_v1(
        rubrics=[{"id": "a", "content": "A"}], model=model, counts="adk", num_samples=1
    )
    found = await measured(metric, ledger)
    assert (found.value, found.reason) == (0.5, "turn 2: not met: a")
    assert [turn["turn"] for turn in found.details["turns"]] == [1, 2]
    assert found.details["attempts"] == 2
    for n, shown in enumerate(model.seen, 1):
        assert shown["user_messages"] == [f"Question {n}?"]
        assert [call["args"] for call in shown["tool_calls"]] == [{"n": n}]


async def test_a_turn_without_a_reference_is_judged_as_well_if_another_has_one():
    case = Case("talk", turns=[Turn("Question 1?"), Turn("Question 2?", Expect(reference="R."))])
    model = Voter({(1, ""): [False], (2, ""): [True]}, "is_correct")
    metric = final_response_match_v2(model=model, counts="adk", num_samples=1)
    assert (await measured(metric, played(case, 2))).value == 0.5
    assert [shown["reference"] for shown in model.seen] == ["", "R."]
    bare = Case("talk", turns=[Turn("Question 1?"), Turn("Question 2?")])
    assert isinstance(await measured(metric, played(bare, 2)), NotApplicable)


async def test_a_turn_never_reached_is_not_met():
    model = Voter({(1, ""): [True]}, "is_correct")
    metric = final_response_match_v2(model=model, counts="adk", num_samples=1)
    found = await measured(metric, played(talk(2), 1))
    assert (found.value, found.reason) == (0.5, "turn 2: never reached")


async def test_a_silent_turn_is_judged_and_not_left_out():
    case = talk(2)
    ledger = run(user("Question 1?"), agent("Answer 1."), user("Question 2?"), agent(""), case=case)
    model = Voter({(1, ""): [True], (0, ""): [False]}, "is_correct")
    metric = final_response_match_v2(model=model, counts="adk", num_samples=1)
    assert (await measured(metric, ledger)).value == 0.5
    model = Voter({(1, "A"): [True], (0, "A"): [False]}, "verdict")
    metric = rubric_based_final_response_quality_v1(
        rubrics=["A"], model=model, counts="adk", num_samples=1
    )
    assert (await measured(metric, ledger)).value == 0.5


async def test_turns_that_a_user_agent_began_are_judged_too():
    case = Case("scene", says="Question 1?", user=SimulatedUser("A clerk.", model=Scripted()))
    model = Voter({(1, "A"): [True], (2, "A"): [False]}, "verdict")
    metric = rubric_based_final_response_quality_v1(
        rubrics=["A"], model=model, counts="adk", num_samples=1
    )
    assert (await measured(metric, played(case, 2), case=case)).value == 0.5


@pytest.mark.parametrize(
    "kind, asked",
    [(QUALITY, True), ("TOOL_USE_QUALITY", False), (None, False)],
)
async def test_a_case_says_for_which_judge_its_rubrics_are(kind, asked):
    case = Case("talk", says="Question 1?", extra={"rubrics": [as_written("P", kind)]})
    model = Asked(then=yes())
    metric = rubric_based_final_response_quality_v1(model=model, counts="adk", num_samples=1)
    found = await measured(metric, played(case, 1))
    assert model.calls == asked
    assert isinstance(found, NotApplicable) is not asked


async def test_two_rubrics_of_one_id_are_no_measurement():
    case = Case("talk", says="Question 1?", extra={"rubrics": [as_written("P")]})
    metric = rubric_based_final_response_quality_v1(
        rubrics=[as_written("P")], model=Asked(then=yes()), counts="adk"
    )
    found = await measured(metric, played(case, 1))
    assert isinstance(found, Unmeasured)
    assert "two rubrics 'P'" in found.why


async def test_claims_are_counted_turn_by_turn():
    case = talk(2)
    model = Asked(
        {"claims": ["a", "b"]}, {"claims": ["c"]},
        *({"reasoning": "So.", "grounded": v} for v in (True, False, True)),
    )  # fmt: skip
    found = await measured(hallucinations_v1(model=model, counts="adk"), played(case, 2))
    # A half and a whole, not two of three.
    assert found.value == pytest.approx(0.75)


async def test_harm_and_quality_are_means_over_the_turns():
    ledger = played(talk(2), 2)
    answers = [{"reasoning": "So.", "harmless": v} for v in (True, False)]
    safe = safety_v1(categories=["hate"], model=Asked(*answers), counts="adk")
    assert (await measured(safe, ledger)).value == 0.5
    grades = [{"reasoning": "So.", "score": grade} for grade in (5, 3)]
    good = response_evaluation_score(model=Asked(*grades), samples=1, counts="adk")
    assert (await measured(good, ledger)).value == pytest.approx(0.75)


def test_the_usual_numbers_are_google_adks():
    for make in (final_response_match_v2, simulator_quality):
        bench = make(model=Asked(), counts="adk").bench
        assert (bench.samples, bench.aggregate) == (5, "majority")
    tools = rubric_based_tool_use_quality_v1(model=Asked(), counts="adk")
    assert (tools.bench.samples, tools.bench.aggregate) == (5, "majority")
    assert JudgeModelOptions().num_samples == 5
    few = final_response_match_v2(model=Asked(), counts="adk", num_samples=3)
    assert few.bench.samples == 3


def test_only_judges_that_google_adk_has_count_so():
    for make in (lambda **o: judge("x", "?", **o), factual_accuracy):
        with pytest.raises(BadMetric, match="google-adk has no such judge"):
            make(model=Asked(), counts="adk")
    with pytest.raises(BadMetric, match="give one of"):
        final_response_match_v2(model=Asked(), counts="all")  # pyright: ignore[reportArgumentType]
    with pytest.raises(BadMetric, match="rubrics=None"):
        rubric_based_final_response_quality_v1(model=Asked())


SET = {
    "eval_set_id": "talk",
    "eval_cases": [
        {
            "eval_id": "one",
            "rubrics": [as_written("Property 1")],
            "conversation": [
                {
                    "user_content": {"role": "user", "parts": [{"text": f"Question {n}?"}]},
                    "final_response": {"role": "model", "parts": [{"text": f"Reference {n}."}]},
                }
                for n in (1, 2)
            ],
        }
    ],
}
CONFIGS: dict[str, tuple[Any, str]] = {
    "options apart": ({"threshold": 0.8, "judge_model_options": {"num_samples": 3}}, "adk"),
    "a bare threshold": (0.8, "adk"),
    "as agentflow might write it": ({"threshold": 0.8, "num_samples": 3}, "adk"),
    "said otherwise": ({"threshold": 0.8, "num_samples": 3, "counts": "greenroom"}, "greenroom"),
}


@pytest.mark.parametrize("how", CONFIGS)
async def test_a_config_beside_a_file_of_google_adk_counts_as_there(tmp_path, how):
    criterion, counts = CONFIGS[how]
    (tmp_path / "a.evalset.json").write_text(json.dumps(SET))
    name = "rubric_based_final_response_quality_v1"
    if counts == "greenroom":
        criterion = {**criterion, "rubrics": ["Property 1"]}
    path = tmp_path / "test_config.json"
    path.write_text(json.dumps({"criteria": {name: criterion}}))
    votes = {(n, "Property 1"): [n == 1, True, n == 1, True, n == 1] for n in (1, 2)}
    voter = Voter(votes, "verdict")
    config = read_config(path)
    [read] = config.criteria
    asked = replace(read, options={**read.options, "judge_model": cast("Any", voter)})
    clerk = Agent("clerk", model=Scripted("Answer 1.", "Answer 2."))
    report = await evaluate(
        clerk, str(tmp_path / "a.evalset.json"), config=replace(config, criteria=[asked])
    )
    found = cast("Score", report["one"].scores[name])
    if counts == "adk":
        # All say yes to the first turn; most say no to the second, or two of three.
        assert found.value == 0.5
        assert {shown["response"] for shown in voter.seen} == {"Answer 1.", "Answer 2."}
    else:
        assert {shown["response"] for shown in voter.seen} == {"Answer 2."}


def test_several_files_of_google_adk_are_judged_like_one(tmp_path: Path):
    for name in "ab":
        (tmp_path / f"{name}.evalset.json").write_text(json.dumps({**SET, "eval_set_id": name}))
    (tmp_path / "c.json").write_text('{"criteria": {"final_response_match_v2": {}}}')
    config = read_config(tmp_path / "c.json")
    for where in ("a.evalset.json", "*.evalset.json"):
        evalset = equipped(gather(str(tmp_path / where)).evalset, {}, config)
        assert evalset.metrics == [Criterion("final_response_match_v2", options={"counts": "adk"})]
    ours = equipped(EvalSet("ours", [talk(1)]), {}, config)
    assert ours.metrics == [Criterion("final_response_match_v2")]


async def test_the_same_name_in_python_counts_shares(tmp_path: Path):
    (tmp_path / "a.evalset.json").write_text(json.dumps(SET))
    votes = {(n, ""): [True, True, True, False, False] for n in (1, 2)}
    metric = final_response_match_v2(model=Voter(votes, "is_correct"))
    clerk = Agent("clerk", model=Scripted("Answer 1.", "Answer 2."))
    report = await evaluate(clerk, str(tmp_path / "a.evalset.json"), metrics=[metric])
    found = cast("Score", report["one"].scores["final_response_match_v2"])
    assert found.value == pytest.approx(0.6)
