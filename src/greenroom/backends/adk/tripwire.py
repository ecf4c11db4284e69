"""A plug-in that catches tools and agents that the copy missed, and records which agents run.

In a rehearsal the seam handles tools and agents that were created while the agent ran. Elsewhere there is
no seam, and whatever would run unseen is refused.
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

# The framework creates these while it runs; they have no effects outside it.
_ITS_OWN = (TransferToAgentTool, SetModelResponseTool)


class Tripwire(BasePlugin):
    """Sees every tool that is about to run, before the gates do."""

    def __init__(self, run: FrameworkRun, made: Callable[[BaseTool], bool]) -> None:
        super().__init__(name="greenroom")
        self._run = run
        self._made = made
        self._waiting: set[str] = set()

    async def before_tool_callback(
        self, *, tool: BaseTool, tool_args: dict[str, Any], tool_context: ToolContext
    ) -> None:
        """Leave a tool that is not our copy to the seam; record a call of one that does not exist."""
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
                f"{tool_context.agent_name!r} while it ran, so the tool gate cannot "
                f"intercept it. Put it into the agent's tools before the run."
            )
        )

    async def before_agent_callback(
        self, *, agent: BaseAgent, callback_context: CallbackContext
    ) -> None:
        """Note that an agent begins; one that is not our copy is left to the seam."""
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
        """See the events of the separate sessions of agents that are used as tools."""
        self.hear(event)

    def hear(self, event: Event) -> None:
        """Track the calls that wait for the user; seeing an event twice is harmless."""
        if event.long_running_tool_ids:
            self._waiting.update(event.long_running_tool_ids)
        if self._waiting:
            self._waiting -= {response.id or "" for response in event.get_function_responses()}

    def begin(self) -> None:
        """Forget all waits: the next turn begins, or the answers are there."""
        self._waiting.clear()

    def callbacks_of(self, agent: BaseAgent) -> dict[str, Any]:
        """The callbacks that make an agent without plug-ins carry the tripwire, before its own callbacks."""

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
                    f"agent {agent.name!r} was created while another ran, so the tool gate cannot "
                    f"intercept it. Make it a sub-agent or a node before the run."
                )
            )

    def _note_unknown(self, name: str, args: dict[str, Any], context: ToolContext) -> None:
        """Record a tool that the model made up: the framework tells the model so, and no body runs."""
        world, call_id = self._run.invocation.world, context.function_call_id or ""
        request = ToolRequest(call_id, name, as_object(jsonable(args)), self._run.place)
        begin_call(world, request)
        fail_call(world, request, ValueError(f"there is no tool {name!r}"), "refused")
