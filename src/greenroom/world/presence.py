"""Who answers for the work that runs here.

A framework's agent may come alive anywhere: inside a plain function, a step, a tool, a mock, a
callback, a thread. Wherever it does, its calls are answered by the host of the case they belong to.
Lower rooms only ask; whoever opens rehearsals says how the host is found.
"""

from collections.abc import Callable
from typing import Protocol

from greenroom.errors import GreenroomError
from greenroom.models.model import ModelBody, ModelReply, ModelRequest, OnDelta
from greenroom.world.place import is_asked
from greenroom.world.world import Returned, ToolBody, ToolRequest


class Host(Protocol):
    """Answers the model and tool calls of agents that run inside something else."""

    async def call_model(
        self, request: ModelRequest, body: ModelBody, on_delta: OnDelta | None = None
    ) -> ModelReply:
        """The model's answer; path, number and digest of the request are the host's to fill in."""
        ...

    async def call_tool(self, request: ToolRequest, body: ToolBody) -> Returned:
        """The tool's answer; number and, if it must, the id are the host's to fill in.

        The request's path is the calling agent's name, or "": the host says where that stands.
        """
        ...

    def refuse(self, error: GreenroomError) -> GreenroomError:
        """Let this error end the trial, whoever swallows it; given back to be raised."""
        ...

    def new_id(self, *parts: object) -> str:
        """An id that is the same whenever the same run comes to the same place."""
        ...

    def begin(self, place: str) -> None:
        """Work at this place begins, maybe anew; what it asks again was answered before."""
        ...


FindHost = Callable[[], Host | None]
RefuseStray = Callable[[object, str], None]

_finders: list[tuple[FindHost, RefuseStray]] = []


def tool_host(origin: object, name: str) -> Host | None:
    """Who answers this tool call; None: no rehearsal has a say here, and the tool may run.

    Raises a `Refusal` where nobody may call tools: in metrics and hooks, and in work of no case
    while a rehearsal is open.
    """
    for find, refuse in _finders:
        if (host := find()) is not None:
            return host
        refuse(origin, name)
    return None


def model_host() -> Host | None:
    """Who answers a model call made here; None: the model is asked as it is, fence or no fence.

    Of models that ask each other the outermost is answered for: one question, one answer.
    """
    if is_asked():
        return None
    for find, _ in _finders:
        if (host := find()) is not None:
            return host
    return None


def find_hosts_by(find: FindHost, refuse: RefuseStray) -> None:
    """Say how the host of the running work is found, and who refuses tool calls without one."""
    if (find, refuse) not in _finders:
        _finders.append((find, refuse))
