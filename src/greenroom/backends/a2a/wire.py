"""The data types of the A2A protocol: messages, tasks and their updates. Remote data is validated here."""

from base64 import b64encode
from collections.abc import Iterable, Mapping
from typing import Final

from msgspec import Struct

from greenroom.errors import AgentFailed
from greenroom.ledger.attachments import text_and_attachments
from greenroom.ledger.plain import Json, as_text, is_array, is_object

_STATE = "TASK_STATE_"
DONE: Final = "COMPLETED"
WAITS: Final = "INPUT_REQUIRED"
OVER: Final = frozenset(("COMPLETED", "FAILED", "CANCELED", "REJECTED"))
"""States after which nothing more happens to a task."""
AT_REST: Final = OVER | {WAITS, "AUTH_REQUIRED"}
"""States in which a task waits for its caller, or is over."""
REPEATS: Final = "urn:greenroom:a2a:repeated-messages"
"""The extension which promises that a repeated message, known by its id, is acted on once."""
JSON_PARTS: Final = "application/json"

Part = Mapping[str, Json]


class FarTask(Struct):
    """A remote task, as far as it is known here."""

    id: str = ""
    context: str = ""
    state: str = ""
    said: str = ""
    """What its status says in words."""
    artifacts: dict[str, list[Part]] = {}
    heard: tuple[str, ...] = ()
    """The ids of the messages that it has received."""
    is_anew: bool = False
    """Whether the latest text replaces what was said before."""

    @property
    def parts(self) -> list[Part]:
        """What it has answered so far."""
        return [part for parts in self.artifacts.values() for part in parts]

    def take(self, event: Json) -> str:
        """Apply an event of a stream or an answer; returns the new text in it."""
        answer = _object(event, "an answer")
        if "task" in answer:
            self.replace(answer["task"])
        elif "message" in answer:
            message = _object(answer["message"], "message")
            self.state, self.artifacts = DONE, {"": _parts(message.get("parts"))}
            self.context = _text(message.get("contextId")) or self.context
        elif "statusUpdate" in answer:
            update = _object(answer["statusUpdate"], "statusUpdate")
            self._name(update.get("taskId"), update.get("contextId"))
            self._status(update.get("status"))
            self.heard = ()  # a stream reports as it happens
        elif "artifactUpdate" in answer:
            return self._artifact(_object(answer["artifactUpdate"], "artifactUpdate"))
        else:
            raise AgentFailed(
                f"the other agent reported {_short(event)}, which is neither a task nor a message."
            )
        return ""

    def replace(self, data: Json) -> None:
        """Take a whole task in place of what was known."""
        task = _object(data, "task")
        self._name(task.get("id"), task.get("contextId"))
        self._status(task.get("status"))
        found: dict[str, list[Part]] = {}
        for artifact in _array(task.get("artifacts"), "artifacts"):
            one = _object(artifact, "artifact")
            name = _text(one.get("artifactId")) or str(len(found))
            found[name] = _joined(_parts(one.get("parts")))
        self.artifacts = found
        messages = [_object(one, "message") for one in _array(task.get("history"), "history")]
        self.heard = tuple(_text(message.get("messageId")) for message in messages)

    def _name(self, task: Json, context: Json) -> None:
        name = _text(task)
        if not name or (self.id and name != self.id):
            raise AgentFailed(
                f"the other agent reported task {name!r}, but it was asked for {self.id!r}."
            )
        self.id, self.context = name, _text(context) or self.context

    def _status(self, data: Json) -> None:
        status = _object(data, "status")
        self.state = _text(status.get("state")).removeprefix(_STATE)
        if not self.state:
            raise AgentFailed(f"the other agent reported a status without a state: {_short(data)}.")
        message = status.get("message")
        self.said = "" if message is None else as_text(output_of(_parts_of(message)))

    def _artifact(self, update: Mapping[str, Json]) -> str:
        self._name(update.get("taskId"), update.get("contextId"))
        artifact = _object(update.get("artifact"), "artifact")
        name, parts = _text(artifact.get("artifactId")), _parts(artifact.get("parts"))
        known, is_added = self.artifacts.get(name), update.get("append") is True
        self.is_anew = known is not None and not is_added
        begin = "\n" if known is None and self.artifacts else ""  # as in the output
        kept = known if known and is_added else []
        self.artifacts = {**self.artifacts, name: _joined([*kept, *parts])}
        said = "".join(_text(part.get("text")) for part in parts)
        return f"{begin}{said}" if said else ""


def _joined(parts: list[Part]) -> list[Part]:
    """The parts of one artifact, with adjacent pieces of text joined into one part."""
    found: list[Part] = []
    for part in parts:
        if found and is_text(found[-1]) and is_text(part):
            found[-1] = {"text": _text(found[-1]["text"]) + _text(part["text"])}
        else:
            found.append({"text": part["text"]} if is_text(part) else part)
    return found


def is_text(part: Part) -> bool:
    """Whether a part is words."""
    return isinstance(part.get("text"), str)


def output_of(parts: Iterable[Part]) -> Json:
    """What parts hold: text, one piece of data, or a list of several; None if nothing."""
    values: list[Json] = []
    for part in parts:
        if is_text(part):
            values.append(part["text"])
        elif "data" in part:
            values.append(part["data"])
        elif "raw" in part or "url" in part:
            # A remote file is neither fetched nor kept, only named.
            values.append(f"[file: {_text(part.get('filename')) or _text(part.get('mediaType'))}]")
    if all(isinstance(value, str) for value in values):
        return "\n".join(as_text(value) for value in values) or None
    return values[0] if len(values) == 1 else values


def parts_for(value: Json, state: Mapping[str, Json] | None = None) -> list[Json]:
    """A value, and the part of the state that is sent with it, as parts of a message."""
    text, attached = text_and_attachments(value)
    found: list[Json] = []
    if isinstance(value, str) or attached:
        if text:
            found.append({"text": text})
    elif value is not None:
        found.append({"data": value, "mediaType": JSON_PARTS})
    for one in attached:
        raw = b64encode(one.data).decode()
        found.append({"raw": raw, "mediaType": one.media_type, "filename": one.name})
    if state:
        found.append({"data": dict(state), "mediaType": JSON_PARTS})
    return found or [{"text": ""}]


def _parts_of(message: Json) -> list[Part]:
    return _parts(_object(message, "message").get("parts"))


def _parts(given: Json) -> list[Part]:
    return [_object(part, "part") for part in _array(given, "parts")]


def _object(value: Json, what: str) -> dict[str, Json]:
    if not is_object(value):
        raise AgentFailed(
            f"the other agent gave {_short(value)} for {what}, which is not an object."
        )
    return value


def _array(value: Json, what: str) -> list[Json]:
    if value is None:
        return []
    if not is_array(value):
        raise AgentFailed(f"the other agent gave {_short(value)} for {what}, which is not a list.")
    return value


def _text(value: Json) -> str:
    if value is None:
        return ""
    if not isinstance(value, str):
        raise AgentFailed(f"the other agent gave {_short(value)} where a string is needed.")
    return value


def _short(value: Json) -> str:
    shown = repr(value)
    return shown if len(shown) < 200 else f"{shown[:200]}…"
