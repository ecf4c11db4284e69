"""Tests of the tests: worse agents must fail an eval set, and what notices nothing is named."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pydantic_ai import Agent as PydanticAgent
from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import FunctionModel

from backends.keyed_agents import ASKED, FRAMEWORKS, Forecast
from greenroom import (
    Agent,
    Case,
    EvalSet,
    Expect,
    Report,
    Scripted,
    call,
    evaluate,
    live,
    tool,
)
from greenroom.backends.http import http_agent
from greenroom.cases import by_args
from greenroom.errors import BadInput
from greenroom.ledger import Usage
from greenroom.metrics import called, contains, metric
from greenroom.models import ModelReply, ModelRequest, candidate, choose
from greenroom.results import CaseResult
from greenroom.store import Store
from greenroom.suite import Cancel, MutantResult, MutationEstimate, MutationScore, mutation_score
from greenroom.suite.mutation.mutants import rules_in

REACHED: list[str] = []
"""The tools that really ran; the canary of these tests."""


@tool
def find_order(number: int) -> dict[str, Any]:
    """Look an order up."""
    REACHED.append("find_order")
    return {"paid": True}


@tool
def refund(number: int) -> str:
    """Pay an order back."""
    REACHED.append("refund")
    return "done"


def answers(request: ModelRequest) -> Any:
    """A small clerk: it looks the order up if it can, pays back if it is asked to, and obeys its rules."""
    offered = [one.name for one in request.tools]
    done = [one.tool for message in request.messages for one in message.calls]
    wanted = ["find_order", *(["refund"] if "back" in request.messages[0].text else [])]
    for name in wanted:
        if name in offered and name not in done:
            return call(name, number=7)
    paid = "paid" if "find_order" in done else "unknown"
    back = " I paid it back." if "refund" in done else ""
    signed = " Yours, the clerk." if "Sign" in request.instructions else ""
    return f"It is {paid}.{back}{signed}"


CLERK = Agent(
    "clerk",
    model=Scripted(then=answers),
    tools=[find_order, refund],
    instructions="# Rules\n- Be kind. Sign every answer.\n",
)
MOCKS: dict[str, Any] = {"find_order": {"paid": True}, "refund": "done"}
ASKS = Case(
    "asks",
    says="What about order 7?",
    mocks=MOCKS,
    expect=Expect(tools=[call("find_order", number=7)], contains=["paid", "the clerk"]),
)
PAYS = Case(
    "pays",
    says="Money back for order 7!",
    mocks=MOCKS,
    expect=Expect(tools=["find_order", "refund"], contains="back"),
)
WEAK = Case("weak", says="Is it paid?", mocks=MOCKS, expect=Expect(contains="paid"))
NEVER = replace(WEAK, id="never", expect=Expect(contains="no such words"))


async def scored(agent: Any, *cases: Case, **options: Any) -> MutationScore:
    given: Any = {"store": False, **options}
    return await mutation_score(agent, EvalSet("orders", cases), **given)


def of(score: MutationScore, name: str) -> MutantResult:
    [found] = [one for one in score.mutants if one.name == name]
    return found


@pytest.fixture(autouse=True)
def nothing_runs() -> None:
    REACHED.clear()
    ASKED.clear()


async def test_a_strong_set_kills_every_mutant() -> None:
    score = await scored(CLERK, ASKS, PAYS)
    assert score.score == 1.0, str(score)
    assert [one.name for one in score.killed] == [
        "mute",
        "refusing",
        "echo",
        "over-eager",
        "without find_order",
        "without refund",
    ]
    assert of(score, "without refund").killed_by == ("pays",)
    assert of(score, "mute").metrics == ("expected_tools", "expected_contains")
    assert (score.trivial, score.impossible, score.idle, score.broken) == ({}, (), (), {})
    assert not REACHED


async def test_a_weak_set_lets_mutants_survive_and_its_trivial_case_is_named() -> None:
    score = await scored(CLERK, WEAK)
    assert {one.name for one in score.survived} == {"echo", "without refund"}
    assert score.trivial == {"weak": ("echo",)}
    assert score.score == 4 / 6
    assert of(score, "without refund").why == "no case that the agent passes calls it"
    assert "mutation score 0.67: 4 of 6 mutants killed" in str(score)
    assert "trivial: weak (passed by an agent that does nothing: echo)" in str(score)


async def test_a_case_that_the_agent_never_passes_is_only_suspected_and_kills_nothing() -> None:
    score = await scored(CLERK, ASKS, NEVER)
    assert score.impossible == ("never",)
    assert all("never" not in one.killed_by for one in score.mutants)
    assert "impossible: never (only suspected: the agent itself never passes it)" in str(score)


async def test_cases_and_metrics_that_notice_nothing_are_named() -> None:
    @metric
    def polite(response: str) -> bool:
        return bool(response)

    lenient = Case("lenient", says="Hello?", mocks=MOCKS, metrics=[polite])
    score = await scored(CLERK, ASKS, lenient)
    assert score.idle == ("lenient",)
    assert score.idle_metrics == ("polite",)
    assert score.trivial == {"lenient": ("mute", "refusing", "echo")}


async def test_an_error_kills_nothing_and_is_no_verdict_on_the_case() -> None:
    @metric
    def breaks_for_mutants(response: str) -> bool:
        if "paid" not in response:
            raise RuntimeError("no idea")
        return True

    @metric
    def always_breaks(response: str) -> bool:
        raise RuntimeError("always")

    fragile = Case("fragile", says="Order 7?", mocks=MOCKS, metrics=[breaks_for_mutants])
    broken = Case("broken", says="Order 7?", mocks=MOCKS, metrics=[always_breaks])
    score = await scored(CLERK, fragile, broken, tools=False)
    assert [one.end for one in score.mutants] == ["not played"] * 4
    assert score.score is None
    assert "no idea" in of(score, "mute").why
    assert list(score.broken) == ["broken"]
    assert not score.impossible
    assert "no mutation score" in str(score)


@pytest.mark.parametrize(
    "metrics", [[contains("nothing of the kind")], []], ids=["fails", "breaks"]
)
async def test_where_the_agent_passes_no_case_there_is_no_score(metrics: list[Any]) -> None:
    score = await scored(CLERK, Case("a", says="Order 7?", mocks=MOCKS, metrics=metrics))
    assert score.score is None
    assert {(one.end, one.why) for one in score.mutants} == {
        ("not played", "the agent passes no case")
    }


async def test_nothing_is_said_of_a_tool_whose_case_broke() -> None:
    broken = Case("broken", says="Order 7?", mocks={}, metrics=[contains("paid")])
    asks = Case(
        "greets",
        says="Order 7?",
        agent=Agent("clerk", model=Scripted("Hi.")),
        metrics=[contains("Hi")],
    )
    score = await scored(CLERK, broken, asks)
    assert of(score, "without find_order").end == "not played"
    assert "'broken'" in of(score, "without find_order").why


async def test_a_mutant_whose_model_cannot_be_asked_is_unfinished() -> None:
    asked: list[ModelRequest] = []

    def out(request: ModelRequest) -> Any:
        asked.append(request)
        if len(asked) > 2:
            raise RuntimeError("no answer")
        return answers(request)

    score = await scored(replace(CLERK, model=Scripted(then=out)), ASKS)
    assert [one.name for one in score.unfinished] == ["without find_order"]
    assert "no answer" in of(score, "without find_order").why


async def test_a_case_that_passes_only_sometimes_kills_nothing() -> None:
    turns = iter([True, False] * 20)

    @metric
    def sometimes(response: str) -> bool:
        return next(turns)

    chancy = Case("chancy", says="Order 7?", mocks=MOCKS, metrics=[sometimes])
    score = await scored(CLERK, chancy, ASKS, trials=2, concurrency=1)
    assert score.unsteady == ("chancy",)
    assert all("chancy" not in one.killed_by for one in score.mutants)


async def test_rules_are_deleted_one_by_one_only_where_that_is_asked_for() -> None:
    told: list[MutationEstimate] = []
    score = await scored(CLERK, ASKS, rules=True, tools=False, on_estimate=told.append)
    assert of(score, "without rule 1").end == "survived"
    assert of(score, "without rule 1").about == "the rule is deleted: Be kind."
    assert of(score, "without rule 2").killed_by == ("asks",)
    assert [str(one) for one in told] == ["6 mutants, 6 trials, at no cost"]
    assert "without rule 1" not in str(await scored(CLERK, ASKS))


async def test_only_a_dozen_rules_are_deleted_and_the_rest_is_counted() -> None:
    many = replace(CLERK, instructions=" ".join(f"Sign rule {n}." for n in range(15)))
    score = await scored(many, ASKS, rules=True, tools=False)
    assert sum("rule" in one.name for one in score.mutants) == 12
    assert score.notes == ("only the first 12 rules were deleted; 3 more stayed",)


def test_rules_are_the_sentences_of_instructions() -> None:
    text = "# You\nYou are kind. Never lie!\n\n- Ask back\n2. Be short.\n---"
    assert rules_in(text) == ["You are kind.", "Never lie!", "Ask back", "Be short."]


async def test_the_estimate_counts_what_the_own_model_users_and_judges_cost() -> None:
    def paid(request: ModelRequest) -> ModelReply:
        line = answers(request)
        text, calls = (line, ()) if isinstance(line, str) else ("", (line,))
        return ModelReply(text, calls, Usage(1, 1), 0.5, "test")

    told: list[MutationEstimate] = []
    agent = replace(CLERK, model=Scripted(then=paid))
    score = await scored(agent, ASKS, on_estimate=told.append)
    # Only the mutant without find_order asks it again: twice, as the agent did.
    assert told == [MutationEstimate(5, 5, 1.0)]
    assert of(score, "mute").spent == 0.0
    assert of(score, "without find_order").spent == 0.5


async def test_one_budget_holds_for_all_runs_together() -> None:
    agent = replace(
        CLERK,
        model=Scripted(then=lambda request: ModelReply("It is paid.", cost=1.0, prices="test")),
    )
    case = Case("paid", says="Order 7?", mocks=MOCKS, metrics=[called("refund", never=True)])
    score = await scored(agent, case, budget=1.5, rules=True)
    assert of(score, "mute").end == "survived"
    assert of(score, "without rule 1").end == "unfinished"
    assert "budget" in of(score, "without rule 1").why
    assert "; 2 unfinished" in score.summary


@pytest.mark.parametrize("build", FRAMEWORKS.values(), ids=[*FRAMEWORKS])
async def test_mutants_are_the_same_in_every_framework(build: Callable[..., Any]) -> None:
    says = "What is the weather in Paris?"
    mocks = {"get_weather": {"celsius": 21}}
    expect = Expect(tools=[call("get_weather", city="Paris")], contains="21")
    strong = Case("strong", says=says, mocks=mocks, expect=expect)
    weak = Case("weak", says=says, mocks=mocks, expect=Expect(contains="Paris"))
    model = Scripted(call("get_weather", city="Paris"), "It is 21 degrees in Paris.")
    score = await scored(build(), strong, weak, model=model)
    assert {one.name: one.end for one in score.mutants} == dict.fromkeys(
        ["mute", "refusing", "echo", "over-eager", "without get_weather"], "killed"
    ), str(score)
    assert score.trivial == {"weak": ("echo",)}
    assert not ASKED


@pytest.mark.parametrize("build", FRAMEWORKS.values(), ids=[*FRAMEWORKS])
async def test_where_data_is_wanted_mutants_answer_with_data(build: Callable[..., Any]) -> None:
    case = Case(
        "data", says="Paris?", mocks={"get_weather": {"celsius": 21}}, expect=Expect(contains="21")
    )
    data = {"city": "Paris", "degrees": 21}
    score = await scored(build(Forecast), case, model=Scripted(call("get_weather", city="P"), data))
    ends = {one.name: one.end for one in score.mutants if one.does_nothing}
    assert ends == {"mute": "killed", "refusing": "killed", "echo": "killed"}, str(score)


async def test_where_a_framework_asks_its_own_model_a_tool_fails_instead_of_going_away() -> None:
    def weather(messages: Any, info: Any) -> ModelResponse:
        parts = [part for message in messages for part in message.parts]
        returned = [part for part in parts if part.part_kind in ("tool-return", "retry-prompt")]
        if not returned:
            return ModelResponse([ToolCallPart("get_weather", {"city": "Paris"})])
        return ModelResponse([TextPart("21" if "21" in str(returned[-1].content) else "Sorry.")])

    def get_weather(city: str) -> dict[str, Any]:
        raise AssertionError("never reached in a rehearsal")

    agent = PydanticAgent(FunctionModel(weather), tools=[get_weather], instructions="Be kind.")
    case = Case(
        "paris", says="Paris?", mocks={"get_weather": {"c": 21}}, expect=Expect(contains="21")
    )
    score = await scored(agent, case, rules=True)
    without = of(score, "without get_weather")
    assert (without.end, without.about) == ("killed", "every call of the tool fails")
    rule = of(score, "without rule 1")
    assert rule.end == "not played"
    assert "give the model that answers for it" in rule.why


async def test_what_asks_no_model_cannot_be_mutated_and_counts_for_nothing() -> None:
    score = await scored(lambda message: "It is paid.", replace(WEAK, mocks={}))
    assert {one.end for one in score.mutants} == {"not played"}
    assert of(score, "mute").why == "the agent asks no model whose place it could take"
    assert of(score, "over-eager").why == "the agent has no tools that are known"
    assert (score.trivial, score.idle, score.idle_metrics) == ({}, (), ())


async def test_a_function_that_asks_a_model_has_the_mutants_that_replace_it() -> None:
    async def ask(message: str, ctx: Any) -> str:
        return (await ctx.ask(Scripted(then="It is paid."), message)).text

    score = await scored(ask, replace(WEAK, says="Well?", mocks={}))
    assert [one.name for one in score.killed] == ["mute", "refusing", "echo"]
    assert score.score == 1.0


async def test_what_no_gate_sees_cannot_be_mutated() -> None:
    earlier = Report([CaseResult(case_id="weak", status="passed")], id="r")
    agent = http_agent("http://127.0.0.1:9/ask")
    score = await scored(agent, replace(WEAK, mocks={}), run=earlier, allow_opaque=True)
    assert "no gate sees the models" in of(score, "mute").why


async def test_a_choice_of_models_is_left_alone_and_the_tool_fails() -> None:
    agent = replace(CLERK, model=choose(candidate(Scripted(then=answers), quality=1), by="quality"))
    score = await scored(agent, ASKS, rules=True)
    assert of(score, "without find_order").about == "every call of the tool fails"
    assert of(score, "without rule 1").end == "not played"


async def test_cases_with_agents_of_their_own_are_played_by_mutants_of_these() -> None:
    score = await scored(None, replace(ASKS, agent=CLERK), replace(PAYS, agent=CLERK))
    assert score.score == 1.0, str(score)


async def test_an_over_eager_mutant_calls_what_is_expected_and_everything_else() -> None:
    seen: list[tuple[str, Any]] = []

    class Keeps:
        def before_tool(self, request: Any, *_: Any) -> None:
            seen.append((request.tool, dict(request.args)))

    by_number = by_args(({"number": 3}, "done"), otherwise="no such order")
    case = replace(ASKS, mocks={"refund": by_number, "find_order": {"paid": True}})
    earlier = await evaluate(CLERK, [case], store=False)
    await scored(CLERK, case, run=earlier, tools=False, middleware=[Keeps()])
    assert seen == [("find_order", {"number": 7}), ("refund", {"number": 3})]


async def test_a_mutant_never_runs_a_tool_for_real() -> None:
    really = replace(ASKS, mocks={"find_order": live(find_order)})
    score = await scored(CLERK, really, tools=False)
    assert score.played == 4
    assert REACHED == ["find_order"]  # by the agent itself
    REACHED.clear()
    allowed = await scored(CLERK, replace(ASKS, mocks={}), tools=False, allow_tools=[find_order])
    assert allowed.played == 4
    assert REACHED == ["find_order"]


async def test_a_conversation_that_never_ends_kills_and_one_out_of_time_does_not() -> None:
    score = MutantResult(name="mute", about="")
    for ended, end in (("max_turns", "killed"), ("max_seconds", "not played")):
        cut = CaseResult(case_id="a", status="terminated", ended=ended)  # pyright: ignore[reportArgumentType]
        found = score.judged({"a": [cut]}, frozenset("a"), Report([cut]))
        assert found.end == end


async def test_an_earlier_run_is_taken_for_the_agents_own(tmp_path: Path) -> None:
    report = await evaluate(CLERK, EvalSet("orders", [ASKS, PAYS]), store=tmp_path)
    score = await scored(CLERK, ASKS, run=report.id, store=tmp_path)
    assert score.run == report.id
    assert of(score, "mute").killed_by == ("asks",)
    names = [run.plan.evalset_id for run in Store(tmp_path).runs()]
    assert names.count("orders") == 1
    assert "orders--mute" in names
    with pytest.raises(BadInput, match="has no case 'weak'"):
        await scored(CLERK, WEAK, run=report.id, store=tmp_path)
    with pytest.raises(BadInput, match="no store"):
        await scored(CLERK, ASKS, run="x", store=False)


async def test_neither_the_agent_nor_its_cases_are_changed_and_the_score_is_the_same_again() -> (
    None
):
    def facts() -> Any:
        return repr(CLERK), CLERK.facts(), repr(ASKS), repr(PAYS), id(CLERK.model), dict(MOCKS)

    before = facts()
    first = await scored(CLERK, ASKS, PAYS, rules=True)
    again = await scored(CLERK, ASKS, PAYS, rules=True)
    assert facts() == before
    assert str(first) == str(again)
    assert (await evaluate(CLERK, [ASKS, PAYS], store=False)).passed


async def test_what_was_cancelled_is_unfinished() -> None:
    cancel = Cancel()
    score = await scored(CLERK, ASKS, cancel=cancel, on_estimate=lambda _: cancel.cancel("enough"))
    assert {(one.end, one.why) for one in score.mutants} == {("unfinished", "enough")}


async def test_cases_that_broke_for_one_reason_are_named_together() -> None:
    cancel = Cancel()
    cancel.cancel("enough")
    cases = [Case(name, says="Order 7?", metrics=[contains("7")]) for name in "abc"]
    score = await scored(CLERK, *cases, cancel=cancel)
    assert "broken: a, b, c (skipped)" in str(score).splitlines()


@pytest.mark.parametrize(
    "option",
    [{"workers": 2}, {"fail_fast": True}, {"replay": "tape"}, {"trials": "auto"}, {"resume": True}],
    ids=str,
)
async def test_options_that_mean_nothing_to_mutants_are_refused(option: dict[str, Any]) -> None:
    with pytest.raises(BadInput, match="is not for mutants"):
        await scored(CLERK, ASKS, **option)
