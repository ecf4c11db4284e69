"""Who a call of the framework is put to: the World of a handed-over agent, or the host of its case."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Protocol

from greenroom.backends.adk.routed import asking
from greenroom.backends.adk.run import PLACE
from greenroom.backends.foreign import Kept, visit_tool
from greenroom.errors import GreenroomError
from greenroom.ledger.paths import within
from greenroom.ledger.plain import Json
from greenroom.models.model import ModelBody, ModelReply, ModelRequest
from greenroom.world.place import place_here, placed
from greenroom.world.presence import Host
from greenroom.world.world import Pending, Returned, ToolRequest

Run = Callable[[], Awaitable[Any]]
Told = Callable[[Any], Json] | None


class Asker(Protocol):
    """Puts the calls of one agent to whoever answers them."""

    @property
    def place(self) -> str:
        """Where the calls stand."""
        ...

    def number(self, tool: str, call_id: str) -> int:
        """How many calls of this tool came before."""
        ...

    def replies(self, agent: str) -> int:
        """How many replies this agent's model has given."""
        ...

    def node_call_id(self, name: str) -> str:
        """An id for a call that no model wanted; "" if whoever answers gives one."""
        ...

    def new_id(self, *parts: object) -> str:
        """An id that is the same whenever the same run comes to the same place."""
        ...

    def refuse(self, error: GreenroomError) -> GreenroomError:
        """Let this error end the run, whatever the framework makes of it; given to be raised."""
        ...

    async def ask_tool(
        self, request: ToolRequest, run: Run, told: Told = None
    ) -> tuple[Returned | Pending, Kept]:
        """The answer to a tool call, and what the real tool gave or raised if it ran."""
        ...

    async def ask_model(self, request: ModelRequest, body: ModelBody) -> ModelReply:
        """The answer to a question to a model."""
        ...

    def watch_state(self, context: Any) -> None:
        """Remember what a call looks at in the state, to tell what it wrote unseen."""
        ...

    def hand_over_state(self, call_id: str, context: Any) -> None:
        """Let the framework's session have the state that the answer to a call changed."""
        ...


@dataclass(frozen=True, slots=True)
class Visitor:
    """An agent that came alive inside something else; its case's host answers."""

    host: Host
    place: str = ""
    """The agent's name: where it stands is the host's to say."""

    def number(self, tool: str, call_id: str) -> int:  # noqa: ARG002
        """The host counts."""
        return 0

    def replies(self, agent: str) -> int:  # noqa: ARG002
        """The host counts."""
        return 0

    def node_call_id(self, name: str) -> str:  # noqa: ARG002
        """The host gives one that follows from the call."""
        return ""

    def new_id(self, *parts: object) -> str:
        """An id that is the same whenever the same run comes to the same place."""
        return self.host.new_id(*parts)

    def refuse(self, error: GreenroomError) -> GreenroomError:
        """Let this error end the trial."""
        return self.host.refuse(error)

    async def ask_tool(
        self, request: ToolRequest, run: Run, told: Told = None
    ) -> tuple[Returned | Pending, Kept]:
        """The host's answer; an agent inside a mock is asked about too."""
        with placed(_place(self.place)), asking():
            return await visit_tool(self.host, request, run, told)

    async def ask_model(self, request: ModelRequest, body: ModelBody) -> ModelReply:
        """The host's answer."""
        with placed(_place(self.place)):
            return await self.host.call_model(request, body)

    def watch_state(self, context: Any) -> None:
        """Nothing: the session is not the case's."""

    def hand_over_state(self, call_id: str, context: Any) -> None:
        """Nothing: the session belongs to whoever runs the agent, not to the case."""


def _place(agent: str) -> str:
    """Where the code around the agent stands: inside a handed-over agent that is the agent at work.

    An agent that came up while that one ran, but in its run, has a place of its own there.
    """
    here, at_work = place_here(), PLACE.get()
    if here and not within(at_work, here):
        return here
    around, _, last = at_work.rpartition("/")
    return around if around and last.partition("#")[0] == agent else at_work
