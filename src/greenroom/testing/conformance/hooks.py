"""Middleware around a framework's agent: exactly the hooks that a backend declares are called."""

from collections.abc import Generator
from contextlib import contextmanager

from greenroom.backends.backend import hooks_heard
from greenroom.cases.mocks import fault
from greenroom.ledger.events import ModelReplied, ToolCalled, ToolReturned
from greenroom.ledger.questions import tool_calls
from greenroom.models.model import ModelReply, ModelRequest
from greenroom.testing.blueprints import Desk
from greenroom.testing.conformance.base import (
    WEATHER,
    Conformance,
    case,
    describe,
    ledger_of,
    needs,
)
from greenroom.testing.ledgers import timeless
from greenroom.world.middleware.attempts import Ask
from greenroom.world.middleware.protocol import HOOKS, Middleware


class Listener(Middleware):
    """Middleware that notes every hook and changes nothing."""

    def __init__(self) -> None:
        self.heard: set[str] = set()
        for hook in HOOKS:
            if hook not in ("around_run", "around_turn", "around_call", "around_attempt", "redact"):
                setattr(self, hook, self._listening(hook))

    def _listening(self, hook: str) -> object:
        async def listen(*_: object) -> None:
            self.heard.add(hook)

        return listen

    @contextmanager
    def around_run(self) -> Generator[None]:
        """Note it."""
        self.heard.add("around_run")
        yield

    @contextmanager
    def around_turn(self) -> Generator[None]:
        """Note it."""
        self.heard.add("around_turn")
        yield

    @contextmanager
    def around_call(self, call: object) -> Generator[None]:  # noqa: ARG002
        """Note it."""
        self.heard.add("around_call")
        yield

    def redact(self, text: str) -> str:
        """Note it, and leave the text as it is."""
        self.heard.add("redact")
        return text

    async def around_attempt(self, request: ModelRequest, ask: Ask) -> ModelReply:
        """Note it, and ask."""
        self.heard.add("around_attempt")
        return await ask(request)


class Answers(Middleware):
    """Gives the same answer in one hook."""

    def __init__(self, hook: str, answer: str) -> None:
        async def give(*_: object) -> str:
            return answer

        setattr(self, hook, give)


class Hooked(Conformance):
    """The hooks of middleware."""

    def test_every_hook_that_is_declared_is_heard_and_changes_nothing(self, desk: Desk) -> None:
        declared = hooks_heard(self.harness.backend)
        agent = self.agent(WEATHER, "done", tools=[desk.weather])
        listener, mocks = Listener(), {"weather": "fine"}
        if self.harness.backend.tool_calls != "routed":
            agent, mocks = self.agent("done"), {}
        (plain,) = self.results(agent, [case(mocks=mocks)])
        (heard,) = self.results(agent, [case(mocks=mocks)], middleware=[listener])
        assert heard.status == plain.status, describe(heard)
        quiet = {"on_model_error", "on_tool_error", "approvals"}
        if not self.sees_models:  # calls that only sometimes pass a seam may not pass one here
            quiet |= {"before_model", "after_model", "around_attempt"}
        assert listener.heard - quiet == declared - quiet
        if self.harness.backend.resumes != "no":
            assert timeless(ledger_of(heard)) == timeless(ledger_of(plain))

    @needs(tools=True)
    def test_middleware_answers_in_place_of_a_tool(self, desk: Desk) -> None:
        agent = self.agent(WEATHER, "done", tools=[desk.weather])
        (result,) = self.results(
            agent, [case()], middleware=[Answers("before_tool", "by middleware")]
        )
        assert result.status == "passed", describe(result)
        found = [(end.value, end.source) for end in ledger_of(result).of(ToolReturned)]
        assert found == [("by middleware", "middleware")]
        assert desk.marks == []

    @needs(tools=True)
    def test_a_result_that_middleware_replaces_is_labelled(self, desk: Desk) -> None:
        agent = self.agent(WEATHER, "done", tools=[desk.weather])
        (result,) = self.results(
            agent, [case(mocks={"weather": "fine"})], middleware=[Answers("after_tool", "wet")]
        )
        assert result.status == "passed", describe(result)
        found = [(e.value, e.source, e.in_place_of) for e in ledger_of(result).of(ToolReturned)]
        assert found == [("wet", "middleware", "mock")]

    @needs(tools=True)
    def test_a_call_whose_error_middleware_answers_for_is_one_call(self, desk: Desk) -> None:
        agent = self.agent(WEATHER, "done", tools=[desk.weather])
        (result,) = self.results(
            agent,
            [case(mocks={"weather": fault("down")})],
            middleware=[Answers("on_tool_error", "later")],
        )
        assert result.status == "passed", describe(result)
        found = [(c.result, c.source) for c in tool_calls(ledger_of(result))]
        assert found == [("later", "middleware")]
        assert len(ledger_of(result).of(ToolCalled)) == 1

    @needs(models=True)
    def test_a_reply_that_middleware_replaces_is_labelled(self) -> None:
        (result,) = self.results(
            self.agent("never"), [case()], middleware=[Answers("after_model", "all done")]
        )
        assert result.status == "passed", describe(result)
        found = [(r.text, r.source, r.in_place_of) for r in ledger_of(result).of(ModelReplied)]
        assert found == [("all done", "middleware", "live")]

    @needs(models=True)
    def test_middleware_answers_in_place_of_a_model(self) -> None:
        (result,) = self.results(
            self.agent("never"), [case()], middleware=[Answers("before_model", "all done")]
        )
        assert result.status == "passed", describe(result)
        assert [reply.source for reply in ledger_of(result).of(ModelReplied)] == ["middleware"]

    def test_middleware_answers_in_place_of_the_agent(self) -> None:
        (result,) = self.results(
            self.agent("never"), [case()], middleware=[Answers("before_agent", "done without it")]
        )
        assert result.status == "passed", describe(result)
        assert not ledger_of(result).of(ModelReplied)
