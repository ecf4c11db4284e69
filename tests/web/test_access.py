"""Who may ask: every route, asked as no page of ours would."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from starlette.routing import Route

from greenroom.apps.web.app import routes
from greenroom.apps.web.live import Feed
from greenroom.apps.web.site import Settings, Site
from greenroom.store import Store
from warm_python import COMMANDS, WarmPython
from web.serving import Server

SITE = Site.of(Store("nowhere"), Settings())
ROUTES = sorted(
    (route.path, method)
    for route in routes(SITE, Feed(SITE.store))
    if isinstance(route, Route)
    for method in sorted(route.methods or ())
    if method != "HEAD"
)
DATA = [(path, method) for path, method in ROUTES if path.startswith("/api")]


@pytest.fixture(scope="module")
def server(rehearsed: Path) -> Iterator[Server]:
    started = Server(rehearsed).start()
    yield started
    assert started.stop() == 0


def asked(server: Server, path: str, method: str, **headers: str) -> int:
    """The status of a request with exactly these headers; `_` stands for `-`."""
    given = {"Host": f"127.0.0.1:{server.port}", "Connection": "close"}
    if method != "GET":
        given |= {
            "Origin": server.origin,
            "Content-Type": "application/json",
            "Content-Length": "2",
        }
    given["Authorization"] = f"Bearer {server.token}"
    given |= {name.replace("_", "-"): value for name, value in headers.items()}
    lines = [f"{name}: {value}" for name, value in given.items() if value]
    body = "{}" if method != "GET" else ""
    path = path.replace("{run}", "nothing").replace("{", "").replace("}", "")
    return server.raw("\n".join([f"{method} {path} HTTP/1.1", *lines, "", body]))[0]


def test_routes_are_looked_at() -> None:
    assert ("/api/runs", "GET") in DATA


@pytest.mark.parametrize("path, method", DATA)
def test_data_is_given_to_our_own_page_alone(server: Server, path: str, method: str) -> None:
    if path != "/api/stream":
        assert asked(server, path, method) not in (401, 403, 415, 421)
    assert asked(server, path, method, Authorization="") == 401
    assert asked(server, path, method, Authorization="Bearer wrong") == 401
    assert asked(server, path, method, Authorization=f"Basic {server.token}") == 401
    assert asked(server, path, method, Host="evil.example:80") == 421
    assert asked(server, path, method, Host=f"evil.example:{server.port}") == 421
    assert asked(server, path, method, Host="") in (400, 421)
    assert asked(server, path, method, Sec_Fetch_Site="cross-site") == 403
    assert asked(server, path, method, Sec_Fetch_Site="same-site") == 403


@pytest.mark.parametrize("path, method", [one for one in DATA if one[1] != "GET"])
def test_what_acts_must_come_from_our_page_as_json(server: Server, path: str, method: str) -> None:
    assert asked(server, path, method, Origin="") == 403
    assert asked(server, path, method, Origin="null") == 403
    assert asked(server, path, method, Origin="https://evil.example") == 403
    assert asked(server, path, method, Origin=f"http://localhost:{server.port}") == 403
    assert asked(server, path, method, Content_Type="text/plain") == 415


@pytest.mark.parametrize(
    "path", ["/api/..%2f..%2fetc/passwd", "/api/runs/%00", "/api/runs/../here"]
)
def test_a_path_leads_nowhere_else(server: Server, path: str) -> None:
    assert asked(server, path, "GET") == 404


def test_two_hosts_are_none(server: Server) -> None:
    host = f"127.0.0.1:{server.port}"
    token = f"Authorization: Bearer {server.token}"
    lines = f"GET /api/here HTTP/1.1\nHost: {host}\nHost: {host}\n{token}\nConnection: close\n\n"
    assert server.raw(lines)[0] in (400, 421)


def test_no_answer_lets_a_browser_do_more_than_our_page_does(server: Server) -> None:
    _, answer = server.raw(
        f"GET /api/here HTTP/1.1\nHost: 127.0.0.1:{server.port}\nConnection: close\n"
        f"Authorization: Bearer {server.token}\n\n"
    )
    head = answer.partition("\r\n\r\n")[0].lower()
    for header in (
        "content-security-policy: default-src 'none'; script-src 'self';",
        "x-content-type-options: nosniff",
        "referrer-policy: no-referrer",
        "cross-origin-opener-policy: same-origin",
        "cross-origin-resource-policy: same-origin",
        "cache-control: no-store",
    ):
        assert header in head
    assert "access-control" not in head
    assert "set-cookie" not in head
    assert "server: " not in head


def test_a_browser_can_connect_as_soon_as_it_is_opened(tmp_path: Path) -> None:
    browser, log = tmp_path / "browser", tmp_path / "connected"
    browser.write_text(
        f"#!/bin/bash\nrest=${{1#http://*:}}\n: </dev/tcp/127.0.0.1/${{rest%%/*}} && touch {log}\n"
    )
    browser.chmod(0o755)
    command = [sys.executable, "-m", "greenroom", "web", "--store", "runs", "--port", "0"]
    process = WarmPython(
        command,
        cwd=tmp_path,
        env={**os.environ, "BROWSER": str(browser)},
        stderr=subprocess.DEVNULL,
        modules=(*COMMANDS, "greenroom.apps.web.server"),
    )
    until = time.monotonic() + 60
    while process.poll() is None and not log.exists() and time.monotonic() < until:
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    process.wait()
    assert log.exists()


def test_the_token_is_for_this_user_alone(server: Server) -> None:
    note = server.folder / "runs" / "web" / "server.json"
    assert note.stat().st_mode & 0o777 == 0o600


def test_a_server_that_comes_first_makes_a_folder_for_its_owner_alone(
    tmp_path: Path, serve: Callable[..., Server]
) -> None:
    (tmp_path / "shop.py").write_text("def agent(text: str) -> str:\n    return 'Noted.'\n")
    server = serve(tmp_path, "shop.py:agent", store=".greenroom")
    assert server.request("/api/plays", "POST", {"agent": 0})[0] == 200
    home = tmp_path / ".greenroom"
    assert (home / ".gitignore").read_text() == "*\n"
    modes = {path: path.stat().st_mode & 0o777 for path in (home, home / "web", home / "plays")}
    assert set(modes.values()) == {0o700}


def test_a_name_given_by_a_stranger_is_not_believed(
    rehearsed: Path, serve: Callable[..., Server]
) -> None:
    trusting = serve(rehearsed, "--auth-header", "X-Forwarded-User", "--proxy", "127.0.0.1")
    named = {"Authorization": "", "X_Forwarded_User": "ana"}
    assert asked(trusting, "/api/here", "GET", **named) == 200
    assert trusting.request("/api/here", headers={"X-Forwarded-User": "ana"})[1]["user"] == "ana"
    trusting.stop()
    strict = serve(rehearsed, "--auth-header", "X-Forwarded-User", "--proxy", "10.0.0.5")
    assert asked(strict, "/api/here", "GET", **named) == 401


@pytest.mark.parametrize(
    "options, said",
    [
        (["--host", "0.0.0.0"], "--allow-host"),
        (["--host", "0.0.0.0", "--allow-host", "evals.example.com"], "--auth-header"),
        (["--token-file", "missing"], "missing"),
        (["--port", "99999"], "99999 is not in the range 0<=x<=65535"),
    ],
)
def test_a_door_that_nobody_watches_is_not_opened(
    rehearsed: Path, options: list[str], said: str
) -> None:
    server = Server(rehearsed, tuple(options))
    with pytest.raises(AssertionError, match=said):
        server.start()
    assert server.process is not None
    assert server.process.wait(600) == 3
