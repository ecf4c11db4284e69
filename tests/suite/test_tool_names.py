"""Misspelt tools, mocks and arguments are found before the run, and told apart from what was not called."""

from dataclasses import replace
from pathlib import Path
from types import FunctionType
from typing import Any

import pytest

from greenroom import Agent, Case, EvalSet, Expect, Scripted, call, perform, rehearse, tool
from greenroom.backends.registry import backend_for
from greenroom.cases import Criterion, Score, by_args, fault, in_turn
from greenroom.cases.data import case_data
from greenroom.errors import BadCase, BadInput
from greenroom.metrics import called, contains, forbidden_calls, tool_trajectory_avg_score
from greenroom.world import tool_approval


@tool
def refund(order: int) -> str:
    """Pay back."""
    raise AssertionError(f"a real call for {order}")


@tool
def refnd(order: int) -> str:
    """A tool of another agent, which is called that way."""
    raise AssertionError(f"a real call for {order}")


def clerk(*script: Any) -> Agent:
    return Agent("clerk", model=Scripted(*script), tools=[refund])


def test_a_misspelt_expected_tool_is_found_before_anything_runs() -> None:
    cases = [
        Case("a", "Pay", expect=Expect(tools=["refnd"])),
        Case("b", "Pay", expect=Expect(tools=[call("refunds", order=7)])),
        Case("c", "Pay", expect=Expect(tools=["refund"])),
    ]
    with pytest.raises(BadCase) as refused:
        rehearse(clerk(), cases)
    message = str(refused.value)
    assert "case 'a' expects a call of 'refnd'" in message
    assert "Did you mean 'refund'?" in message
    assert "case 'b' expects a call of 'refunds'" in message
    assert "case 'c'" not in message


def test_misspelt_mocks_are_named_with_the_misspelt_expected_tools() -> None:
    case = Case("a", "Pay", expect=Expect(tools=["refnd"]), mocks={"reffund": 1, "refundd": 2})
    with pytest.raises(BadCase) as refused:
        rehearse(clerk(), [case])
    first, second, expected = str(refused.value).splitlines()
    assert "expects a call of 'refnd'" in expected
    assert "mocks tool 'reffund', but the agent offers ['refund']. Did you mean 'refund'?" in first
    assert "mocks tool 'refundd'" in second


def test_a_tool_that_was_not_called_is_another_matter() -> None:
    [result] = rehearse(clerk("No."), [Case("a", "Pay", expect=Expect(tools=["refund"]))])
    assert not result.passed
    score = result.scores["expected_tools"]
    assert isinstance(score, Score)
    assert "refund" in score.reason


def test_a_tool_that_the_agent_is_still_to_get_fails_and_says_so() -> None:
    [result] = rehearse(clerk("No."), [Case("a", "Pay", expect=Expect(tools=["send_letter"]))])
    assert not result.passed
    assert "the agent offers ['refund']" in str(result.blame)


def test_a_scope_that_looks_misspelt_is_noted() -> None:
    case = Case("a", "Hi", state={"sesion": {"order": 7}}, expect=Expect(contains="Hello"))
    report = rehearse(clerk("Hello"), [case])
    assert any("'sesion'" in note and "Did you mean 'session'?" in note for note in report.notes)


def pay_back(order: int) -> str:
    """Pay back."""
    raise AssertionError(f"a real call for {order}")


def of_adk() -> Any:
    agents = pytest.importorskip("google.adk.agents")
    return agents.LlmAgent(name="clerk", model="gemini-2.5-flash", tools=[pay_back])


def of_openai() -> Any:
    agents = pytest.importorskip("agents")
    return agents.Agent("clerk", model="gpt-4o", tools=[agents.function_tool(pay_back)])


def of_pydantic_ai() -> Any:
    return pytest.importorskip("pydantic_ai").Agent(name="clerk", tools=[pay_back])


def of_langchain() -> Any:
    agents, models = map(
        pytest.importorskip, ("langchain.agents", "langchain_core.language_models")
    )
    model = type("Bound", (models.FakeListChatModel,), {"bind_tools": lambda self, *_, **__: self})
    return agents.create_agent(model(responses=[]), [pay_back], name="clerk")


FRAMEWORKS = pytest.mark.parametrize("make", [of_adk, of_openai, of_pydantic_ai, of_langchain])


@FRAMEWORKS
def test_it_is_found_in_agents_of_every_framework(make: Any) -> None:
    misspelt = Case("a", "Pay", mocks={"pay_back": "ok"}, expect=Expect(tools=["pay_bakc"]))
    with pytest.raises(BadCase, match="Did you mean 'pay_back'"):
        rehearse(make(), [misspelt], model=Scripted("No."))


@FRAMEWORKS
def test_in_every_framework_a_tool_that_was_not_called_is_another_matter(make: Any) -> None:
    cases = [
        Case(name, "Pay", mocks={"pay_back": "ok"}, expect=Expect(tools=[name]))
        for name in ("pay_back", "send_letter")
    ]
    report = rehearse(make(), cases, model=Scripted("No."))
    called, unknown = report["pay_back"].blame, report["send_letter"].blame
    assert called is not None
    assert unknown is not None
    assert called.whom == "agent"
    assert (unknown.whom, "the agent offers ['pay_back']" in str(unknown)) == ("expectation", True)


def test_a_tool_of_an_inner_agent_that_the_case_mocks_is_no_misspelt_one() -> None:
    case = Case("a", "Pay", mocks={"refunds": "ok"}, expect=Expect(tools=["refunds"]))
    [result] = rehearse(lambda message: "No.", [case])
    assert result.status == "failed"


@pytest.mark.parametrize(
    "metric",
    [called("refnd"), called("refnd", never=True), called("refnd", at_most=2)],
    ids=["once", "never", "seldom"],
)
def test_a_metric_that_counts_calls_of_a_misspelt_tool_is_found_too(metric: Any) -> None:
    wrong = "counts calls of 'refnd'.* Did you mean 'refund'"
    with pytest.raises(BadCase, match=f"case 'a' has a metric that {wrong}"):
        rehearse(clerk("No."), [Case("a", "Pay", metrics=[contains("No"), metric])])
    cases = [Case("a", "Pay"), Case("b", "Pay")]
    with pytest.raises(BadCase, match=f"^a metric of the run {wrong}"):
        rehearse(clerk("No."), cases, metrics=[metric])
    other = replace(cases[1], agent=Agent("other", model=Scripted("No."), tools=[refnd]))
    assert len(rehearse(clerk("No."), [cases[0], other], metrics=[metric]).results) == 2


@pytest.mark.parametrize(
    "metric, wrong",
    [
        (forbidden_calls("refnd"), "calls of 'refnd'.* Did you mean 'refund'"),
        (Criterion("forbidden_calls", options={"tools": ["refnd"]}), "Did you mean 'refund'"),
        (called("refund", {"oder": 7}, never=True), "calls of 'refund' with 'oder'.* 'order'"),
        (
            Criterion("called", options={"tool": "refund", "args": {"oder": 7}, "never": True}),
            "with 'oder', but it has no such argument",
        ),
        (
            tool_trajectory_avg_score(tool_args={"refund": ["oder.id"]}),
            "with 'oder', but it has no such argument",
        ),
        (
            tool_trajectory_avg_score(ignore_args={"refnd": ["id"]}),
            "calls of 'refnd'.* Did you mean 'refund'",
        ),
    ],
    ids=["forbidden", "by name", "argument", "argument by name", "compared", "ignored"],
)
def test_what_a_metric_could_never_find_is_refused(metric: Any, wrong: str) -> None:
    for cases, metrics in (
        ([Case("a", "Pay", metrics=[metric])], []),
        ([Case("a", "Pay")], [metric]),
    ):
        with pytest.raises(BadCase, match=wrong):
            rehearse(clerk("No."), cases, metrics=metrics)


def test_a_tool_and_one_of_a_similar_name_may_both_be_forbidden() -> None:
    case = Case("a", "Pay", metrics=[forbidden_calls("refund", "refunds", "ref*s")])
    assert rehearse(clerk("No."), [case]).passed


def test_a_tool_like_no_other_may_be_forbidden() -> None:
    case = Case("a", "Pay", metrics=[called("delete_account", never=True)])
    assert rehearse(clerk("No."), [case], metrics=[contains("No")]).passed


# Mocks


@pytest.mark.parametrize(
    "metric",
    [
        forbidden_calls("delete_*", "refnd*", "shout", name="guard"),
        Criterion("forbidden_calls", options={"tools": ["refnd*", "ref*"], "name": "guard"}),
    ],
)
def test_a_pattern_of_forbidden_tools_that_fits_none_is_noted(metric: Any) -> None:
    idle = [one for one in ("delete_*", "refnd*") if one in str(metric)]
    note = f"guard: no tool of the agents fits {', '.join(map(repr, idle))}; they offer ['refund']"
    of_case = rehearse(clerk("Done."), [Case("a", "Pay", metrics=[metric])])
    of_run = rehearse(clerk("Done."), [Case("a", "Pay"), Case("b", "Pay")], metrics=[metric])
    assert (of_case.notes, of_run.notes) == ([note], [note])


def test_a_pattern_is_not_noted_where_a_tool_fits_or_the_tools_are_unknown() -> None:
    guarded = Case("a", "Pay", metrics=[forbidden_calls("ref*")])
    assert rehearse(clerk("Done."), [guarded]).notes == []
    noted = rehearse(lambda message: "Done.", [guarded]).notes
    assert not [note for note in noted if "fits" in note]


def test_a_misspelt_mock_alone_is_found_before_the_first_case_runs() -> None:
    cases = [
        Case("good", "Pay", mocks={"refund": "ok"}, metrics=[contains("No")]),
        Case("bad", "Pay", mocks={"refnd": "ok"}, metrics=[contains("No")]),
        Case("worse", "Pay", mocks={"send_letter": "ok"}, metrics=[contains("No")]),
    ]
    with pytest.raises(BadCase) as refused:
        rehearse(clerk("No."), cases)
    first, second = str(refused.value).splitlines()
    assert "case 'bad' mocks tool 'refnd'" in first
    assert "Did you mean 'refund'?" in first
    assert "case 'worse' mocks tool 'send_letter'" in second


@FRAMEWORKS
def test_misspelt_mocks_are_found_in_agents_of_every_framework(make: Any) -> None:
    with pytest.raises(BadCase, match=r"mocks tool 'pay_bakc'.*Did you mean 'pay_back'"):
        rehearse(make(), [Case("a", "Pay", mocks={"pay_bakc": "ok"})], model=Scripted("No."))


def test_a_target_that_the_agent_does_not_have_is_found_before_the_run() -> None:
    case = Case("a", "Pay", target="cleerk")
    with pytest.raises(BadInput, match="cleerk"):
        rehearse(clerk("No.") >> clerk("No."), [case], check="off")


def test_a_mock_for_an_agent_that_a_named_body_brings_along_is_left_to_the_trial() -> None:
    @tool
    async def consult(question: str) -> str:
        """Ask the back office."""
        inner = Agent(
            "inner", model=Scripted(call("refunds", day=1), "Three."), tools=[refunds_of_day]
        )
        ledger = await perform(inner, question)
        return str(ledger)

    agent = Agent(
        "clerk", model=Scripted(call("consult", question="?"), "Three."), tools=[refund, consult]
    )
    case = Case("a", "How many?", mocks={"refunds": "3"}, allow_tools=["consult"])
    with pytest.raises(BadCase, match="refunds"):
        rehearse(agent, [replace(case, allow_tools=[])])
    [result] = rehearse(agent, [replace(case, metrics=[contains("Three")])])
    assert "but the agent offers" not in str(result.error)


def test_an_allowed_tool_that_no_agent_has_is_noted_but_not_refused() -> None:
    case = Case("a", "Pay", metrics=[contains("Done")])
    other = replace(case, id="b", agent=Agent("other", model=Scripted("Done"), tools=[refnd]))
    report = rehearse(clerk("Done"), [case, other], allow_tools=["wave"])
    assert report.passed
    assert [note for note in report.notes if "allow_tools" in note] == [
        "allow_tools names 'wave', but the agents offer ['refnd', 'refund']"
    ]


def test_a_tool_that_a_case_allows_and_its_agent_does_not_have_is_bad_input() -> None:
    case = Case("a", "Pay", metrics=[contains("Done")], allow_tools=["wave"])
    with pytest.raises(BadCase, match=r"allow_tools names 'wave' .* the agent offers \['refund'\]"):
        rehearse(clerk("Done"), [case])
    by_function = replace(case, allow_tools=["refunt"], agent=lambda messages: "Done")
    assert rehearse(clerk("Done"), [by_function]).passed


def test_an_allowed_tool_is_not_noted_where_code_could_bring_it() -> None:
    case = Case("a", "Pay", metrics=[contains("Done")])
    report = rehearse(lambda messages: "Done", [case], allow_tools=["wave"])
    assert not [note for note in report.notes if "allow_tools" in note]


@tool(name="refunds")
def refunds_of_day(day: int) -> str:
    """The refunds of a day."""
    raise AssertionError(f"a real call for {day}")


# Arguments


def problem_of(agent: Any, *tools: Any, **options: Any) -> str:
    mocks = {"refund": "ok", "pay_back": "ok"}
    mocks = {name: mock for name, mock in mocks.items() if name in (backend_for(agent).tools or ())}
    case = Case("a", "Pay", mocks=mocks, expect=Expect(tools=tools))
    try:
        rehearse(agent, [case], **options)
    except BadCase as refused:
        return str(refused)
    return ""


def test_a_misspelt_argument_of_an_expected_call_is_found_before_the_run() -> None:
    message = problem_of(clerk("No."), call("refund", ordr=7, why="late"), call("refund", order=7))
    first, second = message.splitlines()
    assert "expects a call of 'refund' with 'ordr', but it has no such argument" in first
    assert first.endswith("Did you mean 'order'? It takes order.")
    assert "with 'why'" in second


@FRAMEWORKS
def test_misspelt_arguments_are_found_in_agents_of_every_framework(make: Any) -> None:
    right, wrong = call("pay_back", order={"$gt": 5}), call("pay_back", ordr=7)
    model = Scripted("No.")
    assert problem_of(make(), right, "pay_back", model=model) == ""
    assert "Did you mean 'order'? It takes order." in problem_of(make(), wrong, model=model)


def pay_anything(order: int, **rest: Any) -> str:
    """Pay back."""
    raise AssertionError(f"a real call for {order} {rest}")


def test_a_tool_that_takes_any_arguments_is_expected_with_any() -> None:
    agents = pytest.importorskip("agents")
    schema = {"type": "object", "properties": {"order": {}}, "additionalProperties": True}

    async def invoke(_context: Any, _args: str) -> str:
        raise AssertionError

    loose = agents.FunctionTool("pay_back", "Pay", schema, invoke, strict_json_schema=False)
    bare = agents.FunctionTool(
        "pay_back", "Pay", {"type": "object"}, invoke, strict_json_schema=False
    )
    pydantic_ai = pytest.importorskip("pydantic_ai")
    adk = pytest.importorskip("google.adk.agents")
    pay_back = pydantic_ai.Tool(pay_anything, name="pay_back")
    named = FunctionType(pay_anything.__code__, globals(), "pay_back")
    named.__annotations__, named.__doc__ = pay_anything.__annotations__, "Pay back."
    made = [
        agents.Agent("clerk", model="gpt-4o", tools=[loose]),
        agents.Agent("clerk", model="gpt-4o", tools=[bare]),
        pydantic_ai.Agent(name="clerk", tools=[pay_back]),
        adk.LlmAgent(name="clerk", model="gemini-2.5-flash", tools=[named]),
    ]
    for agent in made:
        assert problem_of(agent, call("pay_back", ordr=7), model=Scripted("No.")) == ""


def test_a_tool_that_two_agents_have_takes_the_arguments_of_both() -> None:
    @tool(name="refund")
    def other(order: int, day: int) -> str:
        """Pay back on a day."""
        raise AssertionError(f"a real call for {order} {day}")

    second = Agent("second", model=Scripted("No."), tools=[other])
    assert problem_of(clerk("No.") >> second, call("refund", day=1)) == ""


def test_nothing_is_said_of_an_agent_whose_tools_are_not_known() -> None:
    case = Case("a", "Pay", mocks={"refnd": 1}, expect=Expect(tools=[call("refund", ordr=7)]))
    [result] = rehearse(lambda message: "No.", [case])
    assert result.status == "failed"


# Files


YAML = """\
version: 1
cases:
  - id: first
    says: Pay
    mocks:
      refnd: {value: ok}
    expect:
      tools:
        - tool: refund
          args: {order: 7}
        - tool: refund
          args:
            ordr: 7
  - id: second
    turns:
      - says: Pay
        expect: {tools: [{tool: refunds}]}
    mocks: {refund: {value: ok}}
"""


def test_each_problem_of_a_file_is_shown_with_its_line_and_column(tmp_path: Path) -> None:
    file = tmp_path / "shop.yaml"
    file.write_text(YAML, encoding="utf-8")
    for cases in (str(file), EvalSet.load(file), list(EvalSet.load(file).filter("*"))):
        with pytest.raises(BadCase) as refused:
            rehearse(clerk("No."), cases)
        mock, argument, expected = str(refused.value).splitlines()
        assert mock.startswith(
            f"{file}: line 6, column 7, cases[0].mocks.refnd: case 'first' mocks"
        )
        place = "cases[0].expect.tools[1].args.ordr"
        assert argument.startswith(f"{file}: line 13, column 13, {place}: case 'first'")
        place = "cases[1].turns[0].expect.tools[0]"
        assert expected.startswith(f"{file}: line 17, column 26, {place}: case 'second'")


def test_a_problem_in_a_table_is_shown_in_its_cell(tmp_path: Path) -> None:
    file = tmp_path / "shop.evalset.csv"
    file.write_text('id,says,expect.tools\na,Pay,"[{""tool"": ""refnd""}]"\n', encoding="utf-8")
    with pytest.raises(BadCase, match=r"line 2, column 7, .*'refnd'"):
        rehearse(clerk("No."), str(file))


def test_a_case_keeps_its_origin_to_itself(tmp_path: Path) -> None:
    file = tmp_path / "shop.yaml"
    file.write_text(
        "version: 1\ncases: [{id: a, says: Hi, expect: {contains: Hello}}]", encoding="utf-8"
    )
    [case] = EvalSet.load(file)
    assert case == Case("a", "Hi", expect=Expect(contains="Hello"))
    assert case.origin is not None
    assert "origin" not in case_data(case)
    copy = tmp_path / "copy.yaml"
    EvalSet.load(file).save(copy)
    assert "origin" not in copy.read_text(encoding="utf-8")


def test_a_recorded_call_is_expected_as_it_was_made() -> None:
    case = Case(
        "a",
        "Pay",
        mocks={"refund": "ok"},
        expect=Expect(tools=[call("refund", thing=7)]),
        metadata={"harvested_from": "run"},
    )
    assert rehearse(clerk("No."), [case])["a"].status == "failed"


def test_an_approval_of_a_tool_that_no_agent_has_is_refused() -> None:
    clerk = Agent("clerk", model=Scripted(call("refund", order=7), "Done."), tools=[refund])
    other = Agent("other", model=Scripted("Hello."))
    cases = [Case("c", "Hi", mocks={"refund": "ok"}), Case("d", "Hi", agent=other)]
    with pytest.raises(BadCase, match=r"tool_approval\('refnud'\) names no tool.*'refund'\?"):
        rehearse(clerk, cases, middleware=[tool_approval("refnud")], store=False)
    with pytest.raises(BadCase, match=r"tool_approval\('pay'\) names no tool of the agents"):
        rehearse(clerk, cases, middleware=[tool_approval("refund", "pay")], store=False)
    rehearse(clerk, cases, middleware=[tool_approval("refund")], store=False)


def ship_plainly(order: int) -> str:
    raise AssertionError(f"a real call for {order}")


def refund_plainly(order: int) -> str:
    raise AssertionError(f"a real call for {order}")


@pytest.mark.parametrize(
    "mock",
    [
        ship_plainly,
        in_turn("ok", ship_plainly),
        by_args(({"order": 7}, ship_plainly)),
        fault(lost=ship_plainly),
    ],
)
def test_the_function_of_another_tool_is_no_mock(mock: Any) -> None:
    tools = [refund_plainly, ship_plainly]
    agent = Agent("clerk", model=Scripted(call("refund_plainly", order=7)), tools=tools)
    mocks = {"refund_plainly": mock}
    with pytest.raises(BadCase, match="'refund_plainly' by the tool 'ship_plainly'"):
        rehearse(agent, [Case("a", "Pay", mocks=mocks)])
