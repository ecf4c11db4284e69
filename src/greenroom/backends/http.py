"""Agents behind an address: an OpenAI-compatible chat endpoint, or any JSON endpoint by template.

    agent = http_agent("http://127.0.0.1:8000/ask", template={"question": "{{message}}"},
                       answer="$.reply.text")
    rehearse(agent, cases, allow_opaque=True)

Its models and tools run at the other side, where they are neither seen nor mocked. The fence is open only to
that host and port, during each request. Requests use the standard library, because the base install has no
other HTTP client.
"""

import asyncio
import json
import re
import socket
from base64 import b64encode
from collections.abc import Callable, Mapping
from contextlib import suppress
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from typing import Any, ClassVar, TypeVar, cast
from urllib.parse import SplitResult, parse_qsl, urlsplit

from greenroom.backends.attached import chat_content
from greenroom.backends.backend import Feature, Interception
from greenroom.backends.foreign import ForeignBackend, message_data
from greenroom.backends.invocation import Invocation, Progress
from greenroom.errors import AgentFailed, BadAgent, Refusal
from greenroom.ledger.attachments import Attachment
from greenroom.ledger.events import NodeEnded
from greenroom.ledger.messages import is_blank
from greenroom.ledger.plain import Json, as_text, plain
from greenroom.ledger.redaction import keep_fields, keep_headers, keep_secret
from greenroom.world.threads import in_thread

CHAT_ANSWER = "$.choices[0].message.content"
NAMES = ("message", "messages", "attachments", "state", "run_id")
"""The values that a template can be filled with."""
_NODE = "http"
_LARGEST = 10_000_000
_SHOWN = 300
_PLACE = re.compile(r"\{\{\s*(\w*)\s*\}\}")
_STEP = re.compile(r"\.([A-Za-z_][\w-]*)|\[(\d+)\]|\[['\"]([^'\"\]]+)['\"]\]")

Path = tuple[str | int, ...]
T = TypeVar("T")


def http_agent(
    url: str,
    *,
    template: Any = None,
    answer: str = "",
    model: str = "",
    headers: Mapping[str, str] | None = None,
    timeout: float = 60.0,
) -> "HttpBackend":
    """An agent that answers at `url`.

    Without a template it is asked as a chat endpoint: `{"model": …, "messages": […]}`, and the
    answer is read where such endpoints put it. In a template `{{message}}`, `{{messages}}`,
    `{{attachments}}` (name, media_type and base64 of each), `{{state}}` and `{{run_id}}` are replaced by
    the turn's values; `answer` says where in the reply the answer is (`$.reply.text`). Without it the whole reply
    is the answer.
    """
    if template is None:
        template = {"model": model or "default", "messages": "{{messages}}"}
        answer = answer or CHAT_ANSWER
    return HttpBackend(Endpoint(url, headers or {}, timeout), Template(template), answer)


class HttpBackend(ForeignBackend):
    """Runs an agent by asking an endpoint; make one with `http_agent`.

    It resumes only between turns: an interrupted request may have been acted on.
    """

    name: ClassVar[str] = "http"
    models: ClassVar[Interception] = "opaque"
    tool_calls: ClassVar[Interception] = "opaque"
    memory: ClassVar[str] = "http.messages"
    supports: ClassVar[frozenset[Feature]] = frozenset(
        {"speaks_first", "structured_output", "turns"}
    )

    def __init__(self, endpoint: "Endpoint", template: "Template", answer: str = "") -> None:
        keep_fields("", template.given)
        self.endpoint = endpoint
        self.template = template
        self.answer = answer
        self._path = answer_path(answer)

    @property
    def reaches(self) -> tuple[str, ...]:
        """The one address that must be reachable, as host and port."""
        return (self.endpoint.place,)

    def describe(self) -> dict[str, Json]:
        """Where and how it is asked; secrets in the address and the headers are left out."""
        return {
            "url": self.endpoint.shown,
            "headers": [*sorted(self.endpoint.headers)],
            "template": self.template.given,
            "answer": self.answer,
        }

    async def run(self, invocation: Invocation) -> Progress:
        """Send what the user said last, and return the answer."""
        world, path = invocation.world, invocation.begin_unseen(_NODE, "far side")
        messages = invocation.history()
        said, attached = invocation.given or "", invocation.attached
        self.template.check_place(attached)
        if said or attached:
            messages.append({"role": "user", "content": chat_content(said, attached)})
        files: list[Json] = [
            {"name": one.name, "media_type": one.media_type, "base64": b64encode(one.data).decode()}
            for one in attached
        ]
        values: dict[str, Json] = {
            "message": said,
            "attachments": files,
            "messages": messages,
            "state": dict(invocation.ledger.fold(world.voice)),
            "run_id": world.run_id,
        }
        answer = self._answer(await self.endpoint.ask(self.template.filled(values)))
        world.record(NodeEnded(path=path, node=_NODE, output=answer))
        return Progress([*messages, message_data("assistant", answer)], answer)

    def _answer(self, reply: Json) -> Json:
        try:
            answer = found_at(reply, self._path)
        except LookupError:
            raise AgentFailed(
                f"the reply of {self.endpoint.shown} has nothing at {self.answer!r}; it is "
                f"{repr(reply)[:_SHOWN]}. Correct answer=, or the endpoint."
            ) from None
        if answer is None or (isinstance(answer, str) and is_blank(answer)):
            raise AgentFailed(f"{self.endpoint.shown} answered with nothing.")
        return answer


class Endpoint:
    """An address that takes JSON and gives JSON or text.

    Redirects are not followed: they would lead to addresses that the fence is not open to.
    """

    __slots__ = ("_url", "headers", "timeout")

    def __init__(self, url: str, headers: Mapping[str, str], timeout: float) -> None:
        self._url = parts = urlsplit(url)
        try:
            is_port = parts.port is None or parts.port > 0
        except ValueError:
            is_port = False
        if parts.scheme not in ("http", "https") or not parts.hostname or not is_port:
            raise BadAgent(
                f"{url!r} is not an address of an agent; write it like 'http://host:8000/chat'."
            )
        self.headers = dict(headers)
        self.timeout = timeout
        keep_headers(self.headers)
        keep_secret("url_password", parts.password or "")
        for name, value in parse_qsl(parts.query):
            keep_fields(name, value)

    @property
    def place(self) -> str:
        """Host and port."""
        host, url = self._url.hostname or "", self._url
        port = url.port or (443 if url.scheme == "https" else 80)
        return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"

    @property
    def shown(self) -> str:
        """The address without user, password and query, which may hold secrets."""
        return f"{self._url.scheme}://{self.place}{self._url.path}"

    async def ask(self, body: Json) -> Json:
        """The reply to `body`; AgentFailed says why there is none."""
        sent = json.dumps(body).encode()
        return await exchanged(self._url, self.timeout, lambda there: self._exchange(there, sent))

    def _exchange(self, connection: HTTPConnection, body: bytes) -> Json:
        query = f"?{self._url.query}" if self._url.query else ""
        json_only = {"Content-Type": "application/json", "Accept": "application/json"}
        try:
            connection.request(
                "POST", f"{self._url.path or '/'}{query}", body, {**json_only, **self.headers}
            )
            with connection.getresponse() as response:
                sent = response.read(_LARGEST + 1)
        except Refusal:
            raise
        except TimeoutError as error:
            raise AgentFailed(
                f"{self.shown} gave no answer within {self.timeout:g} s. Give http_agent(timeout=…)."
            ) from error
        except (OSError, HTTPException) as error:
            raise AgentFailed(
                f"{self.shown} could not be asked: {type(error).__name__}: {error}. Is it running?"
            ) from error
        finally:
            connection.close()
        if len(sent) > _LARGEST:
            raise AgentFailed(f"{self.shown} answered with more than {_LARGEST} bytes.")
        if response.length:
            raise AgentFailed(f"{self.shown} broke off, {response.length} bytes before its end.")
        text = sent.decode("utf-8", errors="replace")
        if not 200 <= response.status < 300:
            raise AgentFailed(f"{self.shown} answered {response.status}: {text[:_SHOWN]!r}.")
        if not response.headers.get_content_type().endswith("json"):
            return text
        try:
            return json.loads(text)
        except ValueError as error:
            raise AgentFailed(
                f"{self.shown} answered with invalid JSON ({error}): {text[:_SHOWN]!r}."
            ) from error


async def exchanged(url: SplitResult, seconds: float, exchange: Callable[[HTTPConnection], T]) -> T:
    """The result of a blocking exchange on a connection to an address, in its own thread."""
    kind = HTTPSConnection if url.scheme == "https" else HTTPConnection
    connection = kind(url.hostname or "", url.port, timeout=seconds)
    try:
        return await in_thread(exchange, connection)
    except asyncio.CancelledError:
        # The client blocks in its thread; closing the socket ends a cancelled request.
        sock: socket.socket | None = connection.sock
        if sock is not None:
            with suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)
        raise


class Template:
    """JSON with placeholders. A string that is only a placeholder becomes the value itself."""

    __slots__ = ("given",)

    def __init__(self, given: Json) -> None:
        self.given = plain(given, "the template")
        for name in _PLACE.findall(as_text(self.given)):
            if name not in NAMES:
                raise BadAgent(
                    f"the template has a placeholder for {name!r}, but can only be given "
                    f"{', '.join(NAMES)}."
                )

    def check_place(self, attached: tuple[Attachment, ...]) -> None:
        """Refuse to drop attachments that the template has no placeholder for."""
        if attached and not {"messages", "attachments"} & set(_PLACE.findall(as_text(self.given))):
            raise AgentFailed(
                f"{attached[0]} is attached, but the template has no placeholder for it: add "
                f"{{{{attachments}}}} or {{{{messages}}}}."
            )

    def filled(self, values: Mapping[str, Json]) -> Json:
        """The template filled with the values."""
        return _filled(self.given, values)


def _filled(given: Any, values: Mapping[str, Json]) -> Json:
    if isinstance(given, dict):
        parts = cast("dict[str, Any]", given)
        return {key: _filled(value, values) for key, value in parts.items()}
    if isinstance(given, list):
        return [_filled(value, values) for value in cast("list[Any]", given)]
    if not isinstance(given, str):
        return given
    whole = _PLACE.fullmatch(given)
    if whole:
        return plain(values[whole[1]])
    # One pass: what a user says is never read as a placeholder.
    return _PLACE.sub(lambda found: as_text(values[found[1]]), given)


def answer_path(text: str) -> Path:
    """The steps of a path; "" and "$" mean the whole reply. BadAgent if it is not a path."""
    rest = text.removeprefix("$")
    if rest and not rest.startswith((".", "[")):
        rest = f".{rest}"
    steps: list[str | int] = []
    at = 0
    while at < len(rest):
        step = _STEP.match(rest, at)
        if step is None:
            raise BadAgent(
                f"answer={text!r} is not a path into a reply; write it like '$.choices[0].text'."
            )
        steps.append(int(step[2]) if step[2] is not None else step[1] or step[3])
        at = step.end()
    return tuple(steps)


def found_at(reply: Any, path: Path) -> Json:
    """The value at the path; LookupError if there is none."""
    for step in path:
        kind = list if isinstance(step, int) else dict
        if not isinstance(reply, kind):
            raise KeyError(step)
        reply = cast(Any, reply)[step]
    return reply
