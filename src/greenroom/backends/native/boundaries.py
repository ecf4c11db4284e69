"""A part in its own process: the walk continues here, and the author's functions are called there.

So tool gate, ledger, budget and resumption work as for any other part. A function in the other process gets
its input and the state as JSON, and its output, state changes and notes come back as JSON.
"""

from collections.abc import AsyncIterable, AsyncIterator, Callable
from contextlib import nullcontext
from inspect import isawaitable
from typing import TYPE_CHECKING, Any, NoReturn

from msgspec import Struct, convert, structs, to_builtins

from greenroom.agents.boundaries import Apart, CodePlace, code_place
from greenroom.agents.graph import Node
from greenroom.agents.tools import Tool
from greenroom.backends.native.children import Message, Start, call_in_child, make_ready
from greenroom.backends.native.walk import GraphWalk, Paused, Walked
from greenroom.errors import BadAgent, GreenroomError, Refusal, ToolRefused
from greenroom.ledger.changes import Change, WithStateChange
from greenroom.ledger.events import Noted
from greenroom.ledger.identity import code_identity
from greenroom.ledger.plain import Json, plain
from greenroom.models.model import OnDelta, send_piece
from greenroom.world.call_context import tool_host
from greenroom.world.records import describe_error, ours, raised_before
from greenroom.world.threads import in_thread
from greenroom.world.world import Context, World

if TYPE_CHECKING:
    from greenroom.backends.native.listeners import Outlet

Code = Callable[..., Any]


async def run_apart(walk: GraphWalk, node: Node, path: str, given: Json) -> Walked:
    """Run the body with its functions called in another process."""
    flow = node.flow
    assert isinstance(flow, Apart)
    far = FarCode(flow.command, walk.world) if flow.is_elsewhere else None
    if far is not None and _has_code(node):
        # Started before the body begins, so that the start does not count as the body's time.
        await make_ready(flow.command, far.start)
    walked = await structs.replace(walk, far=far).walk(node.children["body"], path, given)
    return walked if isinstance(walked, Paused) else walk.end(node, path, walked.output)


def _has_code(node: Node) -> bool:
    return bool(node.flow.code()) or any(map(_has_code, node.children.values()))


class FarCode(Struct, frozen=True, eq=False):
    """Calls the functions of a part that runs in another process."""

    command: tuple[str, ...]
    world: World

    async def call(
        self,
        code: Code,
        context: Context,
        path: str,
        *,
        wants: tuple[str, ...] | None = None,
        name: str = "",
        outlet: "Outlet | None" = None,
    ) -> Any:
        """The result of a function with these named parameters; its state changes are applied to the context.

        Without `wants` the function returns changes of the state.
        """
        call = _Call(self, context, path, outlet)
        message = {**self._message(code, context, path), "wants": wants, "name": name}
        done = await call_in_child(self.command, message, call.answer, self.start)
        context.adopt(convert(done["changes"], tuple[Change, ...]))
        call.check(done)
        if wants is None:
            return convert(done["output"], tuple[Change, ...])
        asks = convert(done["asks"], tuple[Change, ...])
        return WithStateChange(done["output"], asks) if asks else done["output"]

    @property
    def start(self) -> Start:
        """Returns the context in which the process is started."""
        return getattr(self.world, "starting_processes", nullcontext)

    def _message(self, code: Code, context: Context, path: str) -> Message:
        ledger, voice = self.world.ledger, self.world.voice
        noted = [e for e in ledger.index_of(voice).noted if e.path == path]
        return {
            "place": to_builtins(_place(code)),
            "code": code_identity(code),
            "path": path,
            "voice": voice,
            "run_id": context.run_id,
            "seed": context.seed,
            "input": context.input,
            "output": context.output,
            "state": context.held(),
            "notes": [[e.name, e.data] for e in noted],
        }


def _place(code: Code) -> CodePlace:
    try:
        return code_place(code)
    except LookupError as error:
        raise BadAgent(
            f"code in a separate process is found by its module and name, but {error}. Define it, or "
            f"the flow that it is part of, at the top level of a module."
        ) from None


class _Call:
    """One call, as seen by the calling process."""

    def __init__(self, far: FarCode, context: Context, path: str, outlet: "Outlet | None") -> None:
        self._world = far.world
        self._context = context
        self._path = path
        self._outlet = outlet
        self._on_delta: OnDelta | None = None
        self._broke: GreenroomError | None = None

    async def answer(self, asked: Message) -> Message:
        """The answer to a request of the other process; an error on this side ends the call in any case."""
        try:
            return {"value": await self._value(asked)}
        except GreenroomError as error:
            self._broke = self._broke or error
            return {**describe_error(error), "ours": ours(error)}
        except Exception as error:  # noqa: BLE001 - a tool's failure is the caller's to see
            return {**describe_error(error), "ours": ""}

    async def _value(self, asked: Message) -> Json:
        match asked:
            case {"now": True}:
                return self._world.now()
            case {"note": str(name), "data": data}:
                self._world.record(Noted(path=self._path, name=name, data=data))
                return None
            case {"piece": str(text)}:
                if self._on_delta is None and self._outlet is not None:
                    self._on_delta = self._outlet.open(self._path, True)
                return await send_piece(self._on_delta, text)
            case {"next": True}:
                return [plain(piece) async for piece in _first(self._context.chunks)]
            case {"tool": str(name)}:
                return await self._call_tool(name, asked["args"], asked["place"])
            case _:
                raise BadAgent(f"the separate process asked for {str(asked)[:80]!r}.")

    async def _call_tool(self, name: str, args: dict[str, Json], place: Message) -> Json:
        """The answer to a tool that the function itself calls: a mock's, or that of its body in this process."""
        try:
            found: object = convert(place, CodePlace).find()
        except (ImportError, LookupError, AttributeError) as error:
            raise ToolRefused(
                f"code in a separate process called the tool {name!r}, which this process does not find "
                f"({error}), so it was not run."
            ) from error
        if not isinstance(found, Tool):
            raise ToolRefused(
                f"code in a separate process called {name!r}, which is not a tool; it was not run."
            )
        host = tool_host(found, found.name)
        if host is not None:
            return plain(await found.visit(host, args))
        value = await in_thread(found, **found.checked(args))
        return plain(await value if isawaitable(value) else value)

    def check(self, done: Message) -> None:
        """Raise the reason if the call has no output."""
        if self._broke is not None:
            raise self._broke
        if refused := done.get("refused"):
            self._refuse(raised_before(refused["error"], refused["error_type"], refused["ours"]))
        if error := done.get("error"):
            raise raised_before(error["error"], error["error_type"], error["ours"])

    def _refuse(self, error: Exception) -> NoReturn:
        """Make sure that a refusal ends the case here, even if the other side swallows it."""
        assert isinstance(error, Refusal)
        refuse: Any = getattr(self._world, "refusals", None)
        raise refuse.set(error) if refuse is not None else error


async def _first(chunks: AsyncIterable[Any]) -> AsyncIterator[Any]:
    """The next piece, if there is another one."""
    async for piece in chunks:
        yield piece
        return
