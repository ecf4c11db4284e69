"""An agent on the official SDK's own server, to be started as a process or in a thread.

It says `done: ...` to what it hears; words in the message make it ask back, fail, stream or take its time.
"""

import asyncio
import sys
from pathlib import Path
from typing import Any

import uvicorn
from a2a.server.agent_execution import AgentExecutor, RequestContext
from a2a.server.events import EventQueue
from a2a.server.request_handlers import DefaultRequestHandler
from a2a.server.routes import create_agent_card_routes, create_jsonrpc_routes
from a2a.server.tasks import InMemoryTaskStore, TaskUpdater
from a2a.types import (
    AgentCapabilities,
    AgentCard,
    AgentInterface,
    AgentSkill,
    Message,
    Part,
    Role,
    Task,
    TaskState,
    TaskStatus,
)
from starlette.applications import Starlette


class Far(AgentExecutor):
    """Does what the words of a message say; every message that it acts on is a line of a file."""

    def __init__(self, log: Path) -> None:
        self._log = log

    async def execute(self, context: RequestContext, event_queue: EventQueue) -> None:
        words = context.get_user_input()
        with self._log.open("a") as file:
            file.write(f"{words!r}\n")
        if "plainly" in words:
            said = Message(
                role=Role.ROLE_AGENT, message_id="m", parts=[Part(text=f"done: {words}")]
            )
            await event_queue.enqueue_event(said)
            return
        task_id, context_id = context.task_id or "", context.context_id or ""
        if context.current_task is None:
            status = TaskStatus(state=TaskState.TASK_STATE_SUBMITTED)
            history = [context.message] if context.message else []
            await event_queue.enqueue_event(
                Task(id=task_id, context_id=context_id, status=status, history=history)
            )
        updater = TaskUpdater(event_queue, task_id, context_id)
        await updater.start_work(updater.new_agent_message([Part(text="looking")]))
        if "slowly" in words:
            await asyncio.sleep(float(words.rpartition(" ")[2]))
        if "ask" in words:
            await updater.requires_input(updater.new_agent_message([Part(text="Which order?")]))
            return
        if "fail" in words:
            await updater.failed(updater.new_agent_message([Part(text="no money")]))
            return
        if "stream" in words:
            for number, piece in enumerate(("do", "ne: ", words)):
                await updater.add_artifact([Part(text=piece)], artifact_id="a", append=number > 0)
        elif "think again" in words:
            for piece in ("No.", f"done: {words}"):
                await updater.add_artifact([Part(text=piece)], artifact_id="a")
        elif "twice" in words:
            for piece in ("one", "two"):
                await updater.add_artifact([Part(text=piece)])
        else:
            await updater.add_artifact([Part(text=f"done: {words}")])
        await updater.complete()

    async def cancel(self, context: RequestContext, event_queue: EventQueue) -> None:
        with self._log.open("a") as file:
            file.write("cancelled\n")
        await TaskUpdater(event_queue, context.task_id or "", context.context_id or "").cancel()


def app(url: str, log: Path, *, streaming: bool = True) -> Any:
    card = AgentCard(
        name="far",
        description="An agent elsewhere.",
        version="1",
        supported_interfaces=[
            AgentInterface(url=url, protocol_binding="JSONRPC", protocol_version="1.0")
        ],
        capabilities=AgentCapabilities(streaming=streaming),
        default_input_modes=["text/plain"],
        default_output_modes=["text/plain"],
        skills=[AgentSkill(id="refund", name="Refunds", description="Pays back.", tags=["money"])],
    )
    handler = DefaultRequestHandler(Far(log), InMemoryTaskStore(), card)
    routes = [*create_agent_card_routes(card), *create_jsonrpc_routes(handler, "/rpc")]
    return Starlette(routes=routes)


if __name__ == "__main__":
    port, log, kind = int(sys.argv[1]), Path(sys.argv[2]), sys.argv[3]
    served = app(f"http://127.0.0.1:{port}/rpc", log, streaming=kind == "streaming")
    uvicorn.run(served, host="127.0.0.1", port=port, log_level="error")
