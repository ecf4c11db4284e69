"""One advance of one run: which agents are running, and where in the ledger."""

from collections.abc import Callable
from contextvars import ContextVar

from greenroom.backends.callers import HostCaller, RunCaller, inner_model_caller, inner_tool_caller
from greenroom.backends.invocation import Invocation
from greenroom.ledger.events import Decided
from greenroom.ledger.plain import Json
from greenroom.models.model import ModelRequest

RUN: ContextVar["FrameworkRun | None"] = ContextVar("greenroom_openai_agents_run", default=None)
LEVEL: ContextVar["Level | None"] = ContextVar("greenroom_openai_agents_level", default=None)


class Level:
    """One run of the framework's loop: the outermost, or that of an agent used as a tool.

    One agent at a time runs on it; a handoff lets another take over.
    """

    __slots__ = ("_agent", "_at_work", "_given", "_invocation", "_prefix", "note_state", "path")

    def __init__(
        self, invocation: Invocation, prefix: str, given: Json, at_work: set[str] | None = None
    ) -> None:
        self._invocation = invocation
        self._prefix = prefix
        self._given = given
        self._at_work = set[str]() if at_work is None else at_work
        self._agent: str = ""
        self.path: str = prefix
        self.note_state: Callable[[str], None] | None = None
        """Records what the running agent has changed, before it ends."""

    def resume(self) -> None:
        """Continue with the agent that was running when the run paused."""
        index = self._invocation.index
        for path in index.started:
            if path.rpartition("/")[0] == self._prefix and path not in index.ended:
                self.go_on(path)

    def go_on(self, path: str) -> None:
        """Continue with the agent that runs at this path."""
        self._agent, self.path = self._invocation.index.started[path].node, path
        self._at_work.add(path)

    def inside(self, given: Json) -> "Level":
        """The level of an agent that the running agent uses as a tool."""
        level = Level(self._invocation, self.path, given, self._at_work)
        level.note_state = self.note_state
        return level

    def enter(self, agent: str) -> str:
        """This agent runs now, in place of the one before; returns its path."""
        if agent != self._agent:
            if self._agent:
                decided = Decided(path=self.path, choice=agent)
                self._invocation.world.record(decided)
            self.leave()
            self._agent = agent
            self.path = self._invocation.enter_node(agent, self._prefix, self._given, self._at_work)
            self._at_work.add(self.path)
        return self.path

    def leave(self, output: Json = None) -> None:
        """The running agent has ended, with this output."""
        if self._agent:
            if self.note_state is not None:
                self.note_state(self.path)
            self._invocation.end_node(self._agent, self.path, output)
            self._at_work.discard(self.path)
            self._agent = ""

    def fail(self, error: Exception) -> None:
        """The running agent has failed; its caller decides what happens then."""
        if self._agent:
            self._invocation.fail_node(self.path, error)
            self._at_work.discard(self.path)
            self._agent = ""


class FrameworkRun(RunCaller):
    """The state that the gates of one advance share; each call is placed where its agent runs."""

    __slots__ = ("live_servers", "outermost", "places")

    def __init__(self, invocation: Invocation, live_servers: tuple[object, ...]) -> None:
        super().__init__(invocation)
        self.live_servers = live_servers
        self.outermost = Level(invocation, invocation.root, invocation.given)
        self.outermost.resume()
        self.places: dict[str, str] = {}
        """The paths of agents that are used as tools and wait for an approval, by their calls."""

    @property
    def level(self) -> Level:
        """The run of the framework's loop that the running code belongs to."""
        return LEVEL.get() or self.outermost

    @property
    def place(self) -> str:
        """The path of the running agent."""
        return self.level.path

    def place_model(self, request: ModelRequest) -> ModelRequest:
        """The request of an agent, which counts as running from now on."""
        self.level.enter(request.agent)
        return super().place_model(request)


def model_caller() -> FrameworkRun | HostCaller | None:
    """The caller for models of the agent that runs here; None if it asks them directly."""
    return RUN.get() or inner_model_caller()


def tool_caller(origin: object, name: str) -> FrameworkRun | HostCaller | None:
    """The caller for this tool; None if the tool simply runs. Raises where no tool may be called."""
    return RUN.get() or inner_tool_caller(origin, name)
