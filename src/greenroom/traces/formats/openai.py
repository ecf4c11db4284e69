"""Conversations as OpenAI's messages: a list of them, or an object with `messages`."""

from collections.abc import Iterable, Iterator, Mapping

from greenroom.errors import BadTrace
from greenroom.ledger.events import Question, Unseen
from greenroom.ledger.messages import Message, Role
from greenroom.ledger.plain import Json, is_array, is_object
from greenroom.traces.files import TraceFile
from greenroom.traces.messages import failure_in, has_other_calls, has_other_parts, message_of
from greenroom.traces.records import Flaw, Found, Imported
from greenroom.traces.writer import LedgerWriter

_UNREAD: Mapping[Role, Unseen] = {"user": "user", "assistant": "words", "tool": "results"}
ROLES = ("system", "developer", "user", "assistant", "tool", "function")


class OpenAIMessages:
    """Reads `[{"role": ..., "content": ...}]`: one conversation per file, line, or list entry."""

    name = "openai"

    def recognises(self, file: TraceFile) -> bool:
        """Whether its first entry is a message, or holds some."""
        first = file.first
        if is_array(file.documents[0].data if file.documents else None) and not first:
            inner = file.documents[0].data
            first_list = inner[0] if is_array(inner) and inner else None
            return is_array(first_list) and _is_messages(first_list)
        return first.get("role") in ROLES or _is_messages(first.get("messages"))

    def read(self, file: TraceFile) -> Iterator[Found]:
        """Each conversation."""
        for document in file.documents:
            for number, (place, data) in enumerate(_conversations(document.data)):
                where = document.at(place)
                fallback = f"{file.path.stem}-{document.place.removeprefix('line ')}".rstrip("-")
                yield from _read(
                    file, where, data, fallback if not number else f"{fallback}-{number + 1}"
                )


def _is_messages(value: Json) -> bool:
    return is_array(value) and bool(value) and is_object(value[0]) and value[0].get("role") in ROLES


def _conversations(data: Json) -> Iterator[tuple[str, Json]]:
    if is_array(data) and data and not (is_object(data[0]) and "role" in data[0]):
        yield from ((f"[{number}]", one) for number, one in enumerate(data))
    else:
        yield "", data


def _read(file: TraceFile, place: str, data: Json, fallback: str) -> Iterator[Found]:
    held = data if is_object(data) else {}
    names = ("conversation_id", "session_id", "thread_id", "id")
    named = next((str(held[name]) for name in names if held.get(name)), fallback)
    try:
        messages = held.get("messages") if held else data
        yield conversation(named, messages, "openai", file.source)
    except BadTrace as error:
        yield Flaw(place=place, why=str(error), source=file.source)


def conversation(
    name: str,
    messages: Json,
    format: str,
    source: str,
    *,
    case_id: str = "",
    trial: int = 1,
    verdicts: dict[str, Json] | None = None,
    notes: Iterable[str] = (),
    is_over: bool | None = None,
    broke: str = "",
) -> Imported:
    """A list of OpenAI's messages as a ledger; BadTrace names the message that cannot be read.

    If the source does not say whether it `is_over`, it is, unless it ends with a tool's answer; `broke` says
    what the agent failed of.
    """
    if not is_array(messages):
        raise BadTrace(f"the messages should be a list, not {type(messages).__name__}.")
    if not messages:
        raise BadTrace("there are no messages.")
    writer = LedgerWriter(name)
    writer.miss("times")
    reading = _Reading(writer)
    for number, message in enumerate(messages):
        try:
            reading.take(message)
        except BadTrace as error:
            raise BadTrace(f"message {number}: {error}") from error
    if broke:
        writer.broke(broke)
    is_over = not reading.is_agents_move if is_over is None else is_over
    return writer.imported(
        format,
        source,
        reason="completed" if is_over or broke else None,
        case_id=case_id,
        trial=trial,
        verdicts=verdicts,
        notes=(*notes, *dict.fromkeys(reading.notes)),
    )


class _Reading:
    """Reads a conversation message by message; each model request refers to what came before."""

    def __init__(self, writer: LedgerWriter) -> None:
        self.writer = writer
        self.notes: list[str] = []
        self.is_agents_move = False
        self._instructions = ""
        self._new: list[str] = []
        self._heard = 0
        self._said = 0
        self._before: int | None = None
        self._path = ""

    def take(self, message: Json) -> None:
        """Read the next message."""
        if not is_object(message) or message.get("role") not in ROLES:
            raise BadTrace(f"it should be an object with a role, one of {', '.join(ROLES)}.")
        content = message.get("content")
        if content is not None and not isinstance(content, str | list):
            raise BadTrace(f"its content should be a string, not {type(content).__name__}.")
        for one in message_of(message):
            if has_other_parts(message):
                self.notes.append("pictures, sound and files in messages are left out")
                self.writer.miss(_UNREAD.get(one.role, "user"))
            if one.role == "assistant" and has_other_calls(message):
                self.notes.append("calls of tools in a form that is not known are left out")
                self.writer.miss("tools")
            failure = failure_in(message) if one.role == "tool" else ""
            self._take(one, is_known=bool(content is not None or one.text), failure=failure)

    def _take(self, one: Message, *, is_known: bool, failure: str) -> None:
        self.is_agents_move = one.role == "tool"
        if one.role == "system":
            self._instructions = "\n".join(part for part in (self._instructions, one.text) if part)
        elif one.role == "user":
            self.writer.user(one.text if is_known else None)
            self._new.append(f"said:{self._said}")
            self._said += 1
        elif one.role == "tool":
            call = self.writer.open_call(one.call_id, one.tool)
            if call is None:
                raise BadTrace(
                    f"it answers a call {one.call_id!r} that no message before it makes."
                )
            if failure:
                self.writer.failed(call, failure)
            else:
                self.writer.returned(call, one.text, known=is_known)
            self._new.append(f"result:{call.call_id}")
        else:
            number = self.writer.asked(question=self._question())
            self.writer.replied(number, one.text, one.calls)
            self._before = number
            self._new = ["reply"]
            for call in one.calls:
                self.writer.called(call.tool, call.args, call.id)
            if not one.calls:
                self.writer.said(one.text if is_known else None)

    def _question(self) -> Question:
        """The model's request: all that was said so far."""
        kept = [f"kept:0-{self._heard}"] if self._heard else []
        question = Question(
            messages=(*kept, *self._new),
            instructions="" if self._before is not None else self._instructions,
            after=self._before,
            after_path=self.writer.path_of(self._before),
            same_setting=self._before is not None,
        )
        self._heard += len(self._new)
        return question
