"""Runs of Greenroom's own agents as spans and metrics."""

import asyncio
import json
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from subprocess import run as run_process
from typing import Any

import pytest

from greenroom import (
    Agent,
    Case,
    Expect,
    Ledger,
    Lines,
    Score,
    Scripted,
    SimulatedUser,
    Stop,
    Turn,
    UserAgents,
    call,
    fault,
    loop,
    perform,
    rehearse,
    simulate,
    tool,
)
from greenroom.agents import step
from greenroom.errors import BadInput, ModelBroke
from greenroom.ledger import Noted, RunEnded
from greenroom.ledger.messages import Usage
from greenroom.ledger.questions import TRACE, traces
from greenroom.metrics import judge, metric
from greenroom.models.model import ModelReply, ModelRequest
from greenroom.reports.console import ConsoleText
from greenroom.reports.json import JsonReport
from greenroom.reports.junit import JunitReport
from greenroom.reports.markdown import MarkdownReport
from greenroom.reports.page.story import story_of
from greenroom.results.report import Report
from greenroom.telemetry import spans
from greenroom.testing import MiddlewareContract
from greenroom.world import Middleware
from telemetry.collector import Seen


@tool
def refund(order: int) -> str:
    """Refund an order."""
    raise AssertionError("mocked")


@tool(yields=True)
def confirm() -> bool:
    """Ask the user."""
    raise AssertionError("answered by the user")


def paid(text: str = "", *calls: Any) -> ModelReply:
    return ModelReply(text, calls, Usage(60, 40), 0.02)


def clerk(*replies: Any) -> Agent:
    given = replies or (paid("", call("refund", order=7)), paid("Done."))
    return Agent("clerk", model=Scripted(*given), tools=[refund], instructions="Be kind.")


CASE = Case("refund", says="Refund 7.", mocks={"refund": "ok"}, expect=Expect(contains="Done"))


def run(middleware: Any, agent: Any = None, case: Case = CASE, ledger: Any = None) -> Ledger:
    run = simulate(case, agent or clerk(), ledger=ledger, middleware=[middleware])
    return asyncio.run(run)


def test_a_run_is_a_tree_of_its_case_its_turns_and_its_calls() -> None:
    seen = Seen()
    two = Case("two", turns=[Turn("Refund 7."), Turn("Thanks.")], mocks={"refund": "ok"})
    agent = clerk(call("refund", order=7), "Done.", "You are welcome.")
    rehearse(agent, [two], middleware=[seen.middleware()], store=False)
    assert seen.tree() == [
        "rehearse two",
        "  invoke_agent clerk",
        "    chat scripted",
        "    execute_tool refund",
        "    chat scripted",
        "  invoke_agent clerk",
        "    chat scripted",
        "  evaluate two",
    ]
    assert len({span.context.trace_id for span in seen.spans if span.context}) == 1


def test_each_agent_of_a_flow_has_a_span_of_its_own_in_every_turn() -> None:
    seen = Seen()
    first, second = (Agent(name, model=Scripted(then="Hi.")) for name in ("first", "second"))
    talks = (first | second) >> loop(clerk(), max_rounds=1)
    rehearse(talks, [CASE], middleware=[seen.middleware()], store=False)
    assert seen.tree() == [
        "rehearse refund",
        "  invoke_agent first-second-clerk",
        *("    invoke_agent first", "      chat scripted"),
        *("    invoke_agent second", "      chat scripted"),
        *("    invoke_agent clerk", "      chat scripted", "      execute_tool refund"),
        "      chat scripted",
        "  evaluate refund",
    ]
    (called,) = seen.named("execute_tool")
    assert called["gen_ai.agent.name"] == "clerk"
    assert (
        called["greenroom.node"] == seen.named("chat")[-1]["greenroom.node"] == "seq.1/loop#/clerk"
    )


def test_the_span_of_an_agent_ends_with_its_failure_or_with_the_turn_it_waits_in() -> None:
    seen = Seen()
    broken = Agent("broken", model=Scripted(RuntimeError("down")))
    asks = Agent("asks", model=Scripted(call("confirm"), "Done."), tools=[confirm])
    user = UserAgents(tools={"confirm": Lines(True)})
    rehearse(
        broken // asks,
        [Case("c", says="Hi", user=user)],
        middleware=[seen.middleware()],
        store=False,
    )
    assert seen.tree()[1:-1] == [
        "  invoke_agent broken-asks",
        *("    invoke_agent broken", "      chat scripted"),
        *("    invoke_agent asks", "      chat scripted", "      execute_tool confirm"),
        "  invoke_agent broken-asks",
        *("    invoke_agent asks", "      chat scripted"),
    ]
    failed = [span.get("error.type") for span in seen.named("invoke_agent")]
    assert failed == [None, "RuntimeError", None, None, None]


def test_spans_say_what_the_conventions_ask_for() -> None:
    seen = Seen()
    run(seen.middleware())
    asked, tool = seen.named("chat")[0], seen.named("execute_tool")[0]
    assert asked["gen_ai.operation.name"] == "chat"
    assert asked["gen_ai.request.model"] == asked["gen_ai.response.model"] == "scripted"
    assert (asked["gen_ai.usage.input_tokens"], asked["gen_ai.usage.output_tokens"]) == (60, 40)
    assert asked["gen_ai.agent.name"] == "clerk"
    assert (asked["greenroom.cost_usd"], asked["greenroom.source"]) == (0.02, "live")
    assert (asked["greenroom.case.id"], asked["greenroom.path"]) == ("refund", "@1/clerk")
    assert tool["gen_ai.operation.name"] == "execute_tool"
    assert (tool["gen_ai.tool.name"], tool["gen_ai.tool.type"]) == ("refund", "function")
    assert tool["gen_ai.tool.call.id"]
    assert tool["greenroom.source"] == "mock"
    assert seen.named("invoke_agent")[0]["gen_ai.agent.name"] == "clerk"
    kinds = {span.name.split()[0]: span.kind.name for span in seen.spans}
    assert kinds["chat"] == "CLIENT"
    assert kinds["execute_tool"] == kinds["invoke_agent"] == "INTERNAL"


def test_a_provider_is_named_where_the_models_name_says_it() -> None:
    class Named:
        def __init__(self, name: str) -> None:
            self.name = name

        async def respond(self, request: ModelRequest, on_delta: Any = None) -> ModelReply:
            return ModelReply("Done.")

    seen, bare = Seen(), Case("c", says="Hi")
    run(seen.middleware(), Agent("a", model=Named("google:gemini-2.5-flash")), bare)
    run(seen.middleware(), Agent("a", model=Named("llama3:8b")), bare)
    google, local = seen.named("chat")
    assert google["gen_ai.provider.name"] == "gcp.gemini"
    assert google["gen_ai.request.model"] == "gemini-2.5-flash"
    assert "gen_ai.provider.name" not in local
    assert local["gen_ai.request.model"] == "llama3:8b"


CANARY = "canary-7391"


@metric
def quotes(response: str) -> Score:
    return Score(False, reason=f"it said {response}", evidence=[response])


def test_nothing_that_was_said_is_written_unless_it_is_asked_for() -> None:
    def fails(_: ModelRequest) -> str:
        raise ModelBroke(f"no answer to {CANARY}")

    agent = Agent(
        "clerk",
        model=Scripted(call("refund", order=7), lambda asked: f"{CANARY} {asked.last}", fails),
        tools=[refund],
        instructions=f"Say {CANARY}.",
    )
    cases = [
        Case(
            "calm",
            turns=[Turn(f"I am {CANARY}"), Turn(CANARY)],
            mocks={"refund": {"said": CANARY}},
            metrics=[quotes],
        ),
        Case("fault", says=CANARY, mocks={"refund": fault(CANARY)}, metrics=[quotes]),
        Case("none", says=CANARY),
    ]
    seen = Seen()
    rehearse(agent, cases, middleware=[seen.middleware()], store=False)
    assert "execute_tool refund" in seen.text()
    assert CANARY not in seen.text()
    told = Seen()
    rehearse(agent, cases, middleware=[told.middleware(content=True)], store=False)
    assert told.text().count(CANARY) > 10


def test_content_is_written_as_the_conventions_write_messages() -> None:
    seen = Seen()
    run(seen.middleware(content=True))
    first, last = seen.named("chat")
    assert json.loads(first["gen_ai.system_instructions"]) == [
        {"type": "text", "content": "Be kind."}
    ]
    assert json.loads(first["gen_ai.input.messages"]) == [
        {"role": "user", "parts": [{"type": "text", "content": "Refund 7."}]}
    ]
    (reply,) = json.loads(first["gen_ai.output.messages"])
    assert reply["finish_reason"] == "tool_call"
    assert reply["parts"][0]["name"] == "refund"
    assert [one["role"] for one in json.loads(last["gen_ai.input.messages"])] == [
        *("user", "assistant", "tool"),
    ]
    tool = seen.named("execute_tool")[0]
    assert json.loads(tool["gen_ai.tool.call.arguments"]) == {"order": 7}
    assert tool["gen_ai.tool.call.result"] == "ok"
    short = Seen()
    run(short.middleware(content=True, content_chars=10))
    assert short.named("chat")[0]["gen_ai.input.messages"] == '[{"role": …[cut]'


@pytest.mark.parametrize(
    "said, is_written",
    [
        *(("true", True), ("SPAN_ONLY", True), ("SPAN_AND_EVENT", True)),
        *(("EVENT_ONLY", False), ("NO_CONTENT", False), ("false", False), ("", False)),
    ],
)
def test_the_usual_switch_decides_about_content(
    monkeypatch: pytest.MonkeyPatch, said: str, is_written: bool
) -> None:
    monkeypatch.setenv("OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT", said)
    seen = Seen()
    run(seen.middleware())
    assert ("gen_ai.input.messages" in seen.named("chat")[0]) == is_written
    told = Seen()
    run(told.middleware(content=False))
    assert "gen_ai.input.messages" not in told.named("chat")[0]


def test_errors_and_refusals_are_marked_with_their_type() -> None:
    seen = Seen()
    run(seen.middleware(), case=Case("c", says="Hi", mocks={"refund": fault("closed")}))
    (failed,) = seen.named("execute_tool")
    assert failed["error.type"]
    seen = Seen()
    ledger = run(seen.middleware(), case=Case("c", says="Hi"))
    assert isinstance(ledger.last, RunEnded)
    assert ledger.last.error_type == "ToolRefused"
    (refused,) = seen.named("execute_tool")
    assert (refused["greenroom.source"], refused["error.type"]) == ("refused", "ToolRefused")
    by_name = {span.name: span for span in seen.spans}
    assert by_name["rehearse c"].status.status_code.name == "ERROR"
    assert len(seen.metrics()["greenroom.refusals"]) == 1

    def fails(_: ModelRequest) -> str:
        raise ModelBroke("no answer")

    seen = Seen()
    run(seen.middleware(), clerk(fails))
    (asked,) = seen.named("chat")
    assert asked["error.type"] == "ModelBroke"
    phases = {p.attributes["greenroom.phase"]: p.value for p in seen.metrics()["greenroom.errors"]}
    assert phases["model"] >= 1


def test_what_a_replay_repeats_is_not_counted_as_money_again(tmp_path: Path) -> None:
    rehearse(clerk(), CASE, record=str(tmp_path), store=False)
    seen = Seen()
    rehearse(clerk(), CASE, replay=str(tmp_path), middleware=[seen.middleware()], store=False)
    assert "greenroom.cost" not in seen.metrics()


def test_money_tokens_and_times_are_counted() -> None:
    seen = Seen()
    run(seen.middleware())
    found = seen.metrics()
    (cost,) = found["greenroom.cost"]
    assert cost.value == pytest.approx(0.04)
    assert cost.attributes["gen_ai.agent.name"] == "clerk"
    tokens = {
        point.attributes["gen_ai.token.type"]: point.sum
        for point in found["gen_ai.client.token.usage"]
    }
    assert tokens == {"input": 120, "output": 80}
    assert found["gen_ai.client.operation.duration"][0].count == 2
    assert found["greenroom.case.duration"][0].count == 1
    assert "refund" not in str(
        [
            dict(p.attributes)
            for name in ("greenroom.cost", "greenroom.case.duration")
            for p in found[name]
        ]
    )


def test_a_contract_that_was_not_kept_is_counted() -> None:
    @step(writes="session.answer")
    def strays(ctx: Any) -> str:
        ctx.state.session["other"] = 1
        return "Done."

    seen = Seen()
    case = Case("c", says="Hi", metrics=["kept_contract"])
    report = rehearse(strays, [case], middleware=[seen.middleware()], store=False)
    assert report.results[0].status == "failed", report
    assert [point.value for point in seen.metrics()["greenroom.contract.violations"]] == [1]


def test_verdicts_are_events_with_a_label_for_each_metric() -> None:
    @metric
    def broken(response: str) -> float:
        raise KeyError("lost")

    case = Case("c", says="Hi", metrics=[broken], mocks={"refund": "ok"}, expect=CASE.expect)
    seen = Seen()
    rehearse(clerk(), [case], middleware=[seen.middleware()], store=False)
    (span,) = [span for span in seen.spans if span.name == "evaluate c"]
    told = {
        str((event.attributes or {})["gen_ai.evaluation.name"]): dict(event.attributes or {})
        for event in span.events
    }
    assert {event.name for event in span.events} == {"gen_ai.evaluation.result"}
    assert told["expected_contains"]["gen_ai.evaluation.score.value"] == 1.0
    assert told["expected_contains"]["gen_ai.evaluation.score.label"] == "passed"
    assert told["broken"]["gen_ai.evaluation.score.label"] == "unmeasured"
    assert "gen_ai.evaluation.score.value" not in told["broken"]


def test_results_and_reports_lead_to_the_trace(tmp_path: Any) -> None:
    seen = Seen()
    link = "https://traces.example/t/{trace_id}"
    report = rehearse(
        clerk("No."),
        [CASE],
        middleware=[seen.middleware(link=link)],
        store=False,
        keep_ledgers=False,
    )
    (result,) = report.results
    (root, *_) = seen.spans
    assert root.context is not None
    assert result.trace_id == f"{root.context.trace_id:032x}"
    assert result.trace_link == f"https://traces.example/t/{result.trace_id}"
    for reporter in (JunitReport(), JsonReport(), MarkdownReport(), ConsoleText()):
        assert result.trace_link in reporter.render(report), reporter.name
    assert story_of(result).trace == (result.trace_id, result.trace_link)
    saved = tmp_path / "report.json"
    report.save(saved)
    assert Report.load(saved).results[0].trace_link == result.trace_link
    bare = rehearse(clerk("No."), [CASE], store=False)
    assert bare.results[0].trace_id == ""
    assert "trace" not in JsonReport().render(bare)


def test_spans_name_the_run_of_the_store_that_they_belong_to(tmp_path: Path) -> None:
    seen = Seen()
    report = rehearse(clerk("No."), [CASE], middleware=[seen.middleware()], store=tmp_path)
    of_case = [span for span in seen.spans if not span.name.startswith("evaluate")]
    assert {(span.attributes or {}).get("greenroom.run.id") for span in of_case} == {report.id}
    bare = Seen()
    rehearse(clerk("No."), [CASE], middleware=[bare.middleware()], store=False)
    assert not any("greenroom.run.id" in (span.attributes or {}) for span in bare.spans)


def test_a_run_that_is_resumed_is_linked_to_the_trace_before() -> None:
    seen = Seen()
    whole = run(seen.middleware())
    seen.clear()
    resumed = run(seen.middleware(), ledger=Ledger(whole.events[:8]))
    first, second = [note.data["trace_id"] for note in resumed.of(Noted) if note.name == TRACE]
    assert first != second
    (link,) = seen.spans[0].links
    assert f"{link.context.trace_id:032x}" == first


async def test_a_live_conversation_is_written_too() -> None:
    seen = Seen()
    await perform(
        Agent("clerk", model=Scripted("Hello.")), "Hi", middleware=[seen.middleware()], store=False
    )
    assert seen.tree() == ["converse", "  invoke_agent clerk", "    chat scripted"]


def test_spans_of_the_authors_own_code_stand_inside_the_call_they_belong_to() -> None:
    seen = Seen()
    tracer = seen.provider.get_tracer("shop")

    def mock(order: int) -> str:
        with tracer.start_as_current_span("look up"):
            return "ok"

    run(seen.middleware(), case=Case("c", says="Hi", mocks={"refund": mock}))
    assert "      look up" in seen.tree()


def test_sixteen_runs_at_once_have_a_trace_each() -> None:
    seen = Seen()
    cases = [Case(f"c{n}", says="Hi", mocks={"refund": "ok"}) for n in range(16)]
    rehearse(clerk(), cases, middleware=[seen.middleware()], store=False, concurrency=16)
    by_trace: dict[int, list[str]] = {}
    for span in seen.spans:
        assert span.context is not None
        by_trace.setdefault(span.context.trace_id, []).append(span.name.split()[0])
    assert len(by_trace) == 16
    assert {tuple(sorted(names)) for names in by_trace.values()} == {
        ("chat", "chat", "evaluate", "execute_tool", "invoke_agent", "rehearse")
    }


class TestContract(MiddlewareContract):
    passes_through = False  # it notes the trace

    def middleware(self) -> Any:
        return Seen().middleware(content=True)


def test_without_a_place_to_send_to_it_says_what_to_set() -> None:
    code = (
        "from greenroom.telemetry import spans\n"
        "try: spans()\n"
        "except Exception as error: print(type(error).__name__, error)\n"
    )
    environment = {"PATH": ""}
    done = run_process(
        [sys.executable, "-c", code], capture_output=True, text=True, env=environment, check=False
    )
    assert done.stdout.startswith("BadInput"), done.stderr
    assert "OTEL_EXPORTER_OTLP_ENDPOINT" in done.stdout


@pytest.mark.parametrize("wrong", [{"content_chars": 0}, {"link": "https://traces.example"}])
def test_what_cannot_be_meant_is_refused(wrong: Any) -> None:
    with pytest.raises(BadInput):
        spans(provider=Seen().provider, **wrong)


def test_an_unknown_switch_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT", "perhaps")
    with pytest.raises(BadInput, match="perhaps"):
        Seen().middleware()


def test_nothing_of_it_is_loaded_by_a_run_without_it() -> None:
    code = (
        "import sys, greenroom\n"
        "from greenroom import Agent, Case, Scripted, rehearse\n"
        "rehearse(Agent('a', model=Scripted('x')), [Case('c', says='Hi')], store=False)\n"
        "print([name for name in sys.modules if name.startswith(('opentelemetry', 'greenroom.tele'))])\n"
    )
    done = run_process([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout.strip() == "[]", done.stderr


@pytest.mark.parametrize(
    "data", [None, "x", [], {"trace_id": 7}, {"trace_id": "[card]", "span_id": "00f067aa0ba902b7"}]
)
def test_a_note_that_names_no_trace_is_left_alone(data: Any) -> None:
    ledger = Ledger([*run(Seen().middleware()).events[:1], Noted(name=TRACE, data=data)])
    assert traces(ledger) == []
    assert run(Seen().middleware(), ledger=ledger).of(RunEnded)[0].reason == "completed"


def test_the_span_of_a_turn_says_that_its_agent_failed() -> None:
    def down(request: ModelRequest) -> str:
        raise RuntimeError("down, ann@example.org")

    seen = Seen()
    run(seen.middleware(), agent=clerk(down))
    (turn,) = [span for span in seen.spans if span.name.startswith("invoke_agent")]
    assert (turn.status.status_code.name, turn.status.description) == ("ERROR", None)
    assert seen.named("invoke_agent")[0]["error.type"] == "AgentFailed"


def test_each_trial_is_a_conversation_of_its_own_and_stays_it_when_resumed() -> None:
    seen = Seen()
    for _ in range(2):
        rehearse(clerk(), [CASE], trials=3, middleware=[seen.middleware()], store=False)
    cases = seen.named("rehearse")
    assert [case["greenroom.trial"] for case in cases] == [1, 2, 3, 1, 2, 3]
    assert len({case["gen_ai.conversation.id"] for case in cases}) == 6
    again = Seen()
    half = Ledger(run(again.middleware())[:6])
    run(again.middleware(), ledger=half)
    assert len({case["gen_ai.conversation.id"] for case in again.named("rehearse")}) == 1


def test_an_exporter_that_hangs_holds_nobody_up() -> None:
    program = """
import time
import greenroom.world.middleware.stack as stack
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter
from greenroom import Agent, Case, Scripted, rehearse
from greenroom.telemetry import spans

class Hangs(SpanExporter):
    def export(self, spans):
        time.sleep(3600)

stack.CLOSING = 0.2
provider = TracerProvider(shutdown_on_exit=False)
provider.add_span_processor(BatchSpanProcessor(Hangs()))
agent = Agent("clerk", model=Scripted("Hi."))
report = rehearse(agent, [Case("c", says="Hi")], middleware=[spans(provider=provider)], store=False)
print(report.notes)
"""
    done = run_process(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False
    )
    assert "took longer than 0.2 s" in done.stdout, done.stderr


# Users and judges


class Verdicts:
    """A judge that always says yes."""

    name = "verdicts"

    async def respond(self, request: ModelRequest, on_delta: Any = None) -> ModelReply:
        verdict = {"reasoning": "ann@example.org was treated well", "verdict": True}
        return ModelReply(json.dumps(verdict), cost=0.1)


TALK = Case(
    "talk",
    says="Hello",
    user=SimulatedUser(goals=["money back"], model=Scripted(paid("I want it.")), stop_signal="<x>"),
    metrics=[judge("kind", "Was it kind to ann@example.org?", model=Verdicts())],
    stop=Stop(max_turns=2),
)


def test_what_users_and_judges_ask_are_spans_of_their_trial() -> None:
    seen = Seen()
    agent = clerk(paid("Which order?"), paid("Done."))
    rehearse(agent, [TALK], middleware=[seen.middleware()], store=False)
    assert seen.tree() == [
        "rehearse talk",
        "  invoke_agent clerk",
        "    chat scripted",
        "  chat scripted",
        "  invoke_agent clerk",
        "    chat scripted",
        "  chat verdicts",
        "  evaluate talk",
    ]
    voices = [chat.get("greenroom.voice") for chat in seen.named("chat")]
    assert voices == [None, "user", None, "judge"]
    judged = seen.named("chat")[-1]
    assert (judged["gen_ai.agent.name"], judged["greenroom.source"]) == ("judge:kind", "live")
    assert (judged["greenroom.case.id"], judged["greenroom.cost_usd"]) == ("talk", 0.1)
    assert len({chat["gen_ai.conversation.id"] for chat in seen.named("chat")}) == 1
    assert "ann@example.org" not in "".join(span.to_json() for span in seen.spans)


def test_what_judges_are_asked_is_written_where_content_is() -> None:
    seen = Seen()
    agent = clerk(paid("Which order?"), paid("Done."))
    rehearse(agent, [TALK], middleware=[seen.middleware(content=True)], store=False)
    judged = seen.named("chat verdicts")[0]
    assert "ann@example.org" in judged["gen_ai.system_instructions"]


def test_without_a_span_for_the_case_there_is_none_for_users_and_judges() -> None:
    seen = Seen()
    agent = clerk(paid("Which order?"), paid("Done."))
    rehearse(agent, [TALK], middleware=[seen.middleware(case_span=False)], store=False)
    assert [chat.get("greenroom.voice") for chat in seen.named("chat")] == [None, None]


def test_other_middleware_has_no_say_in_what_users_and_judges_ask() -> None:
    heard: list[str] = []

    class Hears(Middleware):
        @contextmanager
        def around_call(self, call: Any) -> Generator[None]:
            heard.append(call.agent)
            yield

        async def before_model(self, request: ModelRequest) -> None:
            heard.append(request.agent)

    class Observes(Hears):
        observes = True

    agent = clerk(paid("Which order?"), paid("Done."))
    rehearse(agent, [TALK], middleware=[Hears()], store=False)
    assert heard == ["clerk"] * 4
    heard.clear()
    rehearse(agent, [TALK], middleware=[Observes()], store=False)
    assert heard == ["clerk", "clerk", "user", "clerk", "clerk", "judge:kind"]
