"""A plug-in that refuses what the copying missed, and notes which agents come and go."""

from typing import Any

from google.adk.agents import BaseAgent
from google.adk.agents.callback_context import CallbackContext
from google.adk.agents.invocation_context import InvocationContext
from google.adk.events import Event
from google.adk.plugins import BasePlugin
from google.adk.tools.base_tool import BaseTool
from google.adk.tools.set_model_response_tool import SetModelResponseTool
from google.adk.tools.tool_context import ToolContext
from google.adk.tools.transfer_to_agent_tool import TransferToAgentTool

from greenroom.backends.adk.copying import Copier
from greenroom.backends.adk.gates import Stage
from greenroom.backends.foreign import jsonable
from greenroom.errors import ToolRefused
from greenroom.world.recording import begin_call, fail_call
from greenroom.world.world import ToolRequest

# Made by the framework while it runs; they act on nothing but the framework.
_ITS_OWN = (TransferToAgentTool, SetModelResponseTool)


class Tripwire(BasePlugin):
    """Stands above the gates and sees every tool that is about to run."""

    def __init__(self, stage: Stage, copier: Copier) -> None:
        super().__init__(name="greenroom")
        self._stage = stage
        self._copier = copier
        self._waiting: set[str] = set()

    async def before_tool_callback(
        self, *, tool: BaseTool, tool_args: dict[str, Any], tool_context: ToolContext
    ) -> None:
        """Refuse a tool that is not of our making; write down one that does not exist."""
        if self._copier.made(tool) or type(tool) in _ITS_OWN:
            return
        if type(tool) is BaseTool:
            self._note_unknown(tool.name, tool_args, tool_context)
            return
        raise self._stage.invocation.keep(
            ToolRefused(
                f"tool {tool.name!r} ({type(tool).__name__}) reached agent "
                f"{tool_context.agent_name!r} while it ran, so nothing stands between it and the "
                f"world. Put it into the agent's tools before the run."
            )
        )

    async def before_agent_callback(
        self, *, agent: BaseAgent, callback_context: CallbackContext
    ) -> None:
        """Note that an agent begins."""
        given = callback_context.user_content
        text = "".join(part.text or "" for part in (given.parts or [])) if given else None
        self._stage.enter(agent.name, text)

    async def after_agent_callback(
        self,
        *,
        agent: BaseAgent,
        callback_context: CallbackContext,  # noqa: ARG002
    ) -> None:
        """Note that an agent has ended; one that waits for the user has not."""
        if not self._waiting:
            self._stage.leave(agent.name)

    async def on_event_callback(
        self,
        *,
        invocation_context: InvocationContext,  # noqa: ARG002
        event: Event,
    ) -> None:
        """Keep count of the calls that wait for the user."""
        self._waiting |= set(event.long_running_tool_ids or ())
        self._waiting -= {response.id or "" for response in event.get_function_responses()}

    def _note_unknown(self, name: str, args: dict[str, Any], context: ToolContext) -> None:
        """A tool the model made up: the framework tells it so, and no body runs."""
        stage = self._stage
        path, call_id = stage.path(context.agent_name), context.function_call_id or ""
        request = ToolRequest(call_id, name, jsonable(args), path)
        begin_call(stage.invocation.world, request)
        error = ValueError(f"there is no tool {name!r}")
        fail_call(stage.invocation.world, request, error, "refused")
