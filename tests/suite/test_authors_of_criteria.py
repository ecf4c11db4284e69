"""What the author of a criterion can count on: a context, another attempt, limits, and a say in the result."""

import asyncio
import json
import logging
from typing import Any

import pytest

from greenroom import (
    Agent,
    Case,
    EvalSet,
    Expect,
    NotApplicable,
    Report,
    Score,
    Scripted,
    Unmeasured,
    call,
    evaluate,
    rehearse,
    score,
    simulate,
    step,
    tool,
)
from greenroom.cases.config import EvalConfig, read_config, write_config
from greenroom.errors import BadCase, BadFile, BadInput, RateLimited, ToolRefused
from greenroom.ledger import Ledger, Noted, trajectory
from greenroom.metrics import contains, metric
from greenroom.models import ModelReply
from greenroom.reports.reporters import write_reports
from greenroom.results.gate import Gate
from greenroom.simulation import Bridge
from greenroom.suite import Cancel, rescore

CASE = Case("polite", "Hi", state={"session": {"name": "Ada"}})


def said(*words: str) -> Agent:
    return Agent("clerk", model=Scripted(*words))


# The context


def test_a_criterion_knows_the_run_by_its_context():
    seen: dict[str, Any] = {}

    @metric
    def curious(ctx):
        seen.update(
            reason=ctx.cancel.reason,
            memory=ctx.memory,
            responses=ctx.responses,
            state=ctx.final_state,
            before=dict(ctx.scores),
        )
        return True

    token = Cancel()
    report = rehearse(said("Hello."), CASE, metrics=[contains("Hello"), curious], cancel=token)
    assert report.passed
    assert seen["reason"] == ""
    assert seen["responses"] == ["Hello."]
    assert seen["state"]["session"] == {"name": "Ada"}
    assert [*seen["before"]] == ["contains('Hello')"]
    assert (seen["memory"].most_messages, seen["memory"].summaries) == (1, 0)
    assert seen["memory"].state_keys == 1


async def test_a_criterion_that_works_for_long_sees_that_the_run_is_to_stop():
    token, seen = Cancel(), list[str]()

    @metric
    async def patient(cancel):
        token.cancel("enough")
        seen.append(cancel.reason)
        return True

    report = await evaluate(said("Hello."), CASE, metrics=[patient], cancel=token, store=False)
    assert seen == ["enough"]
    assert report.results[0].status == "skipped"


def test_what_a_criterion_logs_names_the_case_and_the_metric(caplog):
    @metric
    def chatty(logger):
        logger.warning("half of %s", "it")
        return True

    with caplog.at_level(logging.WARNING, "greenroom.metrics"):
        rehearse(said("Hello."), CASE, metrics=[chatty], store=False)
    assert caplog.messages == ["case 'polite', metric 'chatty': half of it"]


async def test_what_a_criterion_notes_is_beside_its_score():
    @metric
    async def counting(ctx):
        ctx.note("chunks", 3)
        ctx.note("no source was named")
        return Score(0.5, evidence=["seen"])

    ledger = await simulate(CASE, said("Hello."))
    found = (await score(ledger, [counting]))["counting"]
    assert isinstance(found, Score)
    assert found.evidence == ("seen", "chunks: 3", "no source was named")


def test_outside_a_run_there_is_a_token_that_nothing_cancels():
    @metric
    def curious(cancel, scores):
        return cancel.reason == "" and scores == {}

    ledger = asyncio.run(simulate(CASE, said("Hello.")))
    assert asyncio.run(score(ledger, [curious]))["curious"].passed  # pyright: ignore[reportAttributeAccessIssue]


# Notes of tools and steps


@tool
def look(key: str, ctx: Any) -> str:
    """Look something up."""
    ctx.note("looked", {"key": key})
    return "found"


def noted(ledger: Any) -> list[tuple[str, Any]]:
    return [(one.name, one.args) for one in trajectory(ledger) if one.type == "custom"]


async def test_what_a_tool_a_mock_or_a_step_notes_is_a_step_of_the_trajectory():
    def mocked(key: str, ctx: Any) -> str:
        ctx.note("mocked", key)
        return "found"

    @step
    def tidy(ctx: Any) -> None:
        ctx.note("tidied")

    agent = Agent("clerk", model=Scripted(call("look", key="a"), "Done."), tools=[look]) >> tidy
    live = await simulate(Case("a", "Hi", allow_tools=["look"]), agent)
    assert noted(live) == [("looked", {"key": "a"}), ("tidied", None)]
    assert noted(await simulate(Case("b", "Hi", mocks={"look": mocked}), agent))[0][0] == "mocked"


async def test_what_a_function_notes_is_a_step_too():
    def agent(message: str, ctx: Any) -> str:
        ctx.note("heard", message)
        return "Hello."

    assert noted(await simulate(CASE, agent)) == [("heard", "Hi")]


@pytest.mark.parametrize("name, data", [("", 1), ("x", object()), (None, 1)])
async def test_a_note_without_a_name_or_with_what_is_no_json_is_refused(name, data):
    def agent(message: str, ctx: Any) -> str:
        ctx.note(name, data)
        return "Hello."

    report = await evaluate(agent, Case("a", "Hi", expect=Expect(response="Hello.")), store=False)
    assert report.results[0].status == "error"


async def test_a_note_of_what_was_cut_half_way_is_not_written_twice():
    runs: list[str] = []

    @step
    def work(ctx: Any) -> None:
        runs.append("work")
        ctx.note("began")
        ctx.note("ended")

    agent = said("Hello.") >> work
    events = list(await simulate(CASE, agent))
    cut = next(n for n, event in enumerate(events) if isinstance(event, Noted))
    whole = await simulate(CASE, agent, ledger=Ledger(events[: cut + 1]))
    assert len(runs) == 2
    assert noted(whole) == [("began", None), ("ended", None)]


# Another attempt


class RateLimitError(Exception):
    """As packages of model providers call it."""


class Status(Exception):
    status_code = 429


def failing(*errors: BaseException | None) -> Any:
    left = list(errors)

    @metric
    def shaky(response):
        error = left.pop(0)
        if error is not None:
            raise error
        return True

    return shaky


@pytest.mark.parametrize(
    "error",
    [
        ConnectionError("lost"),
        ConnectionResetError("reset"),
        TimeoutError("slow"),
        RateLimited("too often"),
        RateLimitError("too often"),
        Status("too often"),
    ],
)
async def test_what_may_pass_is_tried_again(error):
    report = await evaluate(said("Hello."), CASE, metrics=[failing(error, None)], store=False)
    assert report.passed


@pytest.mark.parametrize("error", [ValueError("wrong"), KeyError("x"), PermissionError("no")])
async def test_what_will_not_pass_is_not_tried_again(error):
    report = await evaluate(said("Hello."), CASE, metrics=[failing(error, None)], store=False)
    outcome = report.results[0].scores["shaky"]
    assert isinstance(outcome, Unmeasured)
    assert "attempts" not in outcome.why


async def test_what_does_not_pass_in_the_end_says_how_often_it_was_tried():
    lost = failing(*[ConnectionError("lost")] * 9)
    report = await evaluate(said("Hello."), CASE, metrics=[lost], metric_attempts=2, store=False)
    outcome = report.results[0].scores["shaky"]
    assert isinstance(outcome, Unmeasured)
    assert outcome.why.startswith("failed after 2 attempts: ConnectionError: lost")
    assert report.results[0].status == "error"


async def test_async_criteria_and_those_with_evaluate_are_tried_again_too():
    class Shaky:
        name = "shaky"

        def __init__(self) -> None:
            self.tries = 0

        async def evaluate(self, response):
            self.tries += 1
            if self.tries == 1:
                raise TimeoutError
            return 1.0

    ledger = await simulate(CASE, said("Hello."))
    shaky = Shaky()
    assert (await score(ledger, [shaky]))["shaky"] == Score(1.0, True, name="shaky")
    assert shaky.tries == 2


async def test_attempts_share_the_time_of_their_metric():
    lost = failing(*[ConnectionError("lost")] * 9)
    found = await score(
        await simulate(CASE, said("Hello.")), [lost], seconds_per_metric=0.2, metric_attempts=9
    )
    assert isinstance(found["shaky"], Unmeasured)
    assert "attempts" not in found["shaky"].why


async def test_a_refusal_is_never_tried_again():
    tries: list[int] = []

    @metric
    def acting(response):
        tries.append(1)
        raise ToolRefused("no")

    await evaluate(said("Hello."), CASE, metrics=[acting], store=False)
    assert tries == [1]


# Limits


@pytest.mark.parametrize("door", ["option", "config", "file"])
async def test_a_limit_of_the_run_cuts_every_case_and_every_metric(door, tmp_path):
    class Slow:
        name = "slow"

        async def respond(self, request, on_delta=None):
            await asyncio.sleep(30)
            return ModelReply("never")

    @metric
    async def slow(ledger):
        await asyncio.sleep(30)
        return True

    limits: dict[str, Any] = {"seconds_per_case": 0.2, "seconds_per_metric": 0.2}
    options: dict[str, Any] = limits
    if door == "config":
        options = {"config": EvalConfig(**limits)}
    elif door == "file":
        (tmp_path / "c.json").write_text(json.dumps({"version": 1, "metrics": [], **limits}))
        options = {"config": tmp_path / "c.json"}
    report = await evaluate(Agent("a", model=Slow()), CASE, metrics=[slow], store=False, **options)
    [result] = report
    assert result.ended == "max_seconds"
    assert "within 0.2 s" in str(result.scores["slow"])


async def test_a_case_with_a_lower_limit_keeps_it_and_an_option_goes_before_a_config():
    config = EvalConfig(seconds_per_metric=0.01)

    @metric
    async def slow(response):
        await asyncio.sleep(0.1)
        return True

    report = await evaluate(
        said("Hello."), CASE, metrics=[slow], config=config, seconds_per_metric=5, store=False
    )
    assert report.passed


@pytest.mark.parametrize("wrong", [0, -1, True, "60", float("inf")])
def test_a_limit_that_is_no_time_is_refused(wrong, tmp_path):
    with pytest.raises(BadInput, match="seconds above 0"):
        rehearse(said("Hello."), CASE, seconds_per_case=wrong, store=False)
    with pytest.raises(BadInput, match="seconds above 0"):
        EvalConfig(seconds_per_case=wrong)


def test_a_config_keeps_its_limits_in_a_file(tmp_path):
    config = EvalConfig(criteria=["exact_match"], seconds_per_metric=2.5)  # pyright: ignore[reportArgumentType]
    write_config(config, tmp_path / "c.yaml")
    assert read_config(tmp_path / "c.yaml").seconds_per_metric == 2.5
    with pytest.raises(BadFile, match="would lose"):
        write_config(config, tmp_path / "c.json", shape="agentflow")
    (tmp_path / "bad.yaml").write_text("version: 1\nmetrics: []\nseconds_per_case: soon\n")
    with pytest.raises(BadFile, match=r"line 3, .*seconds_per_case: 'soon' should be a number"):
        read_config(tmp_path / "bad.yaml")


# A hook that replaces what was found


def kinder(case: Case, name: str, outcome: Any) -> Any:
    return Score(0.9, reason="it was meant well") if name == "tone" else None


@metric
def tone(response):
    return Score(0.2, reason="rude")


async def replaced(hook: Any, **options: Any) -> Report:
    options.setdefault("store", False)
    metrics = [tone, contains("Go")]
    return await evaluate(
        said("Go away."), CASE, metrics=metrics, on_metric_complete=hook, **options
    )


async def test_what_a_hook_returns_replaces_what_the_metric_found():
    [result] = report = await replaced(kinder)
    assert report.passed
    assert result.measured["tone"].value == 0.9
    assert result.replaced == {"tone": "by the hook 'kinder'; it was 0.20: rude"}
    assert "a hook replaced what 'tone' found in 1 trial: polite" in report.notes


@pytest.mark.parametrize("outcome", [Score(0), NotApplicable("not here"), Unmeasured("unsure")])
async def test_a_hook_may_also_take_a_pass_away(outcome):
    [result] = await replaced(lambda case, name, found: outcome)
    assert not result.passed
    assert set(result.replaced) == {"tone", "contains('Go')"}


async def test_a_hook_may_judge_what_could_not_be_measured():
    @metric
    def broken(response):
        raise ValueError("it fell over")

    report = await evaluate(
        said("Go away."),
        CASE,
        metrics=[broken],
        on_metric_complete=lambda case, name, found: Score(1, reason="looked at by hand"),
        store=False,
    )
    assert report.passed
    assert "unmeasured: ValueError: it fell over" in report.results[0].replaced["broken"]


async def test_a_hook_that_returns_nothing_or_the_same_replaces_nothing():
    for hook in (lambda *_: None, lambda case, name, found: found):
        [result] = report = await replaced(hook)
        assert result.status == "failed"
        assert not result.replaced
        assert not report.notes


@pytest.mark.parametrize("returned, noted", [(0.9, 2), (True, 2), ("fine", 0), ((None, None), 0)])
async def test_what_is_no_outcome_replaces_nothing_and_a_number_is_noted(returned, noted):
    [result] = report = await replaced(lambda *_: returned)
    assert result.status == "failed"
    assert not result.replaced
    assert (
        sum("Score, NotApplicable or Unmeasured replaces" in one for one in report.notes) == noted
    )


async def test_the_outcome_of_a_trial_that_broke_cannot_be_replaced():
    report = await evaluate(
        said(), CASE, metrics=[tone], on_metric_complete=lambda *_: Score(1), store=False
    )
    assert report.results[0].status == "error"
    assert not report.results[0].replaced


async def test_several_hooks_replace_one_after_the_other():
    class Stricter:
        def on_metric_complete(self, case, name, outcome):
            return Score(0.1, reason=f"after {outcome.value}") if name == "tone" else None

    [result] = await replaced(kinder, plugins=[Stricter()])
    assert result.measured["tone"].reason == "after 0.9"
    assert "Stricter.on_metric_complete" in result.replaced["tone"]


async def test_every_report_marks_what_was_replaced(tmp_path):
    def harder(case, name, outcome):
        return Score(0.1, reason="no") if name == "contains('Go')" else None

    report = await replaced(harder)
    for written in write_reports(
        report, ["json", "html", "markdown", "junit", "console", "notebook"], tmp_path
    ):
        assert "replaced" in written.read_text(), written
    junit = (tmp_path / "junit.xml").read_text()
    assert "score.contains('Go')_0.10 (replaced by the hook" in junit.replace("=", "_")
    assert "<td>0.10 replaced</td>" in report._repr_html_()
    assert "replaced" in str(report)
    assert "replaced" in report.to_frame("pandas").to_string()
    again = Report.load(tmp_path / "eval_report.json")
    assert again.results[0].replaced == report.results[0].replaced


async def test_what_was_replaced_is_kept_in_a_store_and_gone_when_measured_anew(tmp_path):
    report = await replaced(kinder, store=tmp_path / "runs")
    from greenroom.store import Store

    kept = Store(tmp_path / "runs").report(report.id)
    assert kept.results[0].replaced == report.results[0].replaced
    assert Gate().decide(kept).passed
    anew = await rescore(report.id, metrics=[tone], store=tmp_path / "runs")
    assert not anew.report.results[0].replaced
    assert anew.report.results[0].status == "failed"


# Models of judges by reference


JUDGE = """
from greenroom.models import Scripted
kind = {"reasoning": "kind", "verdict": True}
mine = Scripted(kind, then=kind)
"""


def criterion(model: str) -> dict[str, Any]:
    return {"criterion": "llm_judge", "prompt": "Was it kind?", "judge_model": model}


@pytest.fixture
def judges(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "evals").mkdir()
    (tmp_path / "evals" / "my_judges.py").write_text(JUDGE)
    return tmp_path / "evals"


def test_a_config_names_the_model_of_its_judge_by_file_and_name(judges):
    config = {"version": 1, "metrics": [criterion("my_judges.py:mine")]}
    (judges / "config.json").write_text(json.dumps(config))
    report = rehearse(said("Hello."), CASE, config="evals/config.json", store=False)
    assert report.passed, str(report)
    assert [*report.judge_models] == ["scripted"]


def test_an_eval_set_names_it_in_the_same_way(judges):
    cases = [{"id": "a", "says": "Hi", "metrics": [criterion("my_judges.py:mine")]}]
    (judges / "set.json").write_text(json.dumps({"version": 1, "cases": cases}))
    report = rehearse(said("Hello."), "evals/set.json", store=False)
    assert report.passed, str(report)


def test_in_python_it_is_found_from_where_one_stands(judges):
    from greenroom.cases import Criterion

    options = {"prompt": "Was it kind?", "judge_model": "evals/my_judges.py:mine"}
    evalset = EvalSet("s", [Case("a", "Hi", metrics=[Criterion("llm_judge", options=options)])])
    assert rehearse(said("Hello."), evalset, store=False).passed


@pytest.mark.parametrize(
    "name, words",
    [
        ("my_judges.py:yours", "there is no 'yours'"),
        ("my_judge.py:x", "'evals/my_judge.py'. Did you mean 'evals/my_judges.py'"),
    ],
)
def test_a_model_that_is_not_there_is_named_with_its_line(judges, name, words):
    config = {"version": 1, "metrics": [criterion(name)]}
    (judges / "config.json").write_text(json.dumps(config, indent=1))
    with pytest.raises(BadFile, match=words) as caught:
        rehearse(said("Hello."), CASE, config="evals/config.json", store=False)
    assert "line " in str(caught.value)


def test_what_is_no_model_is_refused(judges):
    (judges / "my_judges.py").write_text("mine = 7")
    config = {"version": 1, "metrics": [criterion("my_judges.py:mine")]}
    (judges / "config.json").write_text(json.dumps(config))
    with pytest.raises(BadInput, match="cannot respond"):
        rehearse(said("Hello."), CASE, config="evals/config.json", store=False)


# Bridges


@pytest.mark.parametrize(
    "wrong",
    [
        {"format_prompt": "x"},
        {"format_prompt": lambda main: "x"},
        {"format_prompt": lambda main, wait, more: "x"},
        {"format_response": lambda output, user: "x"},
        {"format_response": lambda: "x"},
        {"format_response": 7},
    ],
)
def test_a_bridge_that_could_not_be_called_is_refused_when_it_is_made(wrong):
    with pytest.raises(BadCase, match="Bridge"):
        Bridge(**wrong)


def test_a_bridge_may_have_more_parameters_with_defaults_or_take_any():
    class Prompt:
        def __call__(self, main, wait, tone="kind"):
            return "x"

    written_in_c: Any = max
    anything: list[Any] = [Prompt(), lambda *any: "x", written_in_c]
    for given in anything:
        made = Bridge(format_prompt=given, format_response=given)
        assert (made.format_prompt, made.format_response) == (given, given)
