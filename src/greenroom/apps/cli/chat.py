"""A live conversation in the terminal: messages in, pieces of replies out, approvals asked."""

import asyncio
import json
import shlex
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from time import localtime, strftime
from typing import Any

from greenroom.apps.cli.exits import INTERRUPTED, PASSED, aside, put_out, put_out_data, put_out_json
from greenroom.apps.cli.live_agent import LiveAgent
from greenroom.apps.cli.perform_commands import perform_command
from greenroom.apps.cli.request import retyped
from greenroom.cases import harvest
from greenroom.cases.files.additions import add_cases, evalset_at
from greenroom.cases.files.changes import changing
from greenroom.cases.names import free_id
from greenroom.errors import BadInput, BadValue, GreenroomError
from greenroom.ledger import Ledger, responses, state
from greenroom.ledger.attachments import Attachment
from greenroom.ledger.blobs import file_blob
from greenroom.ledger.events import Event, ToolFailed, ToolReturned, YieldOpened
from greenroom.ledger.plain import Json
from greenroom.ledger.questions import started
from greenroom.ledger.safe_text import harmless
from greenroom.reports.terminal import Terminal
from greenroom.simulation import Restarted, perform
from greenroom.store.conversations import Conversations
from greenroom.store.store import as_store

_YES = {"y": True, "yes": True, "n": False, "no": False}
_HELP = (
    "/state shows the state, /attach FILE sends it with your next message, /save FILE [ID] saves a "
    "case, /quit leaves."
)


def talk(
    *, message: str, conversation: str, user: str, app: str, as_json: bool, **given: Any
) -> int:
    """Talk until the user leaves, or say one message; `given` are the options of `LiveAgent`."""
    live = LiveAgent(**given)
    # The command that continues it, up to its id.
    again = retyped(perform_command, {**given, "user": user, "app": app})
    with asyncio.Runner() as runner:
        if not live.agent:
            raise BadInput("name the agent: greenroom perform agent.py")
        kept = as_store(live.store)
        if conversation and kept is None:
            raise BadInput("a conversation is found by its id in a store, but the store is off.")
        _, runs = live.load(runner)
        held = {"user": user, "app": app, "store": False if kept is None else kept}
        chat = Chat(runs, {**held, **live.turn_options()}, runner, is_quiet=as_json)
        if conversation and kept is not None:
            chat.ledger = Conversations(kept.database).ledger(conversation)
        try:
            chat.say(message) if message else chat.run()
        except (KeyboardInterrupt, GreenroomError) as error:
            chat.hint(live.agent, again)
            if isinstance(error, KeyboardInterrupt):
                return INTERRUPTED
            raise
        if as_json:
            put_out_json(json.dumps(chat.data(), indent=2))
        else:
            chat.hint(live.agent, again)
    return PASSED


def list_conversations(store: str, as_json: bool) -> None:
    """Print the conversations of a store, the latest first."""
    kept = as_store(store)
    found = [] if kept is None else Conversations(kept.database).list()
    if as_json:
        fields = ("id", "app", "user", "begun", "updated", "is_open")
        rows = [{name: getattr(facts, name) for name in fields} for facts in found]
        put_out_data(rows)
        return
    for facts in found:
        begun = strftime("%Y-%m-%d %H:%M", localtime(facts.begun))
        whose = f"  {facts.user}" if facts.user else ""
        put_out(
            f"{facts.id}  {begun}  {facts.app}{whose}{'  in progress' if facts.is_open else ''}"
        )
    if not found:
        aside("no conversations yet. `greenroom perform agent.py` begins one.")


class Chat:
    """One conversation, on one event loop from its first message to the last."""

    def __init__(
        self, agent: Any, options: Mapping[str, Any], runner: asyncio.Runner, *, is_quiet: bool
    ) -> None:
        self.ledger = Ledger()
        self._agent = agent
        self._options = options
        self._runner = runner
        self._terminal = Terminal()
        self._is_quiet = is_quiet
        self._written = ""
        self._files: list[Attachment] = []

    def run(self) -> None:
        """Read lines until there are no more."""
        if sys.stdin.isatty():
            aside(f"Models are asked and tools act for real. {_HELP}")
        while True:
            try:
                if self._waits():
                    self._answer_waits()
                    continue
                line = self._read("you> ")
            except EOFError:
                return
            if line.strip() == "/quit":
                return
            if not line.strip():
                continue
            try:
                self._obey(line) if line.startswith("/") else self._turn(line)
            except GreenroomError as error:
                # The conversation is kept, and the next message may well succeed.
                aside(f"greenroom: {error}")
                if not sys.stdin.isatty():
                    raise

    def say(self, message: str) -> None:
        """Say one message; if the agent then waits for an answer, only print what it waits for."""
        self._turn(message)
        for wait in self._waits():
            aside(f"the agent waits for {_describe(wait)}")

    def data(self) -> dict[str, Json]:
        """The conversation as JSON."""
        first = started(self.ledger)
        return {
            "conversation": first.run_id if first is not None else "",
            "responses": list(responses(self.ledger)),
            "waits_for": [_describe(wait) for wait in self._waits()],
            "state": state(self.ledger),  # pyright: ignore[reportReturnType] - a dict of JSON is JSON
        }

    def hint(self, agent: str, options: Sequence[str]) -> None:
        """Print the command that continues the conversation with the same options."""
        first = started(self.ledger)
        if first is not None and self._options["store"]:
            words = ["greenroom", "perform", agent, *options, "--conversation", first.run_id]
            aside(f"kept: {shlex.join(words)}")

    def _read(self, prompt: str) -> str:
        return input(prompt if sys.stdin.isatty() else "")

    def _turn(self, message: str | None, answers: Mapping[str, Json] | None = None) -> None:
        heard, self._written = len(responses(self.ledger)), ""
        files: list[Attachment] = []
        if message is not None:
            files, self._files = self._files, []

        async def taken() -> Ledger:
            going = perform(
                self._agent,
                message,
                attachments=files,
                answers=answers,
                ledger=self.ledger,
                on_delta=None if self._is_quiet else self._write,
                on_event=self._show,
                **self._options,
            )
            return await going

        try:
            self._runner.run(taken())
        finally:
            if self._written:
                self._terminal.print()
        for text in responses(self.ledger)[heard:]:
            if not self._is_quiet and not self._written.endswith(text):
                self._terminal.print(harmless(text), soft_wrap=True)

    def _write(self, piece: str) -> None:
        if isinstance(piece, Restarted):
            self._terminal.print()
            aside("  · discarded: the answer starts over")
            self._written = ""
            return
        self._written += piece
        self._terminal.print(harmless(piece), end="", soft_wrap=True)
        self._terminal.file.flush()

    def _show(self, event: Event) -> None:
        """Print what tools did, on stderr."""
        if self._is_quiet or not isinstance(event, ToolReturned | ToolFailed):
            return
        came = event.error if isinstance(event, ToolFailed) else event.value
        if event.source != "user":
            aside(f"  · {event.tool} → {came}")

    def _waits(self) -> list[YieldOpened]:
        return self.ledger.index_of().pending if len(self.ledger) else []

    def _answer_waits(self) -> None:
        """Ask for everything that the agent waits for, and pass all answers together."""
        answers: dict[str, Json] = {}
        message: str | None = None
        for wait in self._waits():
            if wait.type == "message":
                message = self._read("you> ")
            else:
                answers[wait.yield_id] = _read_value(self._read(f"{_describe(wait)}: "))
        try:
            self._turn(message, answers)
        except (BadValue, BadInput) as error:
            aside(f"greenroom: {error}")
            if not sys.stdin.isatty():
                raise

    def _obey(self, line: str) -> None:
        words = line.split()
        known: dict[str, Callable[..., None]] = {
            "/state": self._print_state,
            "/attach": self._attach,
            "/save": self._save,
        }
        if words[0] not in known:
            aside(_HELP)
            return
        try:
            known[words[0]](*words[1:])
        except TypeError:
            aside(_HELP)

    def _print_state(self) -> None:
        put_out(json.dumps(state(self.ledger), indent=2, ensure_ascii=False))

    def _attach(self, file: str) -> None:
        self._files.append(file_blob(Path(file)))
        aside(f"attached to your next message: {', '.join(map(str, self._files))}")

    def _save(self, file: str, case_id: str = "") -> None:
        path = Path(file)
        first = started(self.ledger)
        wanted = case_id or (first.run_id if first is not None else "conversation")
        with changing(path):
            case = harvest(self.ledger, free_id(wanted, evalset_at(path)))
            add_cases(path, case)
        aside(f"saved as case {case.id!r} in {path}")


def _describe(wait: YieldOpened) -> str:
    if wait.type == "message":
        return "a message"
    given = wait.args.items() if isinstance(wait.args, dict) else ()
    return f"{wait.tool}({', '.join(f'{name}={value!r}' for name, value in given)})"


def _read_value(line: str) -> Json:
    """An answer as it was typed: yes or no, JSON, or plain text."""
    text = line.strip()
    if text.lower() in _YES:
        return _YES[text.lower()]
    try:
        return json.loads(text)
    except ValueError:
        return line
