"""Agents that are only reachable by A2A pass the suite, as far as anybody can see into them."""

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from backends.far_side import FarSide
from greenroom import perform
from greenroom.agents import AgentCard
from greenroom.backends.a2a import A2ABackend, a2a_agent
from greenroom.testing import BackendConformance, Blueprint, Bypass, Hang, Structured

FAR = FarSide()
ADDRESSES: dict[str, str] = {}


@pytest.fixture(autouse=True, scope="session")
def far_side() -> Iterator[None]:
    # Not at the end of the module: a worker may get more of its tests later.
    yield
    FAR.close()


def waiting(plan: Blueprint, context: str, *, is_last: bool) -> dict[str, Any]:
    """A task that asks once, and then answers."""
    said = {"messageId": "m", "parts": [{"text": plan.lines[is_last]}]}
    state = "TASK_STATE_COMPLETED" if is_last else "TASK_STATE_INPUT_REQUIRED"
    return {"id": "t", "contextId": context, "status": {"state": state, "message": said}}


class A2AHarness:
    backend = A2ABackend

    def build(self, plan: Blueprint) -> Any:
        turns: Counter[str] = Counter()

        def answer(asked: dict[str, Any]) -> Any:
            if asked["method"] != "SendMessage":
                return {"result": {"tasks": []}}
            message = asked["params"]["message"]
            context = message["contextId"]
            if plan.awaits_input:
                return {"result": {"task": waiting(plan, context, is_last="taskId" in message)}}
            line = plan.lines[turns[context]]
            turns[context] += 1
            if isinstance(line, Hang):
                FAR.closing.wait()
            if isinstance(line, Exception):
                return {"error": {"code": -32603, "message": str(line)}}
            is_data = isinstance(line, Structured)
            part = {"data": dict(line.value)} if is_data else {"text": line}
            return {"result": {"message": {"messageId": "m", "parts": [part]}}}

        key = (plan.lines, plan.instructions)
        url = ADDRESSES.setdefault(repr(key), FAR.address(answer))
        return a2a_agent(AgentCard("far", url))

    async def run_bare(self, agent: Any, says: str) -> None:
        await perform(agent, says, store=False)

    def bypasses(self) -> Mapping[str, Bypass]:
        return {}


class TestA2A(BackendConformance):
    harness = A2AHarness()
