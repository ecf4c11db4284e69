"""The server around a served agent: its card, its JSON-RPC methods, and who may call it."""

import json
import sys
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Generator, Mapping
from contextlib import asynccontextmanager, contextmanager
from hmac import compare_digest
from itertools import compress
from urllib.parse import urlsplit

from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route

from greenroom.agents.cards import AgentCard
from greenroom.apps.serving.methods import ANSWERS, STREAMS
from greenroom.apps.serving.requests import (
    INTERNAL,
    NO_EXTENDED_CARD,
    NO_PUSH,
    UNKNOWN_METHOD,
    WRONG_VERSION,
    Call,
    RpcError,
    read_call,
)
from greenroom.apps.serving.served import ServedAgent
from greenroom.backends.a2a.cards import CARD_PATH
from greenroom.errors import GreenroomError
from greenroom.ledger.plain import Json

LARGEST = 8_000_000
_LOOPBACK = ("localhost", "127.0.0.1", "::1")
_NOT_DONE = RpcError(INTERNAL, "the server could not continue.")
"""What broke is in the log, not on the wire."""


class Server:
    """The methods of the protocol for one agent, with separate conversations for each user."""

    def __init__(
        self, agents: Mapping[str, ServedAgent], card: AgentCard, *, hosts: tuple[str, ...] = ()
    ) -> None:
        self._agents = agents
        """By the users' tokens; by "" if every caller is answered."""
        self._card = card
        self._hosts = {*_LOOPBACK, (urlsplit(card.url).hostname or "").lower(), *hosts}

    def app(
        self,
        on_start: Callable[[int], None] = lambda _: None,
        on_failure: Callable[[GreenroomError], None] | None = None,
    ) -> Starlette:
        """The ASGI app; it continues unfinished tasks when it starts, and keeps them when it ends.

        If they cannot be read, `on_failure` is called with the reason, and should stop the server.
        """

        @asynccontextmanager
        async def lifespan(_: Starlette) -> AsyncGenerator[None]:
            try:
                on_start(sum([await agent.resume() for agent in self._agents.values()]))
            except GreenroomError as error:
                if on_failure is None:
                    raise
                on_failure(error)
            yield
            for agent in self._agents.values():
                await agent.close()

        path = urlsplit(self._card.url).path or "/"
        routes = [
            Route(CARD_PATH, self._show_card, methods=["GET"]),
            Route(path, self._handle, methods=["POST"]),
        ]
        return Starlette(routes=routes, lifespan=lifespan)

    async def _show_card(self, request: Request) -> Response:
        fresh = {"Cache-Control": "no-cache"}
        return self._refused(request) or _json(self._card.data(), fresh)

    async def _handle(self, request: Request) -> Response:
        refused, agent = self._refused(request), self._agent_for(request)
        if refused is not None:
            return refused
        if agent is None:
            needed = {"WWW-Authenticate": "Bearer"}
            return PlainTextResponse("a bearer token is needed", 401, needed)
        if request.headers.get("content-type", "").partition(";")[0].strip() != "application/json":
            return PlainTextResponse("send application/json", 415)
        body = bytearray()
        try:
            async for chunk in request.stream():
                body += chunk
                if len(body) > LARGEST:
                    return PlainTextResponse(f"the request has more than {LARGEST} bytes", 413)
        except ClientDisconnect:
            return PlainTextResponse("the request broke off", 400)  # the client is gone
        call = Call(None, "", {})
        try:
            call = read_call(bytes(body))
            version = request.headers.get("a2a-version", "")
            if version and version.partition(".")[0] != "1":
                raise RpcError(WRONG_VERSION, f"A2A {version[:20]} is not supported here; use 1.0.")
            with _traced(request.headers):
                return await _answer(agent, call)
        except RpcError as error:
            return _json(_error(call, error))
        except GreenroomError as error:  # such as a store that is damaged
            agent.report(f"{call.method}: {error}")
            return _json(_error(call, _NOT_DONE))

    def _refused(self, request: Request) -> Response | None:
        """Refuse a request for another host, or from another site's page: a browser was misled."""
        asked = _hostname(f"//{request.headers.get('host', '')}")
        if asked not in self._hosts:
            return PlainTextResponse("this server does not answer for that host", 421)
        origin = request.headers.get("origin")
        if origin is not None and _hostname(origin) not in self._hosts:
            return PlainTextResponse("requests of other sites are refused", 403)
        return None

    def _agent_for(self, request: Request) -> ServedAgent | None:
        """The agent with the caller's conversations; None if the token is unknown."""
        if "" in self._agents:
            return self._agents[""]
        given = request.headers.get("authorization", "").encode()
        found = [compare_digest(given, f"Bearer {token}".encode()) for token in self._agents]
        return next(compress(self._agents.values(), found), None)


async def _answer(agent: ServedAgent, call: Call) -> Response:
    if call.method in ANSWERS:
        result = await ANSWERS[call.method](agent, call.params)
        return _json({"jsonrpc": "2.0", "id": call.id, "result": result})
    if call.method in STREAMS:
        stream = await STREAMS[call.method](agent, call.params)
        return StreamingResponse(
            _as_events(agent, call, stream),
            media_type="text/event-stream",
            headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"},
        )
    if "PushNotification" in call.method:
        raise RpcError(NO_PUSH, "push notifications are not offered; subscribe to the task.")
    if call.method == "GetExtendedAgentCard":
        raise RpcError(NO_EXTENDED_CARD, "there is no card except the public one.")
    raise RpcError(UNKNOWN_METHOD, f"there is no method {call.method[:100]!r}.")


async def _as_events(
    agent: ServedAgent, call: Call, stream: AsyncIterator[Json]
) -> AsyncIterator[str]:
    try:
        async for update in stream:
            yield _event({"jsonrpc": "2.0", "id": call.id, "result": update})
    except RpcError as error:
        yield _event(_error(call, error))
    except GreenroomError as error:
        agent.report(f"{call.method}: {error}")
        yield _event(_error(call, _NOT_DONE))
    except Exception:
        yield _event(_error(call, _NOT_DONE))
        raise


def _json(data: Json, headers: Mapping[str, str] | None = None) -> Response:
    # Escaped: a model may say half a surrogate pair, which UTF-8 cannot hold.
    return Response(json.dumps(data), headers=headers, media_type="application/json")


def _event(data: Json) -> str:
    return f"data: {json.dumps(data)}\n\n"


def _error(call: Call, error: RpcError) -> dict[str, Json]:
    details: dict[str, Json] = {"code": error.code, "message": str(error)}
    return {"jsonrpc": "2.0", "id": call.id, "error": details}


def _hostname(url: str) -> str:
    try:
        return (urlsplit(url).hostname or "").lower()
    except ValueError:
        return ""


@contextmanager
def _traced(headers: Mapping[str, str]) -> Generator[None]:
    """Make what is done inside part of the caller's trace, if this process exports traces."""
    if "opentelemetry.trace" not in sys.modules or "traceparent" not in headers:
        yield
        return
    from opentelemetry import context, propagate

    token = context.attach(propagate.extract(dict(headers)))
    try:
        yield
    finally:
        context.detach(token)
