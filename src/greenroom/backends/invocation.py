"""One invocation of a foreign agent: how it begins, pauses, ends and breaks.

A framework keeps its own history. At every pause and at the end of every turn that history is written
into the ledger, so that the next advance finds it there, in this process or in another.
"""

from collections.abc import Awaitable, Callable, Container, Coroutine, Mapping
from itertools import takewhile
from operator import eq
from typing import TYPE_CHECKING, Any, TypeVar, cast

from msgspec import Struct, structs
from pydantic import TypeAdapter

from greenroom.backends.attached import slim, whole
from greenroom.backends.backend import Advance, Failed, Waiting, Yield
from greenroom.backends.turn_ends import end_turn, fail_turn, wait_opened
from greenroom.errors import AgentFailed, BadLedger, GreenroomError, Refusal, UserAgentFailed
from greenroom.ledger.attachments import MARK, text_and_attachments
from greenroom.ledger.changes import Change
from greenroom.ledger.events import (
    STOPPED,
    AgentSaid,
    Answer,
    Answered,
    Decided,
    Event,
    InvocationStarted,
    ModelCalled,
    NodeEnded,
    NodeFailed,
    NodeStarted,
    Remembered,
    StateChanged,
    ToolCalled,
    ToolReturned,
    YieldOpened,
)
from greenroom.ledger.index import VoiceIndex
from greenroom.ledger.ledger import Ledger
from greenroom.ledger.messages import is_blank
from greenroom.ledger.paths import free_path
from greenroom.ledger.plain import Json, OwnedJson, as_array, as_text, plain, same
from greenroom.models.model import OnDelta
from greenroom.world.records import describe_error
from greenroom.world.world import AgentTurn, Context, Pending, ToolRequest, World

if TYPE_CHECKING:
    from greenroom.world.middleware.run import RunMiddleware

T = TypeVar("T")
Check = Callable[[Json, bool], Json]
"""Turns an answer into what was asked for, strictly or not; ValueError if it cannot."""

_BOOL = TypeAdapter(bool)


class Progress(Struct, frozen=True):
    """The progress of a framework: its whole history, and either what it waits for or its answer."""

    history: list[Json]
    output: Json = None
    yields: tuple[Yield, ...] = ()
    is_fresh: bool = False
    """Whether the history is plain JSON that is not shared, so that it need not be copied."""


class Invocation:
    """One invocation of a foreign agent, begun or resumed from the ledger.

    It keeps the first Greenroom error that was raised inside the framework: whatever callbacks, retries or
    plug-ins make of it, that error decides how the invocation ends.
    """

    __slots__ = (
        "_begun",
        "_check",
        "_known",
        "_replays",
        "attached",
        "broke",
        "given",
        "index",
        "ledger",
        "memory",
        "resumed",
        "root",
        "world",
    )

    def __init__(
        self,
        ledger: Ledger,
        world: World,
        memory: str,
        check: Check | None = None,
        *,
        replays: bool = False,
    ) -> None:
        index = ledger.index_of(world.voice)
        begun = index.open_invocation
        self.resumed = begun is not None
        if begun is None:
            given = index.said[-1].value if index.said else None
            root = f"@{len(index.invocations) + 1}"
            begun = world.record(InvocationStarted(path=root, input=given))
        self.ledger = ledger
        self.world = world
        self.memory = memory
        self._check = check or check_confirmed
        self._replays = replays
        self.root = begun.path
        text, self.attached = text_and_attachments(begun.input)
        self.given = text if isinstance(begun.input, str) or self.attached else None
        self.broke: GreenroomError | None = None
        self._begun: set[str] = set()
        """Nodes that had begun but done nothing when the run was interrupted: their start is not recorded twice."""
        self.index: VoiceIndex = index
        """The current path of the run."""
        self._known: list[Json] | None = None if self.resumed or len(index.invocations) > 1 else []

    async def advance(self, work: Callable[[], Awaitable[Progress]]) -> Advance:
        """Let the framework work, and record how that ended."""
        if self.resumed and self.index.pending:
            return Waiting(tuple(self._reopen(opened) for opened in self.index.pending))
        if (over := self._answer_before_cut()) is not None:
            return self._end(over.data["output"])
        try:
            self._refuse_cut()
            progress = await self._work(work)
        except Exception as error:  # noqa: BLE001 - a framework may raise anything
            return self._break(error)
        if self.broke is None and not progress.yields and self._said_nothing(progress.output):
            self.broke = AgentFailed(
                "the agent answered with nothing: its model gave no text and no tool call."
            )
        if self.broke is not None:
            return self._break(self.broke)
        # Waits are recorded before the memory that continues them, so that an interruption in between is noticed.
        for wanted in progress.yields:
            if wanted.type == "message" and wanted.prompt:
                self.world.record(AgentSaid(path=f"{self.root}/{wanted.id}", text=wanted.prompt))
            self.world.record(wait_opened(wanted, self.root))
        self._remember(progress)
        return Waiting(progress.yields) if progress.yields else self._end(progress.output)

    async def _work(self, work: Callable[[], Awaitable[Progress]]) -> Progress:
        """The framework's outcome, or what middleware answers instead of the agent.

        To middleware a foreign agent is a single agent, however many it consists of.
        """
        hooks: RunMiddleware | None = getattr(self.world, "middleware", None)
        if hooks is None:
            return await work()
        turn = AgentTurn(self.memory, self.root, self.given)
        answer = None if self.resumed else await hooks.before_agent(turn)
        if answer is not None:
            return Progress(self.history(), answer[0])
        progress = await work()
        if progress.yields or self.broke is not None:
            return progress
        output = await hooks.after_agent(turn, plain(progress.output))
        return structs.replace(progress, output=output)

    async def ask(self, answer: Awaitable[T]) -> T:
        """The World's answer; an error of ours is kept before the framework gets to see it.

        After such an error nothing more is asked: code that swallowed it would continue in vain.
        """
        if self.broke is not None:
            if isinstance(answer, Coroutine):
                answer.close()  # pyright: ignore[reportUnknownMemberType]
            raise self.broke
        try:
            return await answer
        except GreenroomError as error:
            self.keep(error)
            raise

    def keep(self, error: GreenroomError) -> GreenroomError:
        """Remember the first Greenroom error, and return the error to raise."""
        self.broke = self.broke or error
        return error

    def history(self) -> list[Json]:
        """The framework's own history as it was at the last pause or end of a turn."""
        if self._known is None:
            items: list[Json] = []
            for note in self.ledger.of(Remembered, voice=self.world.voice):
                if self._is_memory(note):
                    items = [*items[: note.data["keep"]], *note.data["items"]]
            self._known = items if MARK not in as_text(items) else as_array(whole(items))
        return list(self._known)

    def answers(self) -> list[Answer]:
        """Copies of what the user answered since the framework paused."""
        found: list[Answer] = []
        for event in self.ledger:
            if event.voice == self.world.voice:
                if isinstance(event, Answered):
                    found += [structs.replace(one, value=plain(one.value)) for one in event.answers]
                elif self._is_memory(event):
                    found = []
        return found

    def result_wanted(self, call_id: str, tool: str, args: Json) -> Yield:
        """The wait for the result of a tool call that the user answers."""
        return Yield(call_id, "tool", tool, call_id, args, invocation=self.root)

    def approval_wanted(self, yield_id: str, call_id: str, tool: str, args: Json) -> Yield:
        """The wait for whether a tool call may run; its id is not the call's own."""
        return Yield(yield_id, "tool", tool, call_id, args, invocation=self.root, check=self._check)

    def approval_of(self, call_id: str, tool: str, args: Json) -> Yield:
        """The wait for whether a tool call may run, for a framework that does not number its questions."""
        asked = sum(opened.call_id == call_id for opened in self.index.yields.values())
        yield_id = self.world.new_id(self.root, "approval", call_id, asked)
        return self.approval_wanted(yield_id, call_id, tool, args)

    async def ask_for_result(
        self, call_id: str, tool: str, args: dict[str, Json], path: str, *, no_body: str
    ) -> Yield | None:
        """The wait for the result of a call that only the user answers; None if the World has answered it."""

        async def body(_: Context) -> Json:
            raise AgentFailed(no_body)

        n = self.index.call_number(tool, call_id, path)
        request = ToolRequest(call_id, tool, args, path, yields=True, n=n)
        outcome = await self.ask(self.world.call_tool(request, body))
        return self.result_wanted(call_id, tool, args) if isinstance(outcome, Pending) else None

    def message_wanted(self, yield_id: str, prompt: str) -> Yield:
        """The wait for the user's next message, inside a run."""
        return Yield(yield_id, "message", prompt=prompt, invocation=self.root)

    def to_user(self, path: str) -> OnDelta | None:
        """Takes the pieces of what is said at a path to the user; None if they are taken as a whole."""
        door: Callable[[str, bool], OnDelta] | None = getattr(self.world, "door", None)
        return None if door is None else door(path, True)

    def record_result(self, call_id: str, value: Json) -> None:
        """Record the user's answer as the result of a waiting call."""
        called, ended = self.index.called.get(call_id), self.index.results.get(call_id)
        opened = self.index.yields.get(call_id)
        # A body that runs for real may leave its result to the user: then the call has already ended once.
        is_over = ended is not None and (opened is None or opened.seq < ended.seq)
        if called is not None and not is_over:
            self.world.record(
                ToolReturned(
                    path=called.path,
                    call_id=call_id,
                    tool=called.tool,
                    value=value,
                    source="user",
                )
            )

    def record_state(
        self, values: Mapping[str, Json], known: Mapping[str, Json], path: str
    ) -> tuple[Change, ...]:
        """Record what of the session's state was changed, where the framework now has these values.

        A value that is still as the framework has `known` it may have been changed in the session meanwhile, by
        an answer.
        """
        session = self.ledger.fold(self.world.voice).get("session", {})
        changes = tuple(
            Change("session", (key,), "set", plain(value, f"state {key!r}"))
            for key, value in values.items()
            if (key not in session or session[key] != value)
            and not (key in known and same(known[key], value))
        )
        if changes:
            self.world.record(StateChanged(path=path, changes=changes))
        return changes

    def begin_node(self, node: str, within: str) -> str:
        """Record that an agent or a step begins inside a path; returns its own path."""
        begun = self._begun
        path = free_path(
            f"{within}/{node}", lambda path: path in self.index.started and path not in begun
        )
        if path in begun:
            begun.discard(path)
        else:
            self.world.record(NodeStarted(path=path, node=node))
        return path

    def enter_node(
        self, node: str, within: str, given: Json = None, at_work: Container[str] = ()
    ) -> str:
        """Record that an agent or a step begins, unless it only continues after a pause.

        `at_work` are the paths that run at the same time and do not count as its earlier visits.
        """
        ended = self.index.ended
        path = free_path(f"{within}/{node}", lambda path: path in ended or path in at_work)
        if path not in self.index.started:
            self.world.record(NodeStarted(path=path, node=node, input=given))
        return path

    def begin_unseen(self, node: str, what: str) -> str:
        """Record the beginning of work that the tool gate cannot see; returns its path.

        If it was interrupted during this work before, the work may have had effects, so it is not repeated.
        """
        path = f"{self.root}/{node}"
        if path in self.index.started:
            raise BadLedger(
                f"the run was interrupted while the {what} was working in {path!r}, so it is unknown what "
                f"it did. Start this case again."
            )
        self.world.record(NodeStarted(path=path, node=node, input=self.given))
        return path

    def end_node(self, node: str, path: str, output: Json = None) -> None:
        """Record that an agent or a step has ended, with its output or else what it said last."""
        steps = self.index.steps.get(path)
        if output is None and steps:
            output = getattr(steps[-1], "text", None)
        self.world.record(NodeEnded(path=path, node=node, output=output))

    def fail_node(self, path: str, error: BaseException, attempt: int = 1) -> None:
        """Record that an agent or a step has failed, unless a Greenroom error broke it."""
        if self.broke is None:
            node = self.index.started[path].node
            self.world.record(
                NodeFailed(path=path, node=node, attempt=attempt, **describe_error(error))
            )

    def _fail_open(self, error: Exception) -> None:
        """Record that everything that was running when the agent failed has failed too, innermost first."""
        index, below = self.index, f"{self.root}/"
        for path in reversed(list(index.started)):
            if path.startswith(below) and path not in index.ended and path not in index.failed:
                self.fail_node(path, error)

    def _is_memory(self, event: Event) -> bool:
        return isinstance(event, Remembered) and event.name == self.memory

    def _refuse_cut(self) -> None:
        """Refuse a run that was not interrupted at a pause: in between, the framework's state is unknown.

        A backend that replays starts the agent again, with the answers that it had before.
        """
        if not self.resumed or self._replays:
            return
        at_work = False
        for event in self.ledger:
            if event.voice != self.world.voice:
                continue
            # The state that a node changed would already be there when the node runs again.
            if isinstance(event, ModelCalled | ToolCalled | NodeEnded | Decided):
                at_work = True
            elif isinstance(event, InvocationStarted) or self._is_memory(event):
                at_work = False
        if at_work:
            raise BadLedger(
                f"the run was interrupted in the middle of invocation {self.root!r}, but an agent of another "
                f"framework can be resumed only at a pause and between turns. Start this case again."
            )
        if not any(self._is_memory(note) and note.path == self.root for note in self.ledger):
            below = f"{self.root}/"
            self._begun = {path for path in self.index.started if path.startswith(below)}

    def _answer_before_cut(self) -> Remembered | None:
        """The memory of an invocation that already had its answer when it was interrupted."""
        notes = self.ledger.of(Remembered, voice=self.world.voice) if self.resumed else []
        mine = [note for note in notes if self._is_memory(note) and note.path == self.root]
        return mine[-1] if mine and mine[-1].data["over"] else None

    def _said_nothing(self, output: Json) -> bool:
        """Whether the turn ends with a model's reply that says nothing, and the agent says nothing else.

        An agent may end a turn in silence for reasons of its own, as when a tool or a guardrail ends it.
        """
        if output is not None and not (isinstance(output, str) and is_blank(output)):
            return False
        replies = self.index.replied
        last = replies[-1] if replies and self._is_mine(replies[-1]) else None
        if last is None or last.calls or last.attachments or not is_blank(last.text):
            return False
        return not any(note.name == STOPPED and self._is_mine(note) for note in self.index.noted)

    def _is_mine(self, event: Event) -> bool:
        """Whether an event belongs to this invocation."""
        return event.path == self.root or event.path.startswith(f"{self.root}/")

    def _remember(self, progress: Progress) -> None:
        """Record the new part of the framework's history."""
        keep = len([*takewhile(bool, map(eq, self.history(), progress.history))])
        data: Any = {
            "keep": keep,
            "items": slim(progress.history[keep:] if keep else progress.history),
            "over": not progress.yields,
            "output": plain(progress.output),
        }
        self._known = None
        if progress.is_fresh:
            data = OwnedJson(data)
        self.world.record(Remembered(path=self.root, name=self.memory, data=data))

    def _reopen(self, opened: YieldOpened) -> Yield:
        if opened.type == "message":
            return self.message_wanted(opened.yield_id, opened.prompt)
        if opened.yield_id == opened.call_id:
            return self.result_wanted(opened.call_id, opened.tool, opened.args)
        return self.approval_wanted(opened.yield_id, opened.call_id, opened.tool, opened.args)

    def _end(self, output: Json) -> Advance:
        return end_turn(self.world, self.index, self.root, output)

    def _break(self, error: Exception) -> Failed:
        error = self.broke or error
        if isinstance(error, Refusal):
            raise error
        if not isinstance(error, GreenroomError):
            self._fail_open(error)
        return fail_turn(self.world, self.root, error)


def check_confirmed(value: Json, strict: bool) -> Json:
    """An approval as frameworks take it: a bool, or `confirmed` with whatever else was said; else ValueError."""
    if isinstance(value, dict):
        said = cast("dict[str, Json]", value)
        return {**said, "confirmed": _BOOL.validate_python(said.get("confirmed"), strict=strict)}
    return _BOOL.validate_python(value, strict=strict)


def approval(value: Json) -> dict[str, Json]:
    """Whether the user approved, as `{"confirmed": bool}` with whatever else they said."""
    try:
        checked = check_confirmed(value, strict=False)
    except ValueError as error:
        raise UserAgentFailed(f"{value!r} neither approves nor denies: {error}") from error
    return cast("dict[str, Json]", checked) if isinstance(checked, dict) else {"confirmed": checked}
