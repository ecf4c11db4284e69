"""A plug-in that sees what the copying missed, and notes which agents come and go.

In a rehearsal the seam asks about what came up while the agent ran. Elsewhere no seam stands, and
what would run unseen is refused.
"""

from collections.abc import Callable
from typing import Any

from google.adk.agents import BaseAgent, LlmAgent
from google.adk.agents.callback_context import CallbackContext
from google.adk.agents.invocation_context import InvocationContext
from google.adk.events import Event
from google.adk.plugins import BasePlugin
from google.adk.tools.base_tool import BaseTool
from google.adk.tools.set_model_response_tool import SetModelResponseTool
from google.adk.tools.tool_context import ToolContext
from google.adk.tools.transfer_to_agent_tool import TransferToAgentTool

from greenroom.backends.adk.facts import check_agent
from greenroom.backends.adk.gates import ModelGate
from greenroom.backends.adk.run import FrameworkRun
from greenroom.backends.foreign import jsonable
from greenroom.errors import BadAgent, ToolRefused
from greenroom.ledger.plain import as_object
from greenroom.world.call_context import model_host
from greenroom.world.records import begin_call, fail_call
from greenroom.world.world import ToolRequest

# Made by the framework while it runs; they act on nothing but the framework.
_ITS_OWN = (TransferToAgentTool, SetModelResponseTool)


class Tripwire(BasePlugin):
    """Stands above the gates and sees every tool that is about to run."""

    def __init__(self, run: FrameworkRun, made: Callable[[BaseTool], bool]) -> None:
        super().__init__(name="greenroom")
        self._run = run
        self._made = made
        self._waiting: set[str] = set()

    async def before_tool_callback(
        self, *, tool: BaseTool, tool_args: dict[str, Any], tool_context: ToolContext
    ) -> None:
        """Leave a tool that is not of our making to the seam; write down one that does not exist."""
        if isinstance(tool, TransferToAgentTool):
            self._run.hand_over(str(tool_args.get("agent_name", "")))
        if self._made(tool) or type(tool) in _ITS_OWN:
            return
        if type(tool) is BaseTool:
            self._note_unknown(tool.name, tool_args, tool_context)
            return
        if model_host() is not None:
            return
        raise self._run.invocation.keep(
            ToolRefused(
                f"tool {tool.name!r} ({type(tool).__name__}) reached agent "
                f"{tool_context.agent_name!r} while it ran, so nothing stands between it and the "
                f"world. Put it into the agent's tools before the run."
            )
        )

    async def before_agent_callback(
        self, *, agent: BaseAgent, callback_context: CallbackContext
    ) -> None:
        """Note that an agent begins; one that is not of our making is left to the seam."""
        self._check(agent)
        self._enter(agent, callback_context)

    async def after_agent_callback(
        self,
        *,
        agent: BaseAgent,
        callback_context: CallbackContext,  # noqa: ARG002
    ) -> None:
        """Note that an agent has ended; one that waits for the user has not."""
        if not self._waiting:
            self._run.leave(agent.name)

    async def on_event_callback(
        self,
        *,
        invocation_context: InvocationContext,  # noqa: ARG002
        event: Event,
    ) -> None:
        """Hear of what happens in the sessions apart, those of agents used as tools."""
        self.hear(event)

    def hear(self, event: Event) -> None:
        """Keep count of the calls that wait for the user; to hear of an event twice is harmless."""
        if event.long_running_tool_ids:
            self._waiting.update(event.long_running_tool_ids)
        if self._waiting:
            self._waiting -= {response.id or "" for response in event.get_function_responses()}

    def begin(self) -> None:
        """Nothing waits any more: the next turn begins, or the answers are there."""
        self._waiting.clear()

    def callbacks_of(self, agent: BaseAgent) -> dict[str, Any]:
        """The callbacks by which an agent without plug-ins carries the wire, before its own."""

        async def before_agent(callback_context: CallbackContext) -> None:
            self._enter(agent, callback_context)

        async def after_agent(callback_context: CallbackContext) -> None:
            await self.after_agent_callback(agent=agent, callback_context=callback_context)

        async def before_tool(tool: BaseTool, args: dict[str, Any], tool_context: Any) -> None:
            await self.before_tool_callback(tool=tool, tool_args=args, tool_context=tool_context)

        found: dict[str, Any] = {
            "before_agent_callback": [before_agent, *agent.canonical_before_agent_callbacks],
            "after_agent_callback": [after_agent, *agent.canonical_after_agent_callbacks],
        }
        if isinstance(agent, LlmAgent):
            found["before_tool_callback"] = [before_tool, *agent.canonical_before_tool_callbacks]
        return found

    def _enter(self, agent: BaseAgent, context: CallbackContext) -> None:
        given = context.user_content
        text = "".join(part.text or "" for part in (given.parts or [])) if given else None
        self._run.enter(agent.name, text)

    def _check(self, agent: BaseAgent) -> None:
        if isinstance(agent, LlmAgent):
            ask = getattr(agent.model, "generate_content_async", None)
            if isinstance(ask, ModelGate):
                return
        try:
            check_agent(agent)
        except BadAgent as error:
            raise self._run.invocation.keep(error) from error
        if isinstance(agent, LlmAgent) and model_host() is None:
            raise self._run.invocation.keep(
                ToolRefused(
                    f"agent {agent.name!r} came up while another ran, so nothing stands between it "
                    f"and the world. Make it a sub-agent or a node before the run."
                )
            )

    def _note_unknown(self, name: str, args: dict[str, Any], context: ToolContext) -> None:
        """A tool the model made up: the framework says so to the model, and no body runs."""
        world, call_id = self._run.invocation.world, context.function_call_id or ""
        request = ToolRequest(call_id, name, as_object(jsonable(args)), self._run.place)
        begin_call(world, request)
        fail_call(world, request, ValueError(f"there is no tool {name!r}"), "refused")
