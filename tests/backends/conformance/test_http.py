"""Agents behind an address pass the suite, as far as anybody can see into them."""

from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from backends.far_side import FarSide
from greenroom.backends.http import HttpBackend, http_agent
from greenroom.testing import BackendConformance, Blueprint, Bypass, Hang, Structured

FAR = FarSide()


@pytest.fixture(autouse=True, scope="session")
def far_side() -> Iterator[None]:
    # Not at the end of the module: a worker may get more of its tests later.
    yield
    FAR.close()


class HttpHarness:
    backend = HttpBackend

    def build(self, plan: Blueprint) -> Any:
        def answer(asked: dict[str, Any]) -> Any:
            said = sum(message["role"] == "assistant" for message in asked["messages"])
            line = plan.lines[said]
            if isinstance(line, Hang):
                FAR.closing.wait()
            if isinstance(line, Exception):
                return 500, str(line)
            return {"reply": dict(line.value) if isinstance(line, Structured) else line}

        template = {"messages": "{{messages}}", "instructions": plan.instructions}
        key = (plan.lines, plan.instructions)
        url = ADDRESSES.setdefault(repr(key), FAR.address(answer))
        return http_agent(url, template=template, answer="$.reply")

    async def run_bare(self, agent: Any, says: str) -> None:
        await agent.endpoint.ask({"messages": [{"role": "user", "content": says}]})

    def bypasses(self) -> Mapping[str, Bypass]:
        return {}


ADDRESSES: dict[str, str] = {}


class TestHttp(BackendConformance):
    harness = HttpHarness()
