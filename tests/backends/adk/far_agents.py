"""Run by the Python that has google-adk's a2a extra: agents that work on somebody else's machine.

Prints for each place of such an agent how often it was reached bare, how often in a rehearsal, and
what the rehearsal said.
"""

import asyncio
import json
import sys
import warnings
from collections.abc import Callable
from typing import Any

from google.adk.agents import BaseAgent
from google.adk.agents.context import Context
from google.adk.agents.remote_a2a_agent import RemoteA2aAgent
from google.adk.agents.sequential_agent import SequentialAgent  # pyright: ignore[reportDeprecated]
from google.adk.tools import AgentTool
from google.adk.workflow import Workflow, node

from backends.adk.scripts import agent, case, run_bare
from greenroom import evaluate
from greenroom.errors import BadAgent

TRANSFER = ("transfer_to_agent", {"agent_name": "far"})


def as_root(far: BaseAgent) -> Any:
    return far


def as_sub_agent(far: BaseAgent) -> Any:
    return agent("clerk", TRANSFER, sub_agents=[far])


def as_step(far: BaseAgent) -> Any:
    return SequentialAgent(  # pyright: ignore[reportDeprecated]
        name="steps", sub_agents=[far, agent("clerk", "done")]
    )


def as_tool(far: BaseAgent) -> Any:
    return agent("clerk", ("far", {"request": "?"}), "done", tools=[AgentTool(far)])


def as_node(far: BaseAgent) -> Any:
    return Workflow(name="flow", edges=[("START", far)])


def brought_up(far: BaseAgent) -> Any:
    async def act(ctx: Context) -> Any:
        return await ctx.run_node(far, node_input="hello")

    return Workflow(name="flow", edges=[("START", node(act, rerun_on_resume=True))])


PLACES: tuple[Callable[[BaseAgent], Any], ...] = (
    as_root,
    as_sub_agent,
    as_step,
    as_tool,
    as_node,
    brought_up,
)


class FarSide:
    """A server that only counts who comes."""

    def __init__(self) -> None:
        self.reached = 0

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reached += 1
        writer.close()


async def told(build: Callable[[BaseAgent], Any], side: FarSide, port: int) -> list[Any]:
    def far() -> RemoteA2aAgent:
        return RemoteA2aAgent(name="far", agent_card=f"http://127.0.0.1:{port}/card.json")

    side.reached = 0
    try:
        await run_bare(build(far()))
    except Exception as error:
        print(f"bare: {error!r}", file=sys.stderr)
    bare, side.reached = side.reached, 0
    allowed = ["act"] if build is brought_up else []
    try:
        report = await evaluate(build(far()), case(allow_tools=allowed))
        found = report.results[0]
        said = f"{found.status}: {found.error.message if found.error else ''}"
    except BadAgent as error:
        said = f"refused: {error}"
    return [bare, side.reached, said]


async def main() -> None:
    warnings.simplefilter("ignore")
    side = FarSide()
    server = await asyncio.start_server(side.answer, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    found = {build.__name__: await told(build, side, port) for build in PLACES}
    server.close()
    json.dump(found, sys.stdout)


if __name__ == "__main__":
    asyncio.run(main())
