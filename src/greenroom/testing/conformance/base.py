"""What all parts of the suite share: how an agent is rehearsed, and what is skipped and why."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, TypeVar, get_args

import pytest

from greenroom.backends.backend import Backend, Feature
from greenroom.backends.registry import backend_for
from greenroom.cases.case import Case
from greenroom.ledger.events import ModelReplied, UserSaid
from greenroom.ledger.ledger import Ledger
from greenroom.ledger.messages import ToolCall
from greenroom.ledger.plain import Json
from greenroom.metrics import contains
from greenroom.models.model import ModelBody, ModelReply, ModelRequest, OnDelta
from greenroom.results.result import CaseResult
from greenroom.suite import rehearse
from greenroom.testing.blueprints import Blueprint, Desk, Harness, Line, ToolPlan
from greenroom.world.live import LiveWorld
from greenroom.world.records import ToolError, answer_tool
from greenroom.world.world import Pending, Returned, ToolBody, ToolRequest

Test = TypeVar("Test", bound=Callable[..., object])


@dataclass(frozen=True)
class Needs:
    """What a backend must declare for a test to apply to it."""

    features: tuple[Feature, ...]
    models: bool
    tools: bool
    resumption: bool

    def lacking(self, backend: type[Backend]) -> str:
        """The first thing the backend does not declare, in words; "" if it declares them all."""
        for feature in self.features:
            if feature not in backend.supports:
                return f"{backend.name} does not declare {feature!r}"
        if self.models and backend.models != "routed":
            return f"the model calls of {backend.name} are {backend.models}"
        if self.tools and backend.tool_calls != "routed":
            return f"the tool calls of {backend.name} are {backend.tool_calls}"
        if self.resumption and backend.resumes == "no":
            return f"{backend.name} does not resume"
        return ""


def needs(
    *features: Feature, models: bool = False, tools: bool = False, resumption: bool = False
) -> Callable[[Test], Test]:
    """Skip the test for backends that do not declare all this."""

    def marked(test: Test) -> Test:
        test.__dict__["needs"] = Needs(features, models, tools, resumption)
        return test

    return marked


class Conformance:
    """A part of the suite. `harness` is the framework under test."""

    harness: ClassVar[Harness]

    @pytest.fixture(autouse=True)
    def declared(self, request: pytest.FixtureRequest) -> None:
        """Skip tests of what the backend does not declare."""
        wanted: Needs | None = getattr(request.function, "needs", None)
        if wanted is not None and (why := wanted.lacking(self.harness.backend)):
            pytest.skip(why)

    @pytest.fixture
    def desk(self, tmp_path: Path) -> Desk:
        """Fresh tools that leave a mark when they run."""
        return Desk(tmp_path)

    @property
    def sees_models(self) -> bool:
        """Whether model calls are in the ledger."""
        return self.harness.backend.models == "routed"

    def replied(self, ledger: Ledger) -> int | None:
        """How often a model replied; None if that cannot be known."""
        return len(ledger.of(ModelReplied)) if self.sees_models else None

    def agent(self, *lines: Line, tools: Any = (), **options: Any) -> Any:
        """A new agent of the framework; bare functions become plain tools."""
        plans = [t if isinstance(t, ToolPlan) else ToolPlan(t) for t in tools]
        return self.harness.build(Blueprint(lines=lines, tools=plans, **options))

    def backend(self, *lines: Line, **options: object) -> Backend:
        """A new agent's backend."""
        return backend_for(self.agent(*lines, **options))

    def result(self, agent: Any, case: Case) -> CaseResult:
        """The result of one case."""
        return self.results(agent, [case])[0]

    def results(self, agent: Any, cases: list[Case], **options: Any) -> list[CaseResult]:
        """The results of several cases."""
        opaque = self.harness.backend.tool_calls == "opaque"
        report = rehearse(agent, cases, allow_opaque=opaque, **options)
        return list(report)


def case(id: str = "one", **options: Any) -> Case:
    """A case that passes when the agent's last words contain "done"."""
    given: dict[str, Any] = {"says": "hello", "metrics": [contains("done")], **options}
    return Case(id, **given)


def ledger_of(result: CaseResult) -> Ledger:
    """The ledger of a result."""
    assert result.ledger is not None, result
    return result.ledger


def describe(result: CaseResult) -> str:
    """A result's error as a failing test should show it."""
    return f"{result.status}: {result.error.message if result.error else 'no error'}"


WEATHER = ToolCall("weather", {"city": "Oslo"}, "call-weather")
PAY = ToolCall("pay", {"amount": 5}, "call-pay")


class RecordingWorld(LiveWorld):
    """A world that answers tools from a table and keeps every model request."""

    def __init__(self, answers: dict[str, Json] | None = None, says: str = "hello") -> None:
        super().__init__(Ledger())
        self.asked: list[ModelRequest] = []
        self._answers = answers or {}
        self.record(UserSaid(text=says))

    async def call_model(
        self, request: ModelRequest, body: ModelBody, on_delta: OnDelta | None = None
    ) -> ModelReply:
        """Keep the request, then ask the model."""
        self.asked.append(request)
        return await super().call_model(request, body, on_delta)

    async def call_tool(self, request: ToolRequest, body: ToolBody) -> Returned | Pending:
        """The table's answer; an exception in it is the tool's failure."""
        if request.yields:
            return await super().call_tool(request, body)
        answer: object = self._answers[request.tool]

        def give(_: object) -> Json:
            if isinstance(answer, Exception):
                raise answer
            return answer

        return await answer_tool(self, request, give, "mock")

    def heard(self) -> str:
        """All messages of the last request to a model."""
        return "\n".join(message.text for message in self.asked[-1].messages)


FEATURES: tuple[Feature, ...] = get_args(Feature)
__all__ = [
    "FEATURES",
    "PAY",
    "WEATHER",
    "Conformance",
    "RecordingWorld",
    "ToolError",
    "case",
    "describe",
    "ledger_of",
    "needs",
]
