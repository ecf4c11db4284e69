"""A turn of an agent: the flow's request to its model, sent through google-adk."""

from collections.abc import AsyncGenerator
from contextvars import ContextVar
from typing import Any, TypeVar

from google.adk.models.base_llm import BaseLlm
from google.adk.models.llm_request import LlmRequest
from google.adk.models.llm_response import LlmResponse
from google.adk.tools.base_tool import BaseTool
from google.genai import types
from msgspec import Struct
from msgspec.structs import replace

from greenroom.backends.adk.compiled.visit import Visit
from greenroom.backends.adk.translation import contents_of, request_of, response_of
from greenroom.backends.native.agent_node import AgentRun
from greenroom.ledger.events import Event, ModelReplied
from greenroom.models.model import Model, ModelRequest
from greenroom.world.live import LiveWorld
from greenroom.world.records import failing_as_recorded

E = TypeVar("E", bound=Event)


class Turn(Struct, eq=False):
    """One attempt of an agent to answer."""

    visit: Visit
    run: AgentRun
    asked: ModelRequest | None = None
    """The current request to its model, in the flow's form."""
    contents: list[types.Content] = []
    """The messages of that request, in google-adk's form."""
    replied: ModelReplied | None = None
    """What its model replied, until plug-ins and callbacks have seen it."""

    async def ask(self) -> ModelRequest:
        """What the model is asked next, by the native agent node."""
        self.asked = await self.run.request()
        self.contents = contents_of(self.asked.messages)
        return self.asked

    def question(self, request: LlmRequest) -> ModelRequest:
        """The request to the model: the flow's own, unless a plug-in or a callback changed it."""
        asked = self.asked
        assert asked is not None
        seen = request_of(request, asked.agent)
        if request.contents == self.contents and seen.instructions == asked.instructions:
            return asked
        return replace(asked, messages=seen.messages, instructions=seen.instructions)


TURN: ContextVar[Turn] = ContextVar("greenroom_adk_turn")


class _Asking(LiveWorld):
    """The world of a turn while its model is asked; holds the reply back until plug-ins have seen it."""

    def __init__(self, turn: Turn) -> None:
        world = turn.visit.world
        super().__init__(world.ledger, run_id=world.run_id, on_event=world.on_event)
        self._turn = turn

    def record(self, event: E) -> E:
        if not isinstance(event, ModelReplied):
            return super().record(event)
        self._turn.replied = event
        return event


class CompiledModel(BaseLlm):
    """The model of an agent of the flow, whatever its provider."""

    async def generate_content_async(
        self, llm_request: LlmRequest, stream: bool = False
    ) -> AsyncGenerator[LlmResponse, None]:
        """Its reply, in one piece."""
        del stream
        turn = TURN.get()
        # An agent resolves a model's name when it is created.
        model: Model = turn.run.agent.model  # pyright: ignore[reportAssignmentType]
        with failing_as_recorded():
            reply = await _Asking(turn).call_model(turn.question(llm_request), model.respond)
        yield response_of(reply)


class Question(BaseTool):
    """Not a tool to call: it puts the flow's request into google-adk's, before plug-ins see it."""

    def __init__(self) -> None:
        super().__init__(name="greenroom_question", description="Asks as the flow does.")

    async def process_llm_request(self, *, tool_context: Any, llm_request: LlmRequest) -> None:
        """Put the flow's request into google-adk's."""
        del tool_context
        turn = TURN.get()
        request = await turn.ask()
        llm_request.contents = list(turn.contents)
        llm_request.config.system_instruction = request.instructions or None
        if request.output_schema is not None:
            llm_request.config.response_mime_type = "application/json"
            llm_request.config.response_json_schema = dict(request.output_schema)
