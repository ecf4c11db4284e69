"""How a mock answers a call."""

import asyncio
import inspect
from collections.abc import Callable, Collection
from copy import deepcopy
from typing import Any

from greenroom.cases.mocks import NOTHING, ByArgs, Fault, InTurn, Live, Simulated
from greenroom.errors import GreenroomError, MockBroke
from greenroom.ledger.changes import unwrapped
from greenroom.ledger.origin import summarize_error, words_of
from greenroom.ledger.plain import JSON_TYPES
from greenroom.simulation.tool_identity import is_origin
from greenroom.world.records import AnswerLost, ToolError
from greenroom.world.world import CallPaused, Context, ToolRequest

_CONTEXT_NAMES = ("ctx", "context")


def mocked(mock: Any, request: ToolRequest, context: Context) -> object:
    """The mock's answer to this call, or something to await for it."""
    if type(mock) in JSON_TYPES:
        return mock
    if is_origin(mock, request):
        # The gate handles a bare real tool itself; inside another mock nothing would keep it from acting twice.
        raise MockBroke(
            f"the mock of tool {request.tool!r} has the real tool inside it, so it was not run. Pass a real tool "
            f"by itself: mocks={{{request.tool!r}: {request.tool}}}."
        )
    match mock:
        case Fault():
            return _fail(mock, request, context)
        case InTurn():
            if request.n < len(mock.answers):
                return mocked(mock.answers[request.n], request, context)
            raise MockBroke(
                f"the mock of tool {request.tool!r} has {len(mock.answers)} answers, but this is call "
                f"number {request.n + 1}, with {dict(request.args)!r}. Add an answer to in_turn(...)."
            )
        case ByArgs():
            try:
                chosen = mock.pick(request.args)
            except KeyError:
                raise MockBroke(
                    f"the mock of tool {request.tool!r} has no answer for {dict(request.args)!r}. "
                    f"Add a pair for these arguments to by_args(...), or otherwise=."
                ) from None
            return mocked(chosen, request, context)
        case Simulated():
            world: Any = context._world  # pyright: ignore[reportPrivateUsage]
            return world.simulate(mock, request)
        case _ if hasattr(mock, "execute"):
            return _run(
                lambda: mock.execute(deepcopy(dict(request.args)), context), request, context
            )
        case _ if callable(mock):
            return _run(lambda: _called(mock, request, context), request, context)
        case _:
            return mock


def is_simulated(mock: object, request: ToolRequest) -> bool:
    """Whether a model answers this call."""
    match mock:
        case Simulated():
            return True
        case InTurn(answers=answers) if request.n < len(answers):
            return is_simulated(answers[request.n], request)
        case ByArgs():
            try:
                return is_simulated(mock.pick(request.args), request)
            except KeyError:
                return False
        case Fault():
            return is_simulated(mock.lost, request)
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
        return _fail(error, request, context)
    if isinstance(error, GreenroomError | ToolError):
        raise error
    if isinstance(error, request.pauses):
        raise CallPaused(error) from None
    raise MockBroke(
        f"the mock of tool {request.tool!r} raised {summarize_error(error)} for "
        f"{dict(request.args)!r}. Correct the mock; if the tool should fail, use fault({words_of(error)!r})."
    ) from error


def _fail(fault: Fault, request: ToolRequest, context: Context) -> Any:
    if fault.lost is not NOTHING:
        return _lose(mocked(fault.lost, request, context), request, context)
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
