"""The server around a served agent: its card, its methods by JSON-RPC, and who may ask."""

import asyncio
import hmac
import json
import sys
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import urlsplit

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route

from greenroom.agents.cards import AgentCard
from greenroom.apps.serving.requests import (
    INTERNAL,
    INVALID_PARAMS,
    NO_EXTENDED_CARD,
    NO_PUSH,
    UNKNOWN_METHOD,
    UNSUPPORTED,
    WRONG_VERSION,
    Call,
    RpcError,
    number,
    read_call,
    read_message,
    text,
)
from greenroom.apps.serving.served import ServedAgent, Work
from greenroom.backends.a2a.cards import CARD_PATH
from greenroom.ledger.plain import Json

LARGEST = 8_000_000
_LOOPBACK = ("localhost", "127.0.0.1", "::1")
_PAGE = 50
_CARD = {"Cache-Control": "no-cache"}

Answer = Callable[[Mapping[str, Json]], Awaitable[Json]]
Stream = Callable[[Mapping[str, Json]], Awaitable[AsyncIterator[Json]]]


class Server:
    """The methods of the protocol, for one agent."""

    def __init__(
        self, agent: ServedAgent, card: AgentCard, *, token: str = "", hosts: tuple[str, ...] = ()
    ) -> None:
        self._agent = agent
        self._card = card
        self._token = token
        self._hosts = {*_LOOPBACK, (urlsplit(card.url).hostname or "").lower(), *hosts}
        self._answers: Mapping[str, Answer] = {
            "SendMessage": self._send,
            "GetTask": self._get,
            "ListTasks": self._list,
            "CancelTask": self._cancel,
        }
        self._streams: Mapping[str, Stream] = {
            "SendStreamingMessage": self._send_streaming,
            "SubscribeToTask": self._subscribe,
        }

    def app(self, on_start: Callable[[int], None] = lambda _: None) -> Starlette:
        """The ASGI app; what was under way goes on when it starts, and is kept when it ends."""

        @asynccontextmanager
        async def lifespan(_: Starlette) -> AsyncGenerator[None]:
            on_start(await self._agent.resume())
            yield
            await self._agent.close()

        path = urlsplit(self._card.url).path or "/"
        routes = [
            Route(CARD_PATH, self._show_card, methods=["GET"]),
            Route(path, self._handle, methods=["POST"]),
        ]
        return Starlette(routes=routes, lifespan=lifespan)

    async def _show_card(self, request: Request) -> Response:
        refused = self._refused(request)
        return refused or JSONResponse(self._card.data(), headers=_CARD)

    async def _handle(self, request: Request) -> Response:
        refused = self._refused(request) or self._unauthorised(request)
        if refused is not None:
            return refused
        if request.headers.get("content-type", "").partition(";")[0].strip() != "application/json":
            return PlainTextResponse("send application/json", 415)
        body = bytearray()
        async for chunk in request.stream():
            body += chunk
            if len(body) > LARGEST:
                return PlainTextResponse(f"the request has more than {LARGEST} bytes", 413)
        call = Call(None, "", {})
        try:
            call = read_call(bytes(body))
            _check_version(request.headers.get("a2a-version", ""))
            with _traced(request.headers):
                return await self._called(call)
        except RpcError as error:
            return JSONResponse(_error(call, error))

    def _refused(self, request: Request) -> Response | None:
        """Refuse a request for another host, or of a page of another site: a browser was misled."""
        asked = _hostname(f"//{request.headers.get('host', '')}")
        if asked not in self._hosts:
            return PlainTextResponse("this server does not answer for that host", 421)
        origin = request.headers.get("origin")
        if origin is not None and _hostname(origin) not in self._hosts:
            return PlainTextResponse("requests of other sites are refused", 403)
        return None

    def _unauthorised(self, request: Request) -> Response | None:
        if not self._token:
            return None
        given = request.headers.get("authorization", "")
        if hmac.compare_digest(given.encode(), f"Bearer {self._token}".encode()):
            return None
        return PlainTextResponse("a bearer token is needed", 401, {"WWW-Authenticate": "Bearer"})

    async def _called(self, call: Call) -> Response:
        if call.method in self._answers:
            result = await self._answers[call.method](call.params)
            return JSONResponse({"jsonrpc": "2.0", "id": call.id, "result": result})
        if call.method in self._streams:
            stream = await self._streams[call.method](call.params)
            return StreamingResponse(
                _as_events(call, stream),
                media_type="text/event-stream",
                headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"},
            )
        if "PushNotification" in call.method:
            raise RpcError(NO_PUSH, "push notifications are not offered; subscribe to the task.")
        if call.method == "GetExtendedAgentCard":
            raise RpcError(NO_EXTENDED_CARD, "there is no other card than the public one.")
        raise RpcError(UNKNOWN_METHOD, f"there is no method {call.method[:100]!r}.")

    # Methods

    async def _send(self, params: Mapping[str, Json]) -> Json:
        incoming = read_message(params)
        found = self._agent.send(incoming)
        if isinstance(found, Work):
            if incoming.at_once:
                found = self._agent.task(found.task)
            else:
                found = await self._agent.wait(found)
        return {"task": found.data(incoming.history)}

    async def _send_streaming(self, params: Mapping[str, Json]) -> AsyncIterator[Json]:
        found = self._agent.send(read_message(params))
        return self._agent.follow(found) if isinstance(found, Work) else _once(found.data())

    async def _subscribe(self, params: Mapping[str, Json]) -> AsyncIterator[Json]:
        name = text(params, "id")
        task, work = self._agent.task(name), self._agent.work(name)
        if task.is_over:
            raise RpcError(UNSUPPORTED, f"task {name} is over: {task.state.lower()}.")
        return self._agent.follow(work) if work is not None else _once(task.data())

    async def _get(self, params: Mapping[str, Json]) -> Json:
        return self._agent.task(text(params, "id")).data(number(params, "historyLength"))

    async def _list(self, params: Mapping[str, Json]) -> Json:
        state = text(params, "status")
        tasks = [
            task
            for task in self._agent.tasks(text(params, "contextId"))
            if not state or f"TASK_STATE_{task.state}" == state
        ]
        size = min(number(params, "pageSize") or _PAGE, 100)
        token = text(params, "pageToken") or "0"
        if not token.isascii() or not token.isdigit():
            raise RpcError(INVALID_PARAMS, "pageToken is none of this server's.")
        begin, history = int(token), number(params, "historyLength") or 0
        with_artifacts = params.get("includeArtifacts") is True
        shown = tasks[begin : begin + size]
        return {
            "tasks": [task.data(history, artifacts=with_artifacts) for task in shown],
            "nextPageToken": str(begin + size) if begin + size < len(tasks) else "",
            "pageSize": size,
            "totalSize": len(tasks),
        }

    async def _cancel(self, params: Mapping[str, Json]) -> Json:
        return (await self._agent.cancel(text(params, "id"))).data()


async def _once(task: Json) -> AsyncIterator[Json]:
    yield {"task": task}


async def _as_events(call: Call, stream: AsyncIterator[Json]) -> AsyncIterator[str]:
    try:
        async for update in stream:
            yield _event({"jsonrpc": "2.0", "id": call.id, "result": update})
    except RpcError as error:
        yield _event(_error(call, error))
    except asyncio.CancelledError:
        raise  # the other side has gone; the work goes on
    except Exception:  # noqa: BLE001 - what broke is in the log, not on the wire
        yield _event(_error(call, RpcError(INTERNAL, "the server could not go on.")))


def _event(data: Json) -> str:
    return f"data: {json.dumps(data)}\n\n"


def _error(call: Call, error: RpcError) -> dict[str, Json]:
    told: dict[str, Json] = {"code": error.code, "message": str(error)}
    return {"jsonrpc": "2.0", "id": call.id, "error": told}


def _check_version(version: str) -> None:
    if version and version.partition(".")[0] != "1":
        raise RpcError(WRONG_VERSION, f"A2A {version[:20]} is not spoken here; 1.0 is.")


def _hostname(url: str) -> str:
    try:
        return (urlsplit(url).hostname or "").lower()
    except ValueError:
        return ""


class _traced:  # noqa: N801 - read as a verb: `with _traced(headers)`
    """Let what is done here belong to the trace of the one who asked, if this process has traces."""

    def __init__(self, headers: Mapping[str, str]) -> None:
        self._headers = headers
        self._token: Any = None

    def __enter__(self) -> None:
        if "opentelemetry.trace" in sys.modules and "traceparent" in self._headers:
            from opentelemetry import context, propagate

            self._token = context.attach(propagate.extract(dict(self._headers)))

    def __exit__(self, *_: object) -> None:
        if self._token is not None:
            from opentelemetry import context

            context.detach(self._token)
