"""Steps that listen: they are called while the part before them is still speaking.

Pieces are not events. In the ledger a step that listens begins when the part before it has ended, with
the whole output as its input; so an interrupted run continues as if there were no pieces. What the step
has done by then counts if its pieces were exactly that output; else it is called again.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextvars import copy_context
from itertools import chain, zip_longest
from typing import TYPE_CHECKING, Any, Final

from greenroom.agents.cuts import Cutter, at_random, cutter
from greenroom.agents.flow import Fallback, Flow, Parallel, Sequence, Step
from greenroom.agents.forks import Race
from greenroom.agents.graph import Node
from greenroom.agents.guards import Timeout
from greenroom.agents.streams import Cut, gives_pieces
from greenroom.backends.native.steps import call_step
from greenroom.backends.task_group import begin, stop
from greenroom.errors import Refusal
from greenroom.ledger.attachments import text_and_attachments
from greenroom.ledger.plain import Json, is_object, plain
from greenroom.ledger.questions import started
from greenroom.models.model import OnDelta
from greenroom.world.pieces import Pieces, Taken
from greenroom.world.world import Context

if TYPE_CHECKING:
    from greenroom.backends.native.walk import GraphWalk

AS_THEY_COME: Final = Cut()

ToUser = Callable[[str, bool], OnDelta]
"""Opens the listener for what is said to the user at a path; the flag says that it replaces what was said."""


class Listener:
    """One step that takes pieces: called with the first piece, and again if they were not the output."""

    def __init__(
        self,
        walk: "GraphWalk",
        step: Step,
        path: str,
        cut: Cut = AS_THEY_COME,
        feed: "Feed | None" = None,
        outlet: "Outlet | None" = None,
    ) -> None:
        self._walk = walk
        self._step = step
        self._path = path
        self._cut = cut
        self._feed = feed
        self._outlet = outlet
        # Pieces come from inside a model call, for which the fence is open; the step must run outside of it.
        self._home = copy_context()
        self.task: asyncio.Task[Any] | None = None
        self._calls: list[asyncio.Task[Any]] = []
        self._chunks = Pieces[Any]()
        self._said: dict[str, list[str]] = {}
        self._cutters: dict[str, Cutter] = {}
        self._is_stale = False

    def call(self, path: str, given: Json) -> tuple[Context, Awaitable[Any]]:
        """The call in progress; else a new one with the whole input, split into pieces."""
        if self.task is not None and path == self._path:
            return self._context, self.task
        chunks = Pieces[Any]()
        for piece in self._pieces_of(given):
            chunks.add(piece)
        chunks.end()
        context = self._new_context(path, chunks, given)
        return context, call_step(self._step, path, context, self._outlet, self._walk.far)

    def _new_context(self, path: str, chunks: Pieces[Any], given: Json = None) -> Context:
        source = self._feed.source if self._feed is not None else ""
        world, index = self._walk.world, self._walk.index
        if not source:
            return Context(world, path, input=plain(given), chunks=chunks)
        # Whether it sees the state changes of the part before it would depend on timing.
        return Context(world, path, chunks=chunks, begun=index.started[source].seq)

    # While the part before it speaks

    def hear(self, branch: str, text: str) -> Pieces[Any]:
        """Take a piece; returns the queue of pieces that are not consumed yet."""
        if self.task is None:
            self._begin()
        elif self.task.done():
            # A refusal ends the case at once, even while the part before is still speaking.
            _raise_refusal(self.task)
        self._said.setdefault(branch, []).append(text)
        self._add(branch, self._cutter(branch).take(text))
        return self._chunks

    def _begin(self) -> None:
        chunks = self._chunks = Pieces[Any](self._cut.hold)
        context = self._context = self._new_context(self._path, chunks)
        before, is_told = self.task, self._is_stale

        async def call() -> Any:
            if before is not None:
                await _end(before, is_told)
            return await call_step(self._step, self._path, context, self._outlet, self._walk.far)

        self._said, self._cutters, self._is_stale = {}, {}, False
        self.task = begin(call(), self._home.copy())
        self.task.add_done_callback(lambda _: chunks.leave())
        self._calls.append(self.task)

    def close_reply(self) -> None:
        """The reply is complete but not the output: the model calls tools before it answers."""
        if self.task is not None and not self._is_stale:
            self._add_rest()
            self._is_stale = True

    def forget(self, branch: str) -> None:
        """Start over without what was said in a branch, because it was not the output."""
        if self.task is None or not (self._is_stale or self._said.get(branch)):
            return
        others = {name: said for name, said in self._said.items() if name != branch}
        self._begin()
        for name, said in others.items():
            self.hear(name, "".join(said))

    async def drop(self) -> None:
        """End the call in progress, which does not count. One that got a whole reply may finish."""
        task, self.task = self.task, None
        if task is not None:
            await _end(task, self._is_stale)

    async def stop(self) -> None:
        """End every call, whether it counts or not."""
        await stop(self._calls)

    async def finish(self, output: Json) -> None:
        """Pass the rest of the output; if something else was said before, the call does not count."""
        if self.task is None:
            return
        texts = self._texts(output)
        said = {branch: "".join(pieces) for branch, pieces in self._said.items()}
        is_output = all(texts.get(branch, "").startswith(text) for branch, text in said.items())
        if self._is_stale or not is_output:
            await self.drop()
            return
        for branch, text in texts.items():
            if left := text[len(said.get(branch, "")) :]:
                self.hear(branch, left)
        self._add_rest()

    # Cutting

    def _add(self, branch: str, pieces: list[str]) -> None:
        for piece in pieces:
            self._chunks.add((branch, piece) if branch else piece)

    def _add_rest(self) -> None:
        for branch, left in self._cutters.items():
            self._add(branch, left.rest())
        self._chunks.end()

    def _cutter(self, branch: str) -> Cutter:
        if branch not in self._cutters:
            self._cutters[branch] = self._new_cutter(branch)
        return self._cutters[branch]

    def _new_cutter(self, branch: str, is_whole: bool = False) -> Cutter:
        """Splits pieces as they come, anew in each trial; text that is already complete, into words."""
        if self._cut.unit != "token":
            return cutter(self._cut.unit)
        first = started(self._walk.ledger)
        if first is None or first.case is None:
            return cutter("word" if is_whole else "token")
        trial = (first.run_id, first.trial)
        return at_random(self._walk.world.new_id("pieces", *trial, self._path, branch))

    def _pieces_of(self, output: Json) -> Iterator[Any]:
        """A whole output in pieces; pieces of branches alternate."""
        cuts: list[list[Any]] = []
        for branch, text in self._texts(output).items():
            one = self._new_cutter(branch, is_whole=True)
            pieces = [*one.take(text), *one.rest()]
            cuts.append([(branch, piece) for piece in pieces] if branch else [*pieces])
        in_turn = chain.from_iterable(zip_longest(*cuts))
        return (piece for piece in in_turn if piece is not None)

    def _texts(self, output: Json) -> dict[str, str]:
        if self._feed is not None and self._feed.is_fork and is_object(output):
            return {branch: text_and_attachments(value)[0] for branch, value in output.items()}
        return {} if output is None else {"": text_and_attachments(output)[0]}


async def _end(task: "asyncio.Task[Any]", is_told: bool) -> None:
    """End a call that does not count; one that got a whole reply may finish."""
    if is_told:
        await asyncio.wait({task})
    await stop([task])
    _raise_refusal(task)


def _raise_refusal(task: "asyncio.Task[Any]") -> None:
    error = task.exception() if task.done() and not task.cancelled() else None
    if isinstance(error, Refusal):
        raise error


class Feed:
    """Feeds a part of a sequence with pieces, and knows all steps in it that take them."""

    def __init__(
        self,
        walk: "GraphWalk",
        node: Node,
        base: str,
        cut: Cut,
        source: str = "",
        is_fork: bool = False,
        outlet: "Outlet | None" = None,
    ) -> None:
        self.source = source
        """The path of the part that is heard while it speaks; empty if it is heard only when it has ended."""
        self.is_fork = is_fork
        self._listeners = {
            path: Listener(walk, step, path, how, self, to)
            for path, step, how, to in _listening(node, base, cut, outlet)
        }

    def at(self, path: str) -> Listener | None:
        """The step that listens at a path, in whichever attempt."""
        first, _, attempt = path.rpartition("~")
        return self._listeners.get(first if attempt.isdigit() else path)

    def listeners(self) -> Iterator[Listener]:
        """All steps that listen."""
        return iter(self._listeners.values())

    async def finish(self, output: Json) -> None:
        """The part before has ended with this output."""
        for listener in self.listeners():
            await listener.finish(output)

    async def settle(self) -> None:
        """The part before waits for its user: steps that have heard what it said may finish."""
        for listener in self.listeners():
            await listener.drop()

    async def stop(self) -> None:
        """End all calls in progress."""
        for listener in self.listeners():
            await listener.stop()


class Outlet:
    """Where a part sends the pieces of what it says."""

    def __init__(self, feed: Feed, branch: str = "") -> None:
        self._feed = feed
        self._branch = branch

    def passes(self, flow: Flow) -> bool:
        """Whether a part's words may be sent before they are complete."""
        return gives_pieces(flow)

    def of(self, branch: str) -> "Outlet | None":
        """The outlet for a branch of the part that is heard; those further inside have none."""
        if self._branch or not self._feed.is_fork:
            return None
        return Outlet(self._feed, branch)

    def open(self, _path: str, _anew: bool = False, /) -> Callable[[str], Taken]:
        """Begin another reply; from its first piece on, the previous one does not count."""
        is_first = True

        def hear(piece: str) -> Taken:
            nonlocal is_first
            if is_first:
                for listener in self._feed.listeners():
                    listener.forget(self._branch)
                is_first = False
            return Taken(*[one.hear(self._branch, piece) for one in self._feed.listeners()])

        return hear

    def close_reply(self) -> None:
        """The reply is over and was not the output, because the model calls tools."""
        if not self._branch:
            for listener in self._feed.listeners():
                listener.close_reply()


class Door(Outlet):
    """The outlet for words to the user; `inner` is for a step that listens to them too."""

    def __init__(self, to_user: ToUser, inner: Outlet | None = None) -> None:
        self._to_user = to_user
        self._inner = inner

    def passes(self, flow: Flow) -> bool:
        """Whether the user or a step inside hears this part."""
        return gives_pieces(flow, to_user=True)

    def beside(self, inner: Outlet) -> "Door":
        """A door for a part that a step inside listens to as well."""
        return Door(self._to_user, inner)

    def of(self, branch: str) -> Outlet | None:
        """The inner outlet: branches speak at once, and only a step inside can tell them apart."""
        return None if self._inner is None else self._inner.of(branch)

    def open(self, path: str, anew: bool = False, /) -> Callable[[str], Taken]:
        """Begin another reply, which may replace the one before it."""
        inner = None if self._inner is None else self._inner.open(path, anew)
        to_user = self._to_user(path, anew)
        return lambda piece: Taken(to_user(piece), inner and inner(piece))

    def close_reply(self) -> None:
        """The model calls tools before it answers."""
        if self._inner is not None:
            self._inner.close_reply()


def branch_names(node: Node) -> dict[str, str]:
    """The names of a fork's branches in its output, by their keys."""
    names = [child.segment for child in node.children.values()]
    return {
        key: child.segment if names.count(child.segment) == 1 else f"{child.segment}.{key}"
        for key, child in node.children.items()
    }


def _listening(
    node: Node, base: str, cut: Cut, outlet: Outlet | None
) -> Iterator[tuple[str, Step, Cut, Outlet | None]]:
    """The steps in a part that take its pieces: path, step, how pieces are split, and the step's own outlet."""
    path, flow, children = f"{base}/{node.segment}", node.flow, node.children
    match flow:
        case Step() if "chunks" in flow.wants:
            yield path, flow, cut, outlet
        case Parallel() | Race():
            names = branch_names(node)
            for key, child in children.items():
                to = outlet.of(names[key]) if outlet and isinstance(flow, Parallel) else None
                yield from _listening(child, f"{path}.{key}", cut, to)
        case Sequence():
            marks: Mapping[str, Any] = flow.cuts()
            to = outlet if len(children) == 1 else None
            yield from _listening(children["0"], f"{path}.0", marks.get("0", cut), to)
        case Fallback():
            yield from _listening(children["0"], f"{path}.0", cut, outlet)
        case Timeout():
            yield from _listening(children["body"], path, cut, outlet)
        case _:
            return
