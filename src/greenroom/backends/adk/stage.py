"""One advance of one invocation: which agents and nodes are at work, and where in the ledger."""

from contextvars import ContextVar

from greenroom.backends.foreign import Invocation
from greenroom.ledger.events import Decided, NodeEnded, NodeStarted
from greenroom.ledger.plain import Json

# The framework runs what works at the same time in tasks of its own, so each sees its own place.
PLACE: ContextVar[str] = ContextVar("greenroom_adk_place", default="")


class Stage:
    """What the gates of one advance share."""

    __slots__ = ("_at_work", "_handed", "invocation")

    def __init__(self, invocation: Invocation) -> None:
        self.invocation = invocation
        self._at_work: dict[str, str] = {}
        self._handed: dict[str, str] = {}

    def begin(self, invocation: Invocation) -> None:
        """Go on with the next invocation, or with one that has paused."""
        self.invocation = invocation
        self._at_work.clear()
        self._handed.clear()

    @property
    def place(self) -> str:
        """The path of the innermost agent or node that the running code belongs to."""
        return PLACE.get() or self.invocation.root

    def last_of(self, node: str) -> str:
        """The path of the latest run of an agent or node, by its name."""
        started = self.invocation.trail.started
        found = [path for path, begun in started.items() if begun.node == node]
        return found[-1] if found else self.invocation.root

    def enter(self, node: str, given: Json = None) -> None:
        """An agent or a node begins, unless it only goes on after a pause."""
        within = self.place
        for path in self._handed:
            self._end(path)
        while within in self._handed:
            within = _parent(within)
        trail, first = self.invocation.trail, f"{within}/{node}"
        path, visit = first, 1
        while path in trail.ended or path in self._at_work:
            visit += 1
            path = f"{first}#{visit}"
        self._at_work[path] = node
        PLACE.set(path)
        if path not in trail.started:
            self.invocation.world.record(NodeStarted(path=path, node=node, input=given))

    def leave(self, node: str) -> None:
        """What was entered here has ended."""
        path = self.place
        if self._at_work.get(path) == node:
            self._end(path)
            PLACE.set(_parent(path))

    def hand_over(self, to: str) -> None:
        """The agent at work lets another take its place."""
        path = self.place
        self._handed[path] = to
        self.invocation.world.record(Decided(path=path, choice=to))

    def leave_all(self) -> None:
        """The invocation is over, and with it everything that was still open."""
        trail, within = self.invocation.trail, f"{self.invocation.root}/"
        for path, begun in reversed(list(trail.started.items())):
            if path.startswith(within) and path not in trail.ended:
                self._at_work[path] = begun.node
                self._end(path)

    def _end(self, path: str) -> None:
        node = self._at_work.pop(path, None)
        if node is not None:
            steps = self.invocation.trail.steps.get(path)
            output = getattr(steps[-1], "text", None) if steps else None
            self.invocation.world.record(NodeEnded(path=path, node=node, output=output))


def _parent(path: str) -> str:
    return path.rpartition("/")[0]
