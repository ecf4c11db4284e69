"""What a function may know and do in one turn."""

from collections.abc import Mapping, Sequence
from typing import Any, cast

from greenroom.agents.tools import as_tool
from greenroom.backends.function.router import CallRouter
from greenroom.ledger.attachments import Attachment, text_and_attachments
from greenroom.ledger.changes import Change
from greenroom.ledger.messages import Message, Role
from greenroom.ledger.plain import Json, as_text
from greenroom.models.model import ModelRequest, model_name
from greenroom.models.named import as_model
from greenroom.world.scopes import Scopes
from greenroom.world.world import Context


class FunctionContext:
    """The conversation, the state, the time, and models to ask."""

    __slots__ = ("_agent", "_inner", "_path", "_router")

    def __init__(self, router: CallRouter, agent: str, path: str) -> None:
        self._router = router
        self._agent = agent
        self._path = path
        self._inner = Context(router.invocation.world, path)

    @property
    def path(self) -> str:
        """The function's path in the ledger."""
        return self._path

    @property
    def message(self) -> str:
        """What the user said last; "" if the agent speaks first."""
        given = self._router.invocation.given
        return "" if given is None else as_text(given)

    @property
    def attachments(self) -> tuple[Attachment, ...]:
        """What the user sent along with their last message."""
        return self._router.invocation.attached

    @property
    def messages(self) -> list[dict[str, Any]]:
        """The conversation so far, the user's last message included; with attachments, if there are any."""
        index, found = self._router.invocation.index, list[dict[str, Any]]()
        for path, begun in index.invocations.items():
            if begun.input not in (None, ""):
                found.append(_said("user", begun.input))
            end = index.invocations_ended.get(path)
            if end is not None and end.output is not None:
                found.append(_said("assistant", end.output))
        return found

    @property
    def state(self) -> Scopes:
        """The state by scope; changes take effect when the function has answered."""
        return self._inner.state

    @property
    def run_id(self) -> str:
        """Which run this is."""
        return self._inner.run_id

    @property
    def seed(self) -> int | None:
        """The seed of the case, for random choices; None if it has none."""
        return self._inner.seed

    def now(self) -> float:
        """Seconds since the epoch by the run's own clock, which a case may set."""
        return self._inner.now()

    def note(self, name: str, data: Json = None) -> None:
        """Write a fact of your own into the ledger; it is a step of the trajectory, of type `custom`."""
        self._inner.note(name, data)

    def changes(self) -> tuple[Change, ...]:
        """The changes of the state so far."""
        return self._inner.changes()

    def ask(
        self,
        model: Any,
        messages: str | Sequence[Mapping[str, Any] | Message] | None = None,
        *,
        instructions: str = "",
        tools: Sequence[Any] = (),
        output_schema: Mapping[str, Json] | None = None,
    ) -> Any:
        """Ask a model through the World; without messages it gets the conversation.

        An async function awaits the reply, a sync one gets it directly. The function itself must make the
        tool calls in a reply.
        """
        asked = as_model(model, f"function {self._agent!r}")
        given = self.messages if messages is None else messages
        request = ModelRequest(
            agent=self._agent,
            messages=_messages(given),
            instructions=instructions,
            tools=tuple(as_tool(tool) for tool in tools),
            output_schema=output_schema,
            model=model_name(asked),
            path=self._path,
            node=self._agent,
        )
        return self._router.ask(request, asked.respond)


def _messages(given: str | Sequence[Mapping[str, Any] | Message]) -> tuple[Message, ...]:
    if isinstance(given, str):
        return (Message("user", given),)
    return tuple(
        said
        if isinstance(said, Message)
        else Message(
            cast(Role, said["role"]),
            as_text(said.get("content", "")),
            attachments=tuple(said.get("attachments", ())),
        )
        for said in given
    )


def _said(role: Role, value: Json) -> dict[str, Any]:
    text, attached = text_and_attachments(value)
    message: dict[str, Any] = {"role": role, "content": text}
    return {**message, "attachments": attached} if attached else message
