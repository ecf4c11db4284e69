"""A custom tool of OpenAI Agents, called by the author's own code, is held like every other tool."""

from typing import Any

import pytest

from agents import CustomTool
from greenroom import Case, evaluate
from greenroom.metrics import contains

ACTED: list[str] = []


async def act(context: Any, text: str) -> str:
    ACTED.append(text)
    return "paid"


class Own(CustomTool):
    """Has its own method in place of the function that it was given."""

    async def on_invoke_tool(self, context: Any, text: str) -> str:  # pyright: ignore[reportIncompatibleVariableOverride]
        return await act(context, text)


TOOLS = {
    "its function": CustomTool(name="pay", description="Pay.", on_invoke_tool=act),
    "its own method": Own(name="pay", description="Pay.", on_invoke_tool=act),
}


@pytest.mark.parametrize("pay", TOOLS.values(), ids=TOOLS)
@pytest.mark.parametrize("given", [{}, {"mocks": {"pay": "no"}}, {"allow_tools": ["pay"]}], ids=str)
async def test_it_never_acts_in_a_rehearsal(pay: CustomTool, given: dict[str, Any]) -> None:
    async def clerk(message: str) -> str:
        try:
            await pay.on_invoke_tool(None, "7")  # pyright: ignore[reportArgumentType]
        except Exception:
            return "done"
        return "done"

    await clerk("with the gate open")
    assert ACTED.pop() == "7"
    report = await evaluate(clerk, Case("c", "Pay.", metrics=[contains("done")], **given))
    assert report.results[0].status == "error"
    assert "the tool gate cannot intercept it" in str(report.results[0].error)
    assert ACTED == []
