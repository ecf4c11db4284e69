"""How model and tool calls are recorded: the one place for live, mocked and replayed ones."""

import inspect
from collections.abc import Awaitable, Callable, Iterable
from contextlib import AbstractContextManager, nullcontext
from time import perf_counter
from typing import TYPE_CHECKING, Any, TypedDict

from msgspec.structs import replace

from greenroom import errors
from greenroom.errors import BadValue, FailedBefore, GreenroomError, Refusal
from greenroom.ledger.changes import Change, Changes, check_appends, conflicts, unwrapped
from greenroom.ledger.events import (
    InvocationEnded,
    ModelCalled,
    ModelFailed,
    ModelReplied,
    RunEnded,
    Source,
    StateConflicted,
    ToolCalled,
    ToolFailed,
    ToolReturned,
)
from greenroom.ledger.messages import ToolCall
from greenroom.ledger.origin import words_of
from greenroom.ledger.paths import branch_of
from greenroom.ledger.plain import JSON_TYPES, Json
from greenroom.models.model import ModelBody, ModelReply, ModelRequest, OnDelta
from greenroom.models.replies import checked_reply
from greenroom.world.call_context import asking, check_direct_call, decided, placed
from greenroom.world.captures import captured
from greenroom.world.choices import chosen
from greenroom.world.exits import tried_to_exit
from greenroom.world.pacer import ask_in_turn
from greenroom.world.pieces import Delivery
from greenroom.world.resources import Resources
from greenroom.world.updates import settle
from greenroom.world.world import (
    Context,
    Returned,
    SealedBody,
    ToolBody,
    ToolRequest,
    World,
    opened,
)

if TYPE_CHECKING:
    from greenroom.world.middleware.run import RunMiddleware


class ToolError(Exception):
    """A tool's declared failure: the agent sees the text, nothing else is blamed."""


class AnswerLost(ToolError):
    """A tool did what it was asked to, but its answer never came: these changes of the state remain."""

    def __init__(self, tool: str, changes: Changes) -> None:
        super().__init__(f"{tool}: the connection was lost before an answer came")
        self.changes = changes


class RecordedFailure(Exception):
    """A node's or model's failure found in the ledger, raised again under its original name."""

    def __init__(self, error: str, error_type: str) -> None:
        super().__init__(error)
        self.error_type = error_type


class failing_as_recorded:  # noqa: N801 - read as a verb: with failing_as_recorded()
    """A failure inside is the same error as when the run is resumed after it."""

    __slots__ = ()

    def __enter__(self) -> None:
        pass

    def __exit__(self, _kind: object, error: BaseException | None, _at: object) -> None:
        if isinstance(error, Exception) and not isinstance(error, GreenroomError):
            raise RecordedFailure(**describe_error(error)) from error


def raised_before(error: str, error_type: str, ours: str | None = None) -> Exception:
    """A failure found in the ledger, as it was raised: an error of Greenroom stays one, and is not retried."""
    # An author's own errors may have the names of ours, or inherit from them.
    name = error_type if ours is None else ours
    kind: object = getattr(errors, name, None)
    if not isinstance(kind, type) or not issubclass(kind, GreenroomError):
        return RecordedFailure(error, error_type)
    # A refusal stays one too: it ends the case, and no agent gets to see it.
    return (
        kind(error)
        if issubclass(kind, Refusal)
        else FailedBefore(error, error_type, kind.phase, name)
    )


def error_of(end: InvocationEnded | RunEnded) -> FailedBefore:
    """The error that ended a recorded turn or trial; without a phase, nobody is blamed."""
    return FailedBefore(end.error, end.error_type, end.phase or "system")


def ours(error: BaseException) -> str:
    """The name of the Greenroom error that this is or inherits from; "" if none."""
    if isinstance(error, FailedBefore):
        return error.ours
    if not isinstance(error, GreenroomError):
        return ""
    return next(c.__name__ for c in type(error).__mro__ if c.__module__ == errors.__name__)


async def answer_model(
    world: World,
    request: ModelRequest,
    body: ModelBody,
    on_delta: OnDelta | None = None,
    source: Source = "live",
    opening: Callable[[], AbstractContextManager[object]] = nullcontext,
) -> ModelReply:
    """Ask `body` inside `opening`, and record the question and its answer."""
    if source == "live":
        request, body = chosen(world, request, body)
    hooks: RunMiddleware | None = getattr(world, "middleware", None)
    if hooks is not None:
        return await hooks.answer_model(request, body, on_delta, source, opening)
    with opening(), asking():
        record_question(world, request)
        pieces = None if on_delta is None else Delivery(on_delta)
        try:
            reply, begun = await ask_in_turn(world, request, body, pieces, source)
            reply = checked_reply(reply, request.model)
            if pieces is not None:
                await pieces.finish()
        except Exception as error:
            record_model_failure(world, request, error)
            raise
        seconds = perf_counter() - begun
        return record_reply(
            world, request, reply, source, seconds, pieces and pieces.first_after(begun)
        )


def record_question(world: World, request: ModelRequest) -> None:
    """Record that a model is asked."""
    world.record(
        ModelCalled(
            path=request.path,
            node=request.node,
            agent=request.agent,
            n=request.n,
            model=request.model,
            messages=len(request.messages),
            tools=tuple([tool.name for tool in request.tools]),
            digest=request.digest,
            question=captured(world, request) if getattr(world, "captures", False) else None,
        )
    )


def record_model_failure(world: World, request: ModelRequest, error: Exception) -> None:
    """Record that a model could not be asked, or did not answer."""
    world.record(
        ModelFailed(
            path=request.path,
            node=request.node,
            agent=request.agent,
            n=request.n,
            model=request.model,
            ours=ours(error),
            **describe_error(error),
        )
    )


def record_reply(
    world: World,
    request: ModelRequest,
    reply: ModelReply,
    source: Source,
    seconds: float,
    first: float | None = None,
    in_place_of: Source | None = None,
) -> ModelReply:
    """Record a reply, with an id on every call; returns the reply as recorded."""
    if reply.calls:
        reply = _with_call_ids(world, request, reply)
    event = world.record(
        ModelReplied(
            path=request.path,
            node=request.node,
            agent=request.agent,
            n=request.n,
            model=reply.model or request.model,
            text=reply.text,
            calls=reply.calls,
            usage=reply.usage,
            cost=reply.cost,
            prices=reply.prices,
            seconds=seconds,
            first=first if source == "live" else None,
            source=source,
            attachments=reply.attachments,
            partial=reply.partial,
            in_place_of=in_place_of,
        )
    )
    if event.text != reply.text or event.calls != reply.calls:
        return replace(reply, text=event.text, calls=event.calls)
    return reply


def given_again(end: ModelReplied, prices: str | None = None) -> ModelReply:
    """A recorded reply as the model gave it; its cost may come from elsewhere."""
    return ModelReply(
        end.text,
        end.calls,
        end.usage,
        end.cost,
        end.prices if prices is None else prices,
        end.model,
        end.attachments,
        end.partial,
    )


def _with_call_ids(world: World, request: ModelRequest, reply: ModelReply) -> ModelReply:
    """The reply with an id on every call.

    A provider's own id is kept unless it was used before: some count from zero in every reply, and two
    calls with one id would be mistaken for one.
    """
    index = world.ledger.indexes[world.voice]
    calls: dict[str, ToolCall] = {}
    for position, wanted in enumerate(reply.calls):
        own = wanted.id
        if not own or index.has_wanted(own) or own in index.called or own in calls:
            own = world.new_id(request.path, request.n, position)
        calls[own] = ToolCall(wanted.tool, wanted.args, own)
    return replace(reply, calls=tuple(calls.values()))


def begin_call(world: World, request: ToolRequest) -> None:
    """Record that a tool is called; a call that is repeated after an interruption is recorded once."""
    if request.again:
        return
    ledger, index = world.ledger, world.ledger.indexes[world.voice]
    before = index.called.get(request.id)
    if before is not None:
        # A call that the user must answer is repeated until they have.
        is_open = request.yields and before.tool == request.tool and index.end_of(before) is None
        # Another call may have the same id.
        if is_open or index.is_same_call(before, request.tool, request.args, ledger.loaded_count):
            return
    world.record(
        ToolCalled(
            path=request.path,
            call_id=request.id,
            tool=request.tool,
            args=request.args,
            n=request.n,
            ends=request.ends,
        )
    )


def answer_constant(world: World, request: ToolRequest, value: Json, source: Source) -> Returned:
    """Record a call and the constant value that it returns."""
    begin_call(world, request)
    event = world.record(
        ToolReturned(
            path=request.path, call_id=request.id, tool=request.tool, value=value, source=source
        )
    )
    return Returned(event.value, "", source)


async def answer_tool(
    world: World,
    request: ToolRequest,
    body: ToolBody,
    source: Source,
    settle: Callable[[ToolRequest], Awaitable[None]] | None = None,
) -> Returned:
    """Run `body` and record the call and its end, with the state it changed.

    `settle` is awaited in between: what it raises keeps the body from being run.
    """
    if not (getattr(world, "is_gate", False) or request.delegates) and isinstance(body, SealedBody):
        # In a case, a World made there would bypass the gate: to the case, this is a call by its own code.
        check_direct_call(request.origin, request.tool)
    begin_call(world, request)
    hooks: RunMiddleware | None = getattr(world, "middleware", None)
    index = world.ledger.indexes[world.voice]
    called = index.called[request.id]
    # A call sees the state as it was when it began; one that waited for an approval, as it is now.
    seen_at = None if index.yields and index.is_waiting(called) else called.seq
    lent: Resources | None = getattr(world, "resources", None) if source == "live" else None
    context = Context(
        world, request.path, call_id=request.id, tool=request.tool, begun=seen_at, resources=lent
    )
    if settle is not None:
        await settle(request)
    begun = perf_counter()
    try:
        is_body = source == "live" and not request.delegates
        with (
            placed(f"{request.path}/call:{request.id}"),
            decided(request.tool if is_body else None),
        ):
            value = opened(body, world)(context)
            if type(value) not in JSON_TYPES and inspect.isawaitable(value):
                value = await value
        changes = context.changes()  # checked here, where the call can still fail
    except GreenroomError:
        raise
    except SystemExit as error:
        raise tried_to_exit(error) from error
    except Exception as error:  # noqa: BLE001 - the agent should see a tool's failure
        seconds = perf_counter() - begun
        instead = None if hooks is None else await hooks.on_tool_error(request, error)
        if instead is None:
            return fail_call(world, request, error, source, seconds)
        value, changes = None, error.changes if isinstance(error, AnswerLost) else ()
    else:
        seconds = perf_counter() - begun
        instead = None if hooks is None else await hooks.after_tool(request, value)
    replaced: Source | None = None
    if instead is not None:
        replaced, (value, source) = source, instead
    end = ToolReturned(
        path=called.path,
        call_id=called.call_id,
        tool=called.tool,
        source=source,
        changes=changes,
        seconds=seconds,
        in_place_of=replaced,
    )
    return _returned(world, called, end, value, context)


def _returned(
    world: World, called: ToolCalled, end: ToolReturned, value: Any, context: Context
) -> Returned:
    """Record the end of a call, with its value and the changes that the value asks for."""
    value, asks = unwrapped(value)
    # The changes that the agent's side asks for are to its own state.
    own, asks = (asks, ()) if world.voice == "agent" else ((), asks)
    changes = (*end.changes, *own)
    if changes:
        held = world.ledger.fold(world.voice, branch_of(called.path))
        check_appends(held, changes, f"tool {called.tool!r}")
    settled = settle(world, called, context, changes) if changes else ()
    event = replace(end, value=value, changes=changes, settled=settled, asks=asks)
    try:
        return Returned(world.record(event).value, "", end.source)
    except BadValue as error:
        raise BadValue(f"the answer of tool {called.tool!r} is not JSON: {error}") from error


def fail_call(
    world: World, request: ToolRequest, error: Exception, source: Source, seconds: float = 0.0
) -> Returned:
    """Record that a call failed in a way that the agent sees."""
    text = str(error) if isinstance(error, ToolError) else f"{type(error).__name__}: {error}"
    event = world.record(
        ToolFailed(
            path=request.path,
            call_id=request.id,
            tool=request.tool,
            error=text,
            error_type=type(error).__name__,
            source=source,
            seconds=seconds,
            changes=error.changes if isinstance(error, AnswerLost) else (),
        )
    )
    return Returned(None, event.error, source)


def record_conflicts(world: World, path: str, writers: Iterable[Iterable[Change]]) -> None:
    """Record where several writers disagree about the state; once, however often asked."""
    index = world.ledger.index_of(world.voice)
    for found in conflicts(writers):
        key = ".".join(found.path)
        if (path, found.scope, key) not in index.conflicted:
            world.record(
                StateConflicted(path=path, scope=found.scope, key=key, values=list(found.values))
            )


def describe_error(error: BaseException) -> "ErrorFields":
    """An error's text and type as events carry them."""
    found = isinstance(error, RecordedFailure | FailedBefore)
    name = error.error_type if found else type(error).__name__
    return {"error": words_of(error) or name, "error_type": name}


class ErrorFields(TypedDict):
    """The fields of events that describe an error."""

    error: str
    error_type: str
