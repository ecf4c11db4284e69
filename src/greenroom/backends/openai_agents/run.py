"""One advance of one run: which agents are at work, and where in the ledger."""

from collections.abc import Iterable
from contextvars import ContextVar
from operator import is_
from typing import Any

from greenroom.backends.callers import HostCaller, RunCaller, inner_model_caller, inner_tool_caller
from greenroom.backends.foreign import Invocation
from greenroom.models.model import ModelRequest

STAGE: ContextVar["FrameworkRun | None"] = ContextVar("greenroom_openai_agents_stage", default=None)
LEVEL: ContextVar["Level | None"] = ContextVar("greenroom_openai_agents_level", default=None)


class Level:
    """One run of the framework's loop: the outermost, or that of an agent used as a tool.

    One agent at a time is at work on it; a handoff lets another take over.
    """

    __slots__ = ("_agent", "_invocation", "_prefix", "path")

    def __init__(self, invocation: Invocation, prefix: str) -> None:
        self._invocation = invocation
        self._prefix = prefix
        self._agent: str = ""
        self.path: str = prefix

    def take_up(self) -> None:
        """Go on with the agent that was at work when the run paused."""
        index = self._invocation.index
        for path, begun in index.started.items():
            if path.rpartition("/")[0] == self._prefix and path not in index.ended:
                self._agent, self.path = begun.node, path

    def enter(self, agent: str) -> str:
        """This agent is at work now, in place of the one before; its path."""
        if agent != self._agent:
            self.leave()
            self._agent = agent
            is_outermost = self._prefix == self._invocation.root
            given = self._invocation.given if is_outermost else None
            known = self._open(agent)
            self.path = known or self._invocation.begin_node(agent, self._prefix, given)
        return self.path

    def leave(self) -> None:
        """The agent at work has ended."""
        if self._agent:
            self._invocation.end_node(self._agent, self.path)
            self._agent = ""

    def _open(self, agent: str) -> str | None:
        """The path of an agent that only goes on after a pause."""
        index = self._invocation.index
        for path, begun in index.started.items():
            mine = path.rpartition("/")[0] == self._prefix and begun.node == agent
            if mine and path not in index.ended:
                return path
        return None


class Settled:
    """Agents that have all of their tools in every turn, as the framework found once.

    It asks in each turn anew, with a task for every tool. Where no server lists tools and nothing
    decides about one, only a change of the list itself could make a difference.
    """

    __slots__ = ("_found",)

    def __init__(self, members: Iterable[object]) -> None:
        self._found: dict[int, list[Any] | None] = {id(member): None for member in members}
        """The tools of each agent, by its identity; the backend holds the agents."""

    def get(self, agent: Any) -> list[Any] | None:
        """The agent's tools, if they cannot be others than those that were found before."""
        found = self._found.get(id(agent))
        if found is None or agent.mcp_servers or not _are_same(found, agent.tools):
            return None
        return found if all(tool.is_enabled is True for tool in found) else None

    def put(self, agent: Any, found: list[Any]) -> None:
        """Remember what the framework found, if it is all that the agent has."""
        if id(agent) in self._found and _are_same(found, agent.tools):
            self._found[id(agent)] = found


def _are_same(some: list[Any], others: list[Any]) -> bool:
    return len(some) == len(others) and all(map(is_, some, others))


class FrameworkRun(RunCaller):
    """What the gates of one advance share; each call stands where its agent is at work."""

    __slots__ = ("live_servers", "outermost", "settled")

    def __init__(
        self, invocation: Invocation, live_servers: tuple[object, ...], settled: Settled
    ) -> None:
        super().__init__(invocation)
        self.live_servers = live_servers
        self.settled = settled
        self.outermost = Level(invocation, invocation.root)
        self.outermost.take_up()

    @property
    def level(self) -> Level:
        """The run of the framework's loop that the running code belongs to."""
        return LEVEL.get() or self.outermost

    @property
    def place(self) -> str:
        """The path of the agent at work."""
        return self.level.path

    def place_model(self, request: ModelRequest) -> ModelRequest:
        """The question of an agent, which is at work from now on."""
        self.level.enter(request.agent)
        return super().place_model(request)


def model_caller() -> FrameworkRun | HostCaller | None:
    """Who asks models for the agent that runs here; None: it asks by itself."""
    return STAGE.get() or inner_model_caller()


def tool_caller(origin: object, name: str) -> FrameworkRun | HostCaller | None:
    """Who asks for this tool; None: it runs. Raises where no tool may be called."""
    return STAGE.get() or inner_tool_caller(origin, name)
