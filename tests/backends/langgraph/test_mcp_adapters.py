"""Tools of MCP servers that LangChain's adapters made: decided once, also under a prefixed name."""

from typing import Any

import pytest
from mcp import ClientSession

adapters: Any = pytest.importorskip("langchain_mcp_adapters.tools", exc_type=ImportError)
memory: Any = pytest.importorskip("mcp.shared.memory")
fastmcp: Any = pytest.importorskip("mcp.server.fastmcp", exc_type=ImportError)

from greenroom import Case, evaluate  # noqa: E402 - the modules above may be missing
from greenroom.ledger.questions import tool_calls  # noqa: E402
from greenroom.metrics import completed_within  # noqa: E402


async def clerk_of(session: ClientSession, *, prefix: bool) -> tuple[str, Any]:
    [tool] = await adapters.load_mcp_tools(session, server_name="bank", tool_name_prefix=prefix)

    async def clerk(message: str) -> str:
        return str(await tool.ainvoke({"amount": 5}))

    return tool.name, clerk


@pytest.mark.parametrize("prefix", [False, True])
async def test_a_tool_of_the_adapters_is_decided_once(prefix: bool):
    marks: list[int] = []
    server = fastmcp.FastMCP("bank")

    def pay(amount: int) -> str:
        marks.append(amount)
        return "paid"

    server.tool()(pay)
    async with memory.create_connected_server_and_client_session(server._mcp_server) as session:
        name, clerk = await clerk_of(session, prefix=prefix)

        async def played(**options: Any) -> Any:
            case = Case("c", "Hi", metrics=[completed_within(600)], **options)
            return (await evaluate(clerk, case, store=None)).results[0]

        refused, mocked = await played(), await played(mocks={name: "ok"})
        assert (refused.status, mocked.status, marks) == ("error", "passed", []), mocked.error
        named = await played(allow_tools=[name])
    assert (named.status, marks) == ("passed", [5]), named.error
    assert [(c.tool, c.source) for c in tool_calls(named.ledger)] == [(name, "live")]
