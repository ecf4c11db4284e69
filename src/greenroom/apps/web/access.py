"""Access control: every request passes here before a route sees it.

An attacker may be a site that is open in the same browser, another user of the machine, or a link. So a request
must name this server as its host, even to read: a rebound name sends no Origin. Routes with data need
the token as a header, which no foreign site can send; there is no cookie that could be abused. Requests that
change something must also come from our own page, as JSON.
"""

from collections.abc import Collection
from dataclasses import dataclass
from hmac import compare_digest

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from greenroom.reports.page.shell import POLICY

LARGEST_BODY = 2_000_000
LARGEST_FILE = 20_000_000
"""The limit for an eval set's text, which may be larger than any other request."""
_HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "X-Accel-Buffering": "no",
}
USER = "greenroom.user"
"""The key in a request's scope that holds the name which an authenticating proxy gave."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """Which requests are answered."""

    hosts: Collection[str]
    """The hosts that a request may name, with their port."""
    token: str
    auth_header: str = ""
    """The header in which an authenticating proxy names the user; empty if there is no proxy."""
    proxies: Collection[str] = ()
    """The addresses from which that header is trusted."""

    def refusal(self, scope: Scope, headers: Headers) -> tuple[int, str, str] | None:
        """The status, what is wrong and what to do; None if the request may pass."""
        host = headers.get("host", "")
        if len(headers.getlist("host")) != 1 or host.lower() not in self.hosts:
            return 421, f"this server is not called {host!r}", "Use the address it printed."
        is_data = scope["path"] == "/api" or scope["path"].startswith("/api/")
        is_foreign = headers.get("sec-fetch-site", "same-origin") in ("cross-site", "same-site")
        if is_foreign and (is_data or headers.get("sec-fetch-mode") != "navigate"):
            return 403, "another site asked", "Open the page by its own address."
        if not is_data and scope["method"] not in ("GET", "HEAD"):
            return 405, "a page can only be read", "Use GET."
        if not is_data:
            return None
        if not self._is_known(scope, headers):
            return 401, "the token is missing or wrong", "Open the address the server printed."
        return None if scope["method"] == "GET" else self._acting(headers)

    def _is_known(self, scope: Scope, headers: Headers) -> bool:
        if self.user(scope, headers):
            return True
        kind, _, given = headers.get("authorization", "").partition(" ")
        return kind == "Bearer" and compare_digest(given.encode(), self.token.encode())

    def user(self, scope: Scope, headers: Headers) -> str:
        """The name that the proxy gave; empty if it gave none, or is not a trusted proxy."""
        peer = (scope.get("client") or ("", 0))[0]
        if not self.auth_header or peer not in self.proxies:
            return ""
        return headers.get(self.auth_header, "").strip()

    def _acting(self, headers: Headers) -> tuple[int, str, str] | None:
        """Refuse a change that does not come from our own page, as JSON."""
        origin = headers.get("origin", "")
        if origin.partition("://")[2].lower() != headers["host"].lower() or not origin:
            return 403, f"the request comes from {origin or 'nowhere'!r}", "Use the page itself."
        if headers.get("content-type", "").partition(";")[0].strip() != "application/json":
            return 415, "the request is not JSON", "Send Content-Type: application/json."
        return None


class Guard:
    """Refuses forbidden requests, limits the size of others, and adds security headers to every answer."""

    def __init__(self, app: ASGIApp, access: Access) -> None:
        self._app = app
        self._access = access

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or say why not."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":
            return  # nothing here speaks WebSocket: the connection is closed

        async def send_safely(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                headers.update(_HEADERS)
                headers.setdefault("Cache-Control", "no-store")
            await send(message)

        headers = Headers(scope=scope)
        refused = self._access.refusal(scope, headers)
        if refused is not None:
            status, what, next_step = refused
            answer = JSONResponse({"error": what, "next": next_step}, status_code=status)
            await answer(scope, receive, send_safely)
            return
        scope[USER] = self._access.user(scope, headers)
        await self._app(scope, bounded(receive, scope), send_safely)


class TooLarge(Exception):
    """A request's body is larger than any that the page sends."""


def bounded(receive: Receive, scope: Scope) -> Receive:
    """Receive a request's body, and refuse it from the first byte that is too much."""
    largest = LARGEST_FILE if scope["path"].startswith("/api/sets") else LARGEST_BODY
    taken = 0

    async def receive_some() -> Message:
        nonlocal taken
        message = await receive()
        taken += len(message.get("body", b""))
        if taken > largest:
            raise TooLarge(f"a request has at most {largest:,} bytes")
        return message

    return receive_some
