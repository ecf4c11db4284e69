"""How a mock answers a call."""

import asyncio
import inspect
from collections.abc import Callable, Collection, Mapping, Sequence
from copy import deepcopy
from math import inf
from typing import Any

from msgspec.structs import replace

from greenroom.cases.mocks import NOTHING, ByArgs, Fault, InTurn, Live, Simulated, has_execute
from greenroom.errors import GreenroomError, MockBroke
from greenroom.ledger.changes import unwrapped
from greenroom.ledger.origin import summarize_error, words_of
from greenroom.ledger.plain import JSON_TYPES
from greenroom.simulation.tool_identity import is_origin
from greenroom.world.records import AnswerLost, ToolError
from greenroom.world.world import CallPaused, Context, ToolRequest, World

_CONTEXT_NAMES = ("ctx", "context")


Earlier = Sequence[Mapping[str, Any]]
"""The arguments of the calls that reached a mock before this one."""


def mocked(
    mock: Any, request: ToolRequest, context: Context, earlier: Earlier | None = None
) -> object:
    """The mock's answer to this call, or something to await for it."""
    if type(mock) in JSON_TYPES:
        return mock
    if is_origin(mock, request):
        # The gate handles a bare real tool itself; inside another mock nothing would keep it from acting twice.
        raise MockBroke(
            f"the mock of tool {request.tool!r} has the real tool inside it, so it was not run. Pass a real tool "
            f"by itself: mocks={{{request.tool!r}: {request.tool}}}."
        )
    world: Any = context._world  # pyright: ignore[reportPrivateUsage]
    match mock:
        case Fault():
            return _fail(mock, request, context, earlier)
        case InTurn() | ByArgs():
            chosen, request, earlier = _chosen(mock, request, world, earlier)
            return mocked(chosen, request, context, earlier)
        case Simulated():
            return world.simulate(mock, request)
        case _ if has_execute(mock):
            return _run(
                lambda: mock.execute(deepcopy(dict(request.args)), context), request, context
            )
        case _ if callable(mock):
            return _run(lambda: _called(mock, request, context), request, context)
        case _:
            return mock


def _chosen(
    mock: InTurn | ByArgs, request: ToolRequest, world: World, earlier: Earlier | None
) -> tuple[Any, ToolRequest, Earlier | None]:
    """The part of a mock that answers this call, with the call and the earlier ones as that part sees them.

    A part counts only the calls that reach it.
    """
    if isinstance(mock, InTurn):
        if request.n < len(mock.answers):
            return mock.answers[request.n], replace(request, n=0), ()
        raise MockBroke(
            f"the mock of tool {request.tool!r} has {len(mock.answers)} answers, but this is call "
            f"number {request.n + 1}, with {dict(request.args)!r}. Add an answer to in_turn(...)."
        )
    place = _place_in(mock, request, request.args)
    chosen = mock.answer_at(place)
    if chosen is NOTHING:
        raise MockBroke(
            f"the mock of tool {request.tool!r} has no answer for {dict(request.args)!r}. "
            f"Add a pair for these arguments to by_args(...), or otherwise=."
        )
    if not isinstance(chosen, InTurn | ByArgs | Fault):
        return chosen, request, earlier
    if earlier is None:
        index = world.ledger.index_of(world.voice)
        known = index.called.get(request.id)
        begun = inf
        if known is not None and known.tool == request.tool and index.end_of(known) is None:
            begun = known.seq
        earlier = [call.args for call in index.calls_before(request.tool, request.path, begun)]
    earlier = [args for args in earlier if _place_in(mock, request, args) == place]
    return chosen, replace(request, n=len(earlier)), earlier


def _place_in(mock: ByArgs, request: ToolRequest, args: Mapping[str, Any]) -> int:
    """Which pair is for these arguments; a function among them may break."""
    try:
        return mock.place_of(args)
    except GreenroomError:
        raise
    except Exception as error:
        raise MockBroke(
            f"a function in by_args(...), the mock of tool {request.tool!r}, raised "
            f"{summarize_error(error)} for {dict(args)!r}. Let it return whether the value matches."
        ) from error


def is_simulated(
    mock: object, request: ToolRequest, world: World, earlier: Earlier | None = None
) -> bool:
    """Whether a model answers this call."""
    match mock:
        case Simulated():
            return True
        case InTurn() | ByArgs():
            try:
                chosen, request, earlier = _chosen(mock, request, world, earlier)
                return is_simulated(chosen, request, world, earlier)
            except MockBroke:
                return False
        case Fault():
            return is_simulated(mock.lost, request, world, earlier)
        case _:
            return False


def _called(mock: Callable[..., object], request: ToolRequest, context: Context) -> object:
    args: dict[str, Any] = deepcopy(dict(request.args))
    try:
        parameters: Collection[str] = inspect.signature(mock).parameters
    except (TypeError, ValueError):
        parameters = ()
    for name in _CONTEXT_NAMES:
        if name in parameters:
            args[name] = context
    return mock(**args)


def _run(work: Callable[[], object], request: ToolRequest, context: Context) -> Any:
    try:
        value = work()
    except Exception as error:  # noqa: BLE001 - sorted into faults, ours and theirs
        return _sorted(error, request, context)
    if inspect.isawaitable(value):
        return _awaited(value, request, context)
    return mocked(value, request, context) if isinstance(value, Fault | Live) else value


async def _awaited(value: Any, request: ToolRequest, context: Context) -> object:
    try:
        value = await value
    except Exception as error:  # noqa: BLE001 - sorted into faults, ours and theirs
        value = _sorted(error, request, context)
    if isinstance(value, Fault | Live):
        value = mocked(value, request, context)
    return await value if inspect.isawaitable(value) else value


def _sorted(error: Exception, request: ToolRequest, context: Context) -> object:
    if isinstance(error, Fault):
        return _fail(error, request, context, None)
    if isinstance(error, GreenroomError | ToolError):
        raise error
    if isinstance(error, request.pauses):
        raise CallPaused(error) from None
    raise MockBroke(
        f"the mock of tool {request.tool!r} raised {summarize_error(error)} for "
        f"{dict(request.args)!r}. Correct the mock; if the tool should fail, use fault({words_of(error)!r})."
    ) from error


def _fail(fault: Fault, request: ToolRequest, context: Context, earlier: Earlier | None) -> Any:
    if fault.lost is not NOTHING:
        return _lose(mocked(fault.lost, request, context, earlier), request, context)
    if fault.injected is not None:
        return _planted(fault.injected, fault.value)
    if fault.slow is not None:
        return asyncio.sleep(fault.slow, fault.value)
    if fault.malformed is not None:
        return fault.malformed
    if fault.timeout is not None:
        raise ToolError(f"{request.tool} timed out after {fault.timeout:g} s")
    raise ToolError(fault.error)


async def _lose(value: object, request: ToolRequest, context: Context) -> object:
    """Run the mock and keep its changes to the state, but lose its answer."""
    _, asks = unwrapped(await value if inspect.isawaitable(value) else value)
    raise AnswerLost(request.tool, (*context.changes(), *asks))


def _planted(text: str, value: Any) -> object:
    """An answer into which an attacker has put text for the agent."""
    match value:
        case None:
            return text
        case str():
            return f"{value}\n{text}"
        case [*items]:
            return [*items, text]
        case {**fields}:
            return {**fields, "note": f"{fields['note']}\n{text}" if "note" in fields else text}
        case _:
            return {"value": value, "note": text}
