"""A framework that knows nothing of Greenroom: bots that ask a model and call functions in a loop."""

import inspect
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any


@dataclass
class Reply:
    """What a model says: a text, or calls as (tool, arguments, id)."""

    text: str = ""
    calls: list[tuple[str, dict[str, Any], str]] = field(default_factory=list)
    tokens: tuple[int, int] = (0, 0)


class Function:
    """A tool around a plain function."""

    def __init__(self, fn: Callable[..., Any]) -> None:
        self.fn = fn
        self.name = fn.__name__

    async def call(self, args: dict[str, Any], call_id: str = "") -> Any:
        """Call the function."""
        result = self.fn(**args)
        return await result if inspect.isawaitable(result) else result


Message = dict[str, Any]
Answering = Callable[[list[Message]], Awaitable[Reply]]


class Bot:
    """A model with tools."""

    def __init__(self, name: str, model: Answering, tools: list[Function], prompt: str) -> None:
        self.name = name
        self.model = model
        self.tools = tools
        self.prompt = prompt

    async def think(self, messages: list[Message]) -> Reply:
        """Ask the model once."""
        return await self.model(messages)

    async def chat(self, messages: list[Message]) -> list[Message]:
        """The conversation so far, with all that came of its last message."""
        said = list(messages)
        while True:
            reply = await self.think(said)
            said.append({"role": "assistant", "text": reply.text, "calls": reply.calls})
            if not reply.calls:
                return said
            for name, args, call_id in reply.calls:
                tool = next(tool for tool in self.tools if tool.name == name)
                try:
                    result = await tool.call(args, call_id)
                except Exception as error:
                    result = f"Error: {error}"
                said.append({"role": "tool", "tool": name, "id": call_id, "text": str(result)})
