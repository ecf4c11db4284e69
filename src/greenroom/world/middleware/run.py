"""The middleware of one run: how hooks are called, and how their answers are recorded."""

import inspect
from collections.abc import AsyncGenerator, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager
from time import perf_counter
from typing import Any, Literal, TypeVar

from msgspec.structs import replace

from greenroom.errors import (
    GarbledReply,
    GreenroomError,
    HookRefused,
    MiddlewareFailed,
    ModelBroke,
)
from greenroom.ledger.changes import WithStateChange, unwrapped
from greenroom.ledger.events import Event, Noted, Source
from greenroom.ledger.ledger import Ledger
from greenroom.ledger.messages import Usage, is_blank
from greenroom.ledger.plain import Json, plain, same
from greenroom.models.model import ModelBody, ModelReply, ModelRequest, OnDelta, send_piece
from greenroom.models.replies import checked_reply
from greenroom.world.middleware.attempts import Attempts, Opening
from greenroom.world.middleware.current import Run, run_var
from greenroom.world.middleware.names import failed, name_of
from greenroom.world.middleware.stack import MiddlewareStack
from greenroom.world.pacer import ask_in_turn
from greenroom.world.pieces import Delivery
from greenroom.world.records import (
    ToolError,
    answer_constant,
    begin_call,
    fail_call,
    record_model_failure,
    record_question,
    record_reply,
)
from greenroom.world.world import AgentTurn, Pending, Returned, ToolRequest, World

ANSWERED = "answered_by_middleware"
"""The note that middleware spoke for the user, or answered for an agent."""

Listener = tuple[Any, Callable[..., Any]]
T = TypeVar("T")


class RunMiddleware:
    """The middleware of one run, and what is known about it there."""

    def __init__(
        self, stack: MiddlewareStack, world: World, backend: str, judged: Ledger | None = None
    ) -> None:
        self.stack = stack
        self._world = world
        self._run = Run(world, backend, judged)
        self.backend = backend
        self.broke: GreenroomError | None = None
        """What an `on_event` hook raised."""

    def listeners(self, hook: str) -> Sequence[Listener]:
        """The members that define this hook, outermost first."""
        return self.stack.listeners.get(hook, ())

    # Calling hooks

    async def call(
        self,
        member: object,
        hook: str,
        method: Callable[..., object],
        *given: object,
        own: Sequence[Exception] = (),
    ) -> Any:
        """A hook's answer; what it raises becomes MiddlewareFailed, unless it is one of `own`."""
        token = run_var().set(self._run)
        try:
            answer = method(*given)
            return await answer if inspect.isawaitable(answer) else answer
        except GreenroomError:
            raise
        except Exception as error:
            if any(error is one for one in own):
                raise
            raise failed(member, hook, error) from error
        finally:
            run_var().reset(token)

    async def first(self, hook: str, *given: object) -> tuple[Any, Any] | None:
        """The first answer that is not None, and the member that gave it."""
        self.check()
        for member, method in self.listeners(hook):
            answer = await self.call(member, hook, method, *given)
            if answer is not None:
                return member, answer
        return None

    def _refuse_inside(self, request: ModelRequest | ToolRequest) -> None:
        """Refuse a model or tool call made inside a hook: the hook would be called for it in turn, without end."""
        if run_var().get() is self._run:
            is_tool = isinstance(request, ToolRequest)
            what = (
                f"called the tool {request.tool!r}"
                if is_tool
                else f"asked the model {request.model!r}"
            )
            refused = HookRefused(
                f"middleware {what} itself in a hook, which was refused. Give an answer in its place, "
                f"or None to continue."
            )
            self.broke = self.broke or refused
            raise refused

    def check(self) -> None:
        """Raise what an `on_event` hook raised."""
        if self.broke is not None:
            raise self.broke

    def is_reason(self, text: str) -> bool:
        """Whether this text says why the run ends: a hook failed, or something was refused."""
        refused: GreenroomError | None = getattr(self._world, "refused", None)
        return text in (str(self.broke), str(refused))

    def on_event(self, event: Event) -> None:
        """Call every `on_event` hook; what one raises ends the run at its next step."""
        for member, method in self.listeners("on_event"):
            token = run_var().set(self._run)
            try:
                _finish(method(event))
            except Exception as error:  # noqa: BLE001 - the author's code
                is_ours = isinstance(error, GreenroomError)
                broke = error if is_ours else failed(member, "on_event", error)
                self.broke = self.broke or broke
            finally:
                run_var().reset(token)

    @asynccontextmanager
    async def around(
        self, hook: Literal["around_run", "around_turn", "around_call"], *given: object
    ) -> AsyncGenerator[None]:
        """Enter every member's context manager, the outermost first."""
        held: list[tuple[object, object]] = []
        error: BaseException | None = None
        try:
            for member, method in self.listeners(hook):
                manager = await self.call(member, hook, method, *given)
                if manager is not None:
                    await self._enter(member, hook, manager)
                    held.append((member, manager))
            yield
        except BaseException as raised:
            error = raised
            raise
        finally:
            for member, manager in reversed(held):
                await self._leave(member, hook, manager, error)

    async def _enter(self, member: object, hook: str, manager: object) -> None:
        enter: Any = getattr(manager, "__aenter__", None) or getattr(manager, "__enter__", None)
        if enter is None or isinstance(manager, type):
            raise MiddlewareFailed(
                f"middleware {name_of(member)!r} gave {manager!r} in {hook}, which is not a context "
                f"manager. Return one, or put @contextmanager above the hook."
            )
        await self.call(member, hook, enter)

    async def _leave(
        self, member: Any, hook: str, manager: Any, error: BaseException | None
    ) -> None:
        # A context manager cannot swallow an error that was raised inside it.
        leave: Any = getattr(manager, "__aexit__", None) or manager.__exit__
        raised = (None, None, None) if error is None else (type(error), error, error.__traceback__)
        own = [error] if isinstance(error, Exception) else []
        try:
            await self.call(member, hook, leave, *raised, own=own)
        except Exception as raised_again:
            if raised_again is not error:
                raise

    # Models

    async def answer_model(
        self,
        request: ModelRequest,
        body: ModelBody,
        on_delta: OnDelta | None,
        source: Source,
        opening: Opening,
    ) -> ModelReply:
        """Ask `body` through all middleware, and record the question and its answer."""
        asked = self._answer_model(request, body, on_delta, source, opening)
        return await self.held(request, asked)

    async def held(self, request: ModelRequest | ToolRequest, answer: Coroutine[Any, Any, T]) -> T:
        """The answer, inside the `around_call` hooks; refused to a hook."""
        try:
            self._refuse_inside(request)
            if not self.listeners("around_call"):
                return await answer
            seen = _without_body(request) if isinstance(request, ToolRequest) else request
            async with self.around("around_call", seen):
                return await answer
        finally:
            answer.close()  # in case it was never started

    async def _answer_model(
        self,
        request: ModelRequest,
        body: ModelBody,
        on_delta: OnDelta | None,
        source: Source,
        opening: Opening,
    ) -> ModelReply:
        """Ask `body` with hooks before, around and after it.

        A failure or reply is recorded as hooks changed it: a resumed run continues from what was
        recorded, as if there were no middleware.
        """
        world, given = self._world, await self.before_model(request)
        record_question(world, request)
        begun, replaced = perf_counter(), None
        if given is not None:
            reply, source = given
        else:
            pieces = None if on_delta is None or self.stack.holds_pieces else Delivery(on_delta)
            attempts = Attempts(self, body, opening).ask
            try:
                reply, begun = await ask_in_turn(world, request, attempts, pieces, source)
                if pieces is not None:
                    await pieces.finish()
                seconds = perf_counter() - begun
                changed = await self.after_model(request, reply)
                if changed is not None:
                    replaced, (reply, source) = source, changed
            except Exception as error:
                try:
                    instead = await self._in_spite_of(request, error)
                except Exception as worse:
                    record_model_failure(world, request, worse)
                    raise
                if instead is None:
                    record_model_failure(world, request, error)
                    raise
                reply, source = instead
                seconds = perf_counter() - begun
            first = pieces and pieces.first_after(begun)
            if pieces is None:
                await send_piece(on_delta, reply.text)
            return record_reply(world, request, reply, source, seconds, first, replaced)
        await send_piece(on_delta, reply.text)
        return record_reply(world, request, reply, source, perf_counter() - begun)

    async def before_model(self, request: ModelRequest) -> tuple[ModelReply, Source] | None:
        """A reply in the model's place, and its label."""
        found = await self.first("before_model", request)
        if found is None:
            return None
        return self.reply(found[0], "before_model", found[1]), _source_of(found[0])

    async def after_model(
        self, request: ModelRequest, reply: ModelReply
    ) -> tuple[ModelReply, Source] | None:
        """The reply that replaces this one, and its label; it costs what this one did."""
        found = await self.first("after_model", request, reply)
        if found is None:
            return None
        changed = self.reply(found[0], "after_model", found[1], [reply])
        return None if changed == reply else (changed, _source_of(found[0]))

    async def _in_spite_of(
        self, request: ModelRequest, error: Exception
    ) -> tuple[ModelReply, Source] | None:
        """A reply although the model failed; an error that is not the model's is raised again."""
        if isinstance(error, GreenroomError) and not isinstance(error, ModelBroke):
            return None
        found = await self.first("on_model_error", request, error)
        if found is None:
            return None
        return self.reply(found[0], "on_model_error", found[1]), _source_of(found[0])

    def reply(
        self, member: object, hook: str, answer: Any, real: Sequence[ModelReply] = ()
    ) -> ModelReply:
        """The answer of a hook as a reply; it costs what the real one did, else nothing."""
        if real and answer is real[0]:
            return answer
        if isinstance(answer, str):
            calls = real[0].calls if real else ()
            answer = ModelReply(answer, calls)
        if not isinstance(answer, ModelReply):
            raise MiddlewareFailed(
                f"middleware {name_of(member)!r} answered {answer!r} in {hook}; give a ModelReply "
                f"or a string, or None to continue."
            )
        if real:
            paid = real[0]
            model = answer.model or paid.model
            kept = {"usage": paid.usage, "cost": paid.cost, "prices": paid.prices}
            answer = replace(answer, model=model, **kept)
        else:
            usage = Usage() if answer.usage is None else answer.usage
            answer = replace(answer, usage=usage, cost=answer.cost or 0.0)
        try:
            return checked_reply(answer, giver=f"middleware {name_of(member)!r} in {hook}")
        except GarbledReply as error:
            raise MiddlewareFailed(str(error)) from None

    # Tools

    async def before_tool(self, request: ToolRequest) -> Returned | Pending | None:
        """An answer in the tool's place, recorded; None if the tool must be called."""
        found = await self.first("before_tool", _without_body(request))
        if found is None:
            return None
        member, answer = found
        if isinstance(answer, Pending):
            return answer  # it is called when the user has approved, and not before
        source = _source_of(member)
        if isinstance(answer, Returned) and answer.error:
            begin_call(self._world, request)
            return fail_call(self._world, request, ToolError(answer.error), source)
        value = answer.value if isinstance(answer, Returned) else answer
        return answer_constant(self._world, request, _answer_of(member, value), source)

    async def after_tool(self, request: ToolRequest, value: object) -> tuple[Any, Source] | None:
        """The result that replaces that of a tool, and its label; the tool's changes to the state stay."""
        if not self.listeners("after_tool"):
            return None
        result, asks = unwrapped(value)
        shown = plain(result, f"the answer of tool {request.tool!r}")
        unseen = plain(shown)  # a hook may change the result that it gets
        found = await self.first("after_tool", _without_body(request), shown)
        if found is None:
            return None
        answer = _answer_of(*found)
        if same(answer, unseen):
            return None
        return WithStateChange(answer, asks) if asks else answer, _source_of(found[0])

    async def on_tool_error(
        self, request: ToolRequest, error: Exception
    ) -> tuple[Json, Source] | None:
        """A result in place of a failed tool's error, and its label."""
        found = await self.first("on_tool_error", _without_body(request), error)
        return None if found is None else (_answer_of(*found), _source_of(found[0]))

    # Agents, messages and runs

    async def before_agent(self, agent: AgentTurn) -> tuple[Json] | None:
        """An output in the agent's place."""
        return await self._answer("before_agent", agent.path, agent)

    async def after_agent(self, agent: AgentTurn, output: Json) -> Json:
        """The agent's output, or the one that replaces it."""
        found = await self._answer("after_agent", agent.path, agent, output)
        return output if found is None else found[0]

    async def heard(self, text: str) -> str:
        """A message of the user as the agent gets it."""
        found = await self.first("on_user_message", text)
        if found is None:
            return text
        member, answer = found
        if not isinstance(answer, str) or is_blank(answer):
            raise MiddlewareFailed(
                f"middleware {name_of(member)!r} answered {answer!r} in on_user_message; give the "
                f"string that the agent should get, or None."
            )
        self._note(member, "on_user_message", "")
        return answer

    async def before_run(self, path: str) -> tuple[Json] | None:
        """A reply to the first message, in the agent's place."""
        return await self._answer("before_run", path)

    async def after_run(self) -> None:
        """Call every `after_run` hook: the conversation is over."""
        for member, method in self.listeners("after_run"):
            await self.call(member, "after_run", method)
        self.check()

    async def close(self) -> None:
        """Close all middleware."""
        await self.stack.close()

    async def _answer(self, hook: str, path: str, *given: object) -> tuple[Json] | None:
        found = await self.first(hook, *given)
        if found is None:
            return None
        member, answer = found
        self._note(member, hook, path)
        return (_answer_of(member, answer),)

    def _note(self, member: object, hook: str, path: str) -> None:
        """Record which member answered; once, however often the run is resumed."""
        data: Json = {"middleware": name_of(member), "hook": hook}
        notes = self._world.ledger.index_of(self._world.voice).noted if path else ()
        if not any(note.path == path and note.data == data for note in notes):
            self._world.record(Noted(path=path, name=ANSWERED, data=data))


def _without_body(request: ToolRequest) -> ToolRequest:
    """The call as hooks see it: without the tool behind it, and with a copy of the arguments."""
    args: object = plain(dict(request.args), "arguments")
    return replace(request, origin=None, args=args)


def _answer_of(member: object, answer: object) -> Json:
    """Middleware's answer for a tool or an agent; if it is not JSON, the error names the middleware."""
    return plain(answer, f"the answer of middleware {name_of(member)!r}")


def _source_of(member: object) -> Source:
    return getattr(member, "source", "middleware")


def _finish(answer: object) -> None:
    """Run an `on_event` hook to its end; one that waits is refused."""
    if not inspect.isawaitable(answer):
        return
    steps = answer.__await__()
    try:
        next(steps)
    except StopIteration:
        return
    steps.close()
    raise TypeError("on_event must not wait for anything: events are recorded one by one")
