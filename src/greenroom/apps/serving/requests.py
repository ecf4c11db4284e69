"""Parse what other agents send: JSON-RPC requests, and the messages in them."""

from base64 import b64decode
from collections.abc import Mapping

import msgspec
from msgspec import Struct

from greenroom.errors import GreenroomError
from greenroom.ledger.attachments import Attachment
from greenroom.ledger.blobs import attach
from greenroom.ledger.messages import is_blank
from greenroom.ledger.plain import Json, as_text, is_array, is_object, plain

INVALID_REQUEST, UNKNOWN_METHOD, INVALID_PARAMS, INTERNAL = -32600, -32601, -32602, -32603
NOT_JSON, UNKNOWN_TASK, NOT_CANCELABLE, NO_PUSH = -32700, -32001, -32002, -32003
UNSUPPORTED, WRONG_CONTENT, NO_EXTENDED_CARD, WRONG_VERSION = -32004, -32005, -32007, -32009

_LONGEST_ID = 256


class RpcError(Exception):
    """What is wrong with a request, by the codes of JSON-RPC and A2A."""

    def __init__(self, code: int, text: str) -> None:
        super().__init__(text)
        self.code = code


class Call(Struct, frozen=True):
    """A method and its parameters."""

    id: Json
    method: str
    params: dict[str, Json]


class Incoming(Struct, frozen=True):
    """A message as it was received."""

    message: str
    context: str
    task: str
    text: str
    answers: dict[str, Json]
    attachments: tuple[Attachment, ...]
    at_once: bool
    """Whether to return the task before it is done."""
    history: int | None


def read_call(body: bytes) -> Call:
    """A request; RpcError says what is wrong with it."""
    try:
        # Strictly: half a surrogate pair in an id would be another id when it is read from disk.
        given: Json = msgspec.json.decode(body)
    except (ValueError, RecursionError) as error:
        raise RpcError(NOT_JSON, f"the request is not JSON: {type(error).__name__}.") from error
    if not is_object(given) or given.get("jsonrpc") != "2.0":
        raise RpcError(INVALID_REQUEST, "the request is not JSON-RPC 2.0.")
    method, params = given.get("method"), given.get("params", {})
    if not isinstance(method, str):
        raise RpcError(INVALID_REQUEST, "the request names no method.")
    if not is_object(params):
        raise RpcError(INVALID_PARAMS, "params is not an object.")
    if params.get("tenant"):
        raise RpcError(UNSUPPORTED, "tenants are not supported; run one server for each.")
    named = given.get("id")
    known = named if isinstance(named, str | int) and not isinstance(named, bool) else None
    return Call(known, method, params)


def read_message(params: Mapping[str, Json]) -> Incoming:
    """The message of a request to send one."""
    message = params.get("message")
    if not is_object(message):
        raise RpcError(INVALID_PARAMS, "there is no message.")
    known = {name: text(message, name) for name in ("messageId", "contextId", "taskId")}
    if not known["messageId"]:
        raise RpcError(INVALID_PARAMS, "the message has no messageId.")
    if message.get("role", "ROLE_USER") != "ROLE_USER":
        raise RpcError(INVALID_PARAMS, "the role of the message is not ROLE_USER.")
    parts = message.get("parts")
    if not is_array(parts) or not parts:
        raise RpcError(INVALID_PARAMS, "the message has no parts.")
    said, answers, files = list[str](), dict[str, Json](), list[Attachment]()
    for part in parts:
        _take(part, said, answers, files)
    if is_blank("".join(said)) and not answers and not files:
        raise RpcError(INVALID_PARAMS, "the message says nothing.")
    options = params.get("configuration")
    options = options if is_object(options) else {}
    if options.get("taskPushNotificationConfig") or options.get("pushNotificationConfig"):
        raise RpcError(NO_PUSH, "push notifications are not offered; subscribe to the task.")
    return Incoming(
        known["messageId"],
        known["contextId"],
        known["taskId"],
        "\n".join(said),
        answers,
        tuple(files),
        options.get("returnImmediately") is True,
        number(options, "historyLength"),
    )


def _take(part: Json, said: list[str], answers: dict[str, Json], files: list[Attachment]) -> None:
    """Add what a part holds: words, answers to what the agent waits for, other data, or a file."""
    if not is_object(part):
        raise RpcError(INVALID_PARAMS, "a part of the message is not an object.")
    try:
        words, data = part.get("text"), plain(part.get("data"))
        if isinstance(words, str):
            said.append(words)
        elif is_object(data) and data.keys() == {"answers"} and is_object(data["answers"]):
            answers.update(data["answers"])
        elif "data" in part:
            said.append(as_text(data))
        elif isinstance(part.get("raw"), str):
            raw = b64decode(str(part["raw"]), validate=True)
            files.append(attach(raw, text(part, "mediaType"), name=text(part, "filename")))
        else:
            # URLs are not fetched: a stranger would choose where this host connects to.
            raise RpcError(WRONG_CONTENT, "a part is neither text, data nor raw bytes.")
    except (ValueError, GreenroomError) as error:
        raise RpcError(INVALID_PARAMS, f"a part of the message cannot be read: {error}") from error


def text(given: Mapping[str, Json], name: str) -> str:
    """A string in what was given; "" if there is none."""
    value = given.get(name)
    if value is None:
        return ""
    if not isinstance(value, str) or len(value) > _LONGEST_ID:
        raise RpcError(
            INVALID_PARAMS, f"{name} is not a string of at most {_LONGEST_ID} characters."
        )
    return value


def number(given: Mapping[str, Json], name: str) -> int | None:
    """A whole number of 0 or more in what was given; None if there is none."""
    value = given.get(name)
    if value is None:
        return None
    if type(value) is not int or value < 0:
        raise RpcError(INVALID_PARAMS, f"{name} is not a whole number of 0 or more.")
    return value
