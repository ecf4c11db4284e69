"""An agent that is served: each conversation is a ledger in the store, and each task a stretch of it.

Everything about a task is read from the ledger. So a server that was killed continues where it was:
interrupted work is resumed when it starts again, and a message that comes twice is acted on once.
"""

import asyncio
import json
import re
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import suppress
from hashlib import blake2b
from time import time
from typing import Any
from uuid import UUID

from msgspec import structs

from greenroom.apps.serving.requests import (
    INTERNAL,
    INVALID_PARAMS,
    NOT_CANCELABLE,
    UNKNOWN_TASK,
    UNSUPPORTED,
    Incoming,
    RpcError,
)
from greenroom.apps.serving.tasks import GIVEN_UP, HEARD, ServedTask, tasks_in
from greenroom.apps.serving.work import Update, Work
from greenroom.backends.backend import Backend
from greenroom.errors import BadInput, BadLedger, BadValue, NotFound, StoreFailed
from greenroom.ledger.events import (
    Event,
    InvocationEnded,
    Noted,
    RunStarted,
)
from greenroom.ledger.ledger import Ledger
from greenroom.ledger.plain import Json, plain
from greenroom.ledger.questions import started
from greenroom.simulation import perform
from greenroom.store.conversations import Conversations
from greenroom.store.store import Store

_PREFIX = "a2a-"
_TASK = re.compile(r"(a2a-[0-9a-f]{24})-[1-9][0-9]{0,5}\Z")


class ServedAgent:
    """One agent, and the conversations that one user has with it; other users' are not visible here."""

    def __init__(
        self,
        agent: Backend,
        store: Store,
        name: str,
        options: Mapping[str, Any],
        *,
        user: str = "",
        places: asyncio.Semaphore | None = None,
        report: Callable[[str], None] = lambda _: None,
    ) -> None:
        self._agent = agent
        self._store = store
        self._kept = Conversations(store.database)
        self._app = name
        self._user = user
        self._options = options
        self._places = places or asyncio.Semaphore(16)
        self._works: dict[str, Work] = {}
        self.report = report

    # Messages

    def send(self, incoming: Incoming) -> Work | ServedTask:
        """Pass a message to the agent: returns the work on it, or the task if the message is a repeat."""
        context = incoming.context
        if not context:
            context = self.task(incoming.task).context if incoming.task else _new_context(incoming)
        conversation = self._conversation(context)
        ledger = self._ledger(conversation)
        tasks = [] if ledger is None else tasks_in(ledger)
        work = self._works.get(conversation)
        known, is_heard = None, False
        for task in tasks:
            for asked in task.asked:
                if asked.message == incoming.message:
                    known, is_heard = task, asked.is_heard
        if known is not None and work is not None and work.task == known.id:
            return work
        if known is not None and (is_heard or known.is_over):
            return known
        if work is not None:
            raise RpcError(
                UNSUPPORTED,
                f"task {work.task} is still running in this conversation; wait for it, or cancel it.",
            )
        task = known.id if known is not None else self._task_for(incoming, tasks, conversation)
        if ledger is None:
            ledger = self._begun(conversation)
        self._check(ledger)
        if known is None:
            data = {
                "context": context,
                "task": task,
                "message": incoming.message,
                "text": incoming.text,
                "answers": incoming.answers,
                "attachments": [plain(one) for one in incoming.attachments],
            }
            # Written before the turn begins: the caller may get an answer at once, and the turn may have to wait.
            try:
                self._write(ledger, Noted(name=HEARD, data=data))
            except StoreFailed as error:
                raise self._unkept(task, error) from error
        return self._start(conversation, context, task, ledger)

    def _task_for(self, incoming: Incoming, tasks: list[ServedTask], conversation: str) -> str:
        """The task that waits for the message, or the id of a new one."""
        last = tasks[-1] if tasks else None
        waits = last is not None and last.state == "INPUT_REQUIRED"
        if incoming.task:
            named = next((task for task in tasks if task.id == incoming.task), None)
            if named is None:
                raise RpcError(UNKNOWN_TASK, f"there is no task {incoming.task!r}.")
            if named.state != "INPUT_REQUIRED":
                raise RpcError(
                    UNSUPPORTED, f"task {named.id} does not wait for a message; leave out taskId."
                )
            return named.id
        # What an agent waits for must be answered before anything else; the conversation has one task.
        return last.id if last is not None and waits else f"{conversation}-{len(tasks) + 1}"

    def _check(self, ledger: Ledger) -> None:
        first, index = started(ledger), ledger.index_of()
        if first is not None and first.digest != self._agent.digest:
            raise RpcError(
                UNSUPPORTED, "the agent has changed since this conversation began; begin another."
            )
        ends = index.invocations_ended.values()
        if index.open_invocation is None and any(end.outcome == "finished" for end in ends):
            raise RpcError(UNSUPPORTED, "the agent has ended this conversation; begin another.")

    def _begun(self, conversation: str) -> Ledger:
        agent, ledger = self._agent, Ledger()
        ledger.append(
            RunStarted(run_id=conversation, agent=agent.snapshot, digest=agent.digest, state={}),
            time(),
        )
        return ledger

    # Work

    def _start(self, conversation: str, context: str, task: str, ledger: Ledger) -> Work:
        work = self._works[conversation] = Work(task, context, ledger)
        work.doing = asyncio.ensure_future(self._do(conversation, work))
        work.doing.add_done_callback(lambda done: done.cancelled() or done.exception())
        return work

    async def _do(self, conversation: str, work: Work) -> None:
        """Take the turn; its outcome is in the ledger, or raised if the message was refused."""
        try:
            async with self._places:
                await self._take_turn(work)
        except (BadInput, BadValue) as error:
            if self._task(work.ledger, work.task).state != "INPUT_REQUIRED":
                self._give_up(work.ledger, "FAILED", "")
                self.report(f"task {work.task}: {error}")
            raise RpcError(INVALID_PARAMS, str(error)) from error
        except StoreFailed as error:
            raise self._unkept(work.task, error) from error
        except asyncio.CancelledError:
            if work.is_canceled:
                self._give_up(work.ledger, "CANCELED", "")
            raise
        except Exception as error:  # noqa: BLE001 - an agent may raise anything, and the server continues
            self.report(f"task {work.task}: {type(error).__name__}: {error}")
            if not self._task(work.ledger, work.task).is_over:
                self._give_up(work.ledger, "FAILED", "")
        finally:
            del self._works[conversation]
            work.finish(self._task(work.ledger, work.task))

    def _unkept(self, task: str, error: StoreFailed) -> RpcError:
        self.report(f"task {task}: {error}")
        return RpcError(INTERNAL, "the conversation cannot be kept; try again later.")

    async def _take_turn(self, work: Work) -> None:
        asked = self._task(work.ledger, work.task).asked[-1]
        given: dict[str, Any] = {}
        if not asked.is_heard:
            given = self._given(work.ledger, asked.text, asked.answers)
            given["attachments"] = asked.attachments
        try:
            await self._perform(work, given)
        except BadValue:
            # A person writes `true` or `{"approved": false}` as text.
            values = _as_json(given.get("answers", {}))
            if values == given.get("answers", {}):
                raise
            await self._perform(work, {**given, "answers": values})

    def _given(self, ledger: Ledger, text: str, answers: Mapping[str, Json]) -> dict[str, object]:
        """The message as the agent gets it: words, or the answers it waits for."""
        pending = ledger.index_of().pending
        tools = [wait.tool for wait in pending if wait.type == "tool"]
        if tools and len(pending) == 1 and not answers:
            return {"answers": {tools[0]: text}}
        return {"message": text or None, "answers": dict(answers)}

    async def _perform(self, work: Work, given: Mapping[str, Any]) -> None:
        await perform(
            self._agent,
            ledger=work.ledger,
            store=self._store,
            app=self._app,
            user=self._user,
            on_delta=work.on_delta,
            on_event=work.on_event,
            **given,
            **self._options,
        )

    def _give_up(self, ledger: Ledger, state: str, why: str) -> None:
        """Record that the last task does not continue, and end what was in progress."""
        given_up: list[Event] = [Noted(name=GIVEN_UP, data={"state": state, "why": why})]
        begun = ledger.index_of().open_invocation
        if begun is not None:
            end = InvocationEnded(
                path=begun.path,
                outcome="failed",
                error=f"the task was given up: {state.lower()}",
                error_type="TaskGivenUp",
                phase="agent",
            )
            given_up.append(end)
        self._write(ledger, *given_up)

    def _write(self, ledger: Ledger, *events: Event) -> None:
        """Append events from outside a turn; they are on disk on return."""
        held = self._kept.open(ledger, {"app": self._app, "user": self._user})
        try:
            for event in events:
                ledger.append(event, time())
        finally:
            held.close()

    # Questions about tasks

    async def wait(self, work: Work) -> ServedTask:
        """The task when it rests; RpcError if its message was refused."""
        await work.rested()
        return self._task(work.ledger, work.task)

    def follow(self, work: Work) -> AsyncIterator[Update]:
        """The task as it is now, and then every change, until it rests."""
        return work.follow(self.task(work.task))

    def task(self, name: str) -> ServedTask:
        """A task by its id."""
        conversation = _TASK.match(name)
        ledger = self._ledger(conversation[1]) if conversation else None
        for task in [] if ledger is None else tasks_in(ledger):
            if task.id == name and self._is_mine(task):
                return self._as_it_is(task)
        raise RpcError(UNKNOWN_TASK, f"there is no task {name!r}.")

    def _as_it_is(self, task: ServedTask) -> ServedTask:
        """A task whose answer is being processed no longer waits."""
        if self.work(task.id) is None or task.is_over:
            return task
        return structs.replace(task, state="WORKING", waits=())

    def work(self, name: str) -> Work | None:
        """The work on a task, if this process is doing it."""
        return next((work for work in self._works.values() if work.task == name), None)

    def tasks(self, context: str = "") -> list[ServedTask]:
        """The tasks of a conversation, or of all that this agent has held, the latest first."""
        if context:
            found = [self._conversation(context)]
        else:
            mine = (self._app, self._user)
            kept = [facts for facts in self._kept.list() if (facts.app, facts.user) == mine]
            found = [facts.id for facts in kept if facts.id.startswith(_PREFIX)]
        tasks: list[ServedTask] = []
        for conversation in found:
            ledger = self._ledger(conversation)
            tasks += [] if ledger is None else reversed(tasks_in(ledger))
        return [*map(self._as_it_is, tasks)]

    async def cancel(self, name: str) -> ServedTask:
        """Stop the work on a task. What its tools have done is done."""
        task, work = self.task(name), self.work(name)
        if task.is_over:
            raise RpcError(NOT_CANCELABLE, f"task {name} is over: {task.state.lower()}.")
        if work is not None and work.doing is not None:
            work.is_canceled = True
            work.doing.cancel()
            await asyncio.wait([work.doing])
            return self._task(work.ledger, name)
        ledger = self._ledger(name.rpartition("-")[0])
        if ledger is not None:
            self._give_up(ledger, "CANCELED", "")
        return self.task(name)

    # Beginning and end

    async def resume(self) -> int:
        """Continue the tasks that were in progress when the last server ended; returns how many."""
        count = 0
        for conversation in self._kept.unfinished(_PREFIX):
            try:
                ledger = self._ledger(conversation)
            except BadLedger as error:
                self.report(f"conversation {conversation} cannot be continued: {error}")
                continue
            task = tasks_in(ledger)[-1] if ledger is not None and tasks_in(ledger) else None
            first = None if ledger is None else started(ledger)
            if ledger is None or task is None or first is None or not task.is_under_way:
                continue
            if not self._is_mine(task):
                continue
            if first.digest != self._agent.digest:
                self._give_up(ledger, "FAILED", "The agent was changed while it was running.")
            else:
                self._start(conversation, task.context, task.id, ledger)
                count += 1
        return count

    async def close(self) -> None:
        """Stop all work; it is resumed when the agent is served again."""
        doing = [work.doing for work in self._works.values() if work.doing is not None]
        for one in doing:
            one.cancel()
        if doing:
            await asyncio.wait(doing)

    # Where things are

    def _conversation(self, context: str) -> str:
        """The id of a conversation: made from the caller's name for it, and safe as a file name."""
        text = f"{self._app}\0{context}".encode(errors="surrogatepass")
        whose = blake2b(self._user.encode()).digest() if self._user else b""
        return f"{_PREFIX}{blake2b(text, digest_size=12, key=whose).hexdigest()}"

    def _is_mine(self, task: ServedTask) -> bool:
        """Whether it is neither another agent's nor another user's: a store may be shared."""
        return task.id.startswith(f"{self._conversation(task.context)}-")

    def _ledger(self, conversation: str) -> Ledger | None:
        if conversation in self._works:
            return self._works[conversation].ledger
        with suppress(NotFound):
            return self._kept.ledger(conversation)
        return None

    def _task(self, ledger: Ledger, name: str) -> ServedTask:
        return next(task for task in tasks_in(ledger) if task.id == name)


def _new_context(incoming: Incoming) -> str:
    """A name for the conversation that a message begins; it is the same if the message comes again."""
    files = [plain(one) for one in incoming.attachments]
    said = [incoming.message, incoming.text, incoming.answers, files]
    return str(UUID(bytes=blake2b(json.dumps(said).encode(), digest_size=16).digest()))


def _as_json(answers: Mapping[str, Json]) -> dict[str, Json]:
    found: dict[str, Json] = {}
    for name, value in answers.items():
        found[name] = value
        if isinstance(value, str):
            with suppress(ValueError, RecursionError):
                found[name] = json.loads(value)
    return found
