"""Toolsets: their tools are known only while the agent runs, and are gated as they are listed."""

import copy
from collections.abc import Callable
from typing import Any

from google.adk.agents.readonly_context import ReadonlyContext
from google.adk.tools.base_tool import BaseTool
from google.adk.tools.base_toolset import BaseToolset
from google.genai import types

from greenroom.backends.adk.run import AdkCaller, FrameworkRun, run_passed
from greenroom.backends.callers import Run
from greenroom.backends.foreign import jsonable
from greenroom.errors import AgentFailed, BadCase, GreenroomError
from greenroom.ledger.plain import Json
from greenroom.world.world import Pending, ToolRequest

# Toolsets that ask a server which tools there are, and may have to start it for that.
_REMOTE = (
    "google.adk.tools.api_registry",
    "google.adk.tools.apihub_tool",
    "google.adk.tools.application_integration_tool",
    "google.adk.tools.mcp_tool",
    "google.adk.tools.toolbox_toolset",
)


def is_remote(toolset: BaseToolset) -> bool:
    """Whether listing the tools would already reach a server."""
    return any(cls.__module__.startswith(_REMOTE) for cls in type(toolset).__mro__)


def label_of(toolset: BaseToolset) -> str:
    """The name by which a case mocks or allows the listing."""
    return toolset.tool_name_prefix or type(toolset).__name__


class ToolsetGate:
    """Replaces a toolset's method that lists its tools."""

    __slots__ = ("_gated", "_listed", "_run", "toolset")

    def __init__(
        self, run: FrameworkRun, toolset: BaseToolset, gated: Callable[[BaseTool], BaseTool]
    ) -> None:
        self._run = run
        self._gated = gated
        self._listed: list[BaseTool] | None = None
        self.toolset = toolset

    async def __call__(self, readonly_context: ReadonlyContext | None = None) -> list[BaseTool]:
        """The current tools, each behind its own gate."""
        if self._listed is not None:
            return self._listed
        return self._gate_all(await self._really(readonly_context))

    async def ask_server(self) -> None:
        """List a server's tools before the agent begins, if the case allows that or mocks the list."""
        run, name = self._run, label_of(self.toolset)
        n = sum(called.tool == name for called in run.invocation.index.issued)
        call_id = run.new_id(run.invocation.root, name, n)
        listed = await ask_server(run, self.toolset, lambda: self._really(None), call_id)
        self._listed = self._gate_all(listed)

    def _gate_all(self, tools: list[BaseTool]) -> list[BaseTool]:
        try:
            return [self._gated(tool) for tool in tools]
        except GreenroomError as error:
            # The framework would continue without the toolset.
            raise self._run.refuse(error) from None

    async def _really(self, context: ReadonlyContext | None) -> list[BaseTool]:
        # A copy without what was listed for another case.
        toolset: Any = copy.copy(self.toolset)
        toolset._cached_prefixed_tools = None
        return await run_passed(toolset, None, lambda: toolset.get_tools_with_prefix(context))


async def ask_server(
    caller: AdkCaller, toolset: BaseToolset, really: Run, call_id: str = ""
) -> list[BaseTool]:
    """The tools of a server if the case allows listing them, or those that the case mocks."""
    name = label_of(toolset)
    request = caller.place_tool(ToolRequest(call_id, name, {}, caller.agent, origin=toolset))
    outcome, kept = await caller.ask_tool(request, really, _names_of)
    if isinstance(outcome, Pending):
        raise caller.refuse(BadCase(f"listing the tools of {name!r} cannot wait for a user."))
    if outcome.error:
        raise caller.refuse(
            AgentFailed(f"the tools of {name!r} could not be listed: {outcome.error}")
        ) from kept.error
    if kept.matches(outcome.value):
        return kept.real
    if outcome.source == "live":
        # Listed before a pause: the ledger has only names, but these tools have bodies.
        return await really()
    listed: Any = outcome.value
    try:
        return [ListedTool(dict(item)) for item in listed]
    except (KeyError, TypeError, ValueError) as error:
        raise caller.refuse(
            BadCase(
                f"mocks[{name!r}] replaces the tools that the server lists: write a list of "
                f'{{"name": ..., "description": ..., "inputSchema": {{...}}}}, not {outcome.value!r}.'
            )
        ) from error


class ListedTool(BaseTool):
    """A tool that a case says its server has; it has no body."""

    def __init__(self, listed: dict[str, Any]) -> None:
        super().__init__(name=listed["name"], description=listed.get("description", ""))
        self._schema: Json = listed.get("inputSchema") or {"type": "object", "properties": {}}

    def _get_declaration(self) -> types.FunctionDeclaration:
        return types.FunctionDeclaration(
            name=self.name, description=self.description, parameters_json_schema=self._schema
        )

    async def run_async(self, *, args: dict[str, Any], tool_context: Any) -> Any:  # noqa: ARG002
        """Raise: there is nothing to run."""
        raise BadCase(f"tool {self.name!r} is only listed by the case; mock what it answers.")


def _names_of(tools: list[BaseTool]) -> Json:
    return jsonable([{"name": tool.name, "description": tool.description} for tool in tools])
