"""With `fence="kernel"` cases run where the kernel itself lets nothing out but to the proxy."""

import ctypes
import json
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import suppress
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from greenroom import Case, Expect, Report, rehearse
from greenroom.errors import BadInput
from greenroom.ledger import messages
from greenroom.simulation.fence import kernel
from greenroom.suite.workers import kernel_fence
from greenroom.suite.workers.proxy import Proxy, provider_hosts
from local_servers import LocalServer

HERE = Path(__file__).parent
SHOP = HERE / "closed_in_shop.py"
ROUTES = {
    "plain",
    "awaited",
    "web",
    "process",
    "forked",
    "thread",
    "c_code",
    "bare_socket",
    "fast_open",
    "datagram",
    "name_server",
    "local_socket",
    "hidden_socket",
    "half_a_pair",
    "message_queue",
}
held = pytest.mark.skipif(
    bool(kernel.not_held_by_kernel()), reason=f"not held here: {kernel.not_held_by_kernel()}"
)


class Outside:
    """Servers by TCP, UDP and Unix sockets, a message queue of the kernel, and what reached them."""

    def __init__(self, folder: Path) -> None:
        self.heard: list[bytes] = []
        self.path = str(folder / "socket")
        self.libc = ctypes.CDLL(None)
        self.queue = self.libc.msgget(0, 0o600)
        self.local = [socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) for _ in range(2)]
        for sock, address in zip(self.local, (self.path, f"\0{self.path}"), strict=True):
            sock.bind(address)
            sock.setblocking(False)
        self.tcp = socket.create_server(("127.0.0.1", 0))
        self.udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.udp.bind(("127.0.0.1", 0))
        for serve in (self._accept, self._receive):
            Thread(target=serve, daemon=True).start()

    @property
    def ports(self) -> list[str]:
        return [str(one.getsockname()[1]) for one in (self.tcp, self.udp)]

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self.tcp.accept()
            except OSError:
                return
            with connection:
                connection.settimeout(2)
                try:
                    self.heard.append(connection.recv(1000))
                except OSError:
                    continue

    def _receive(self) -> None:
        while True:
            try:
                self.heard.append(self.udp.recv(1000))
            except OSError:
                return

    def close(self) -> None:
        for sock in (self.tcp, self.udp, *self.local):
            sock.close()
        self.libc.msgctl(self.queue, 0, None)

    def _collect(self) -> None:
        for sock in self.local:
            with suppress(BlockingIOError):
                while True:
                    self.heard.append(sock.recv(1000))
        message = ctypes.create_string_buffer(100)
        if self.libc.msgrcv(self.queue, message, 80, 0, 0o4000) > 0:
            self.heard.append(message.raw)

    def reached_by(self) -> set[str]:
        time.sleep(0.3)
        self._collect()
        heard, self.heard = b"\n".join(self.heard), []
        return {route for route in ROUTES if route.encode() in heard}


@pytest.fixture
def outside(tmp_path: Path) -> Iterator[Outside]:
    made = Outside(tmp_path)
    yield made
    made.close()


@held
def test_no_way_out_leads_out_each_of_which_does_without_the_fence(
    outside: Outside, tmp_path: Path
) -> None:
    file, scratch = tmp_path / "file", tmp_path / "scratch"
    scratch.mkdir()
    script = [sys.executable, str(HERE / "egress.py"), *outside.ports]
    script += [outside.path, str(outside.queue)]
    subprocess.run(script, check=True, timeout=60)
    assert outside.reached_by() == ROUTES  # every canary sings

    rules = json.dumps({"writable": [str(scratch)], "port": 9})
    paths = [str(file), str(scratch / "file")]
    subprocess.run([*script, rules, *paths], check=True, timeout=60)
    assert outside.reached_by() == set()
    assert not file.exists()
    assert (scratch / "file").read_text() == "written"


class Provider(BaseHTTPRequestHandler):
    """A provider of models."""

    asked: list[str] = []  # noqa: RUF012 - one for all that are asked

    def do_POST(self) -> None:
        self.asked.append(self.rfile.read(int(self.headers["Content-Length"])).decode())
        body = json.dumps({"text": "Hello from outside."}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing."""


@pytest.fixture
def provider(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    server = LocalServer(("127.0.0.1", 0), Provider)
    Provider.asked.clear()
    Thread(target=server.serve_forever, daemon=True).start()
    monkeypatch.setenv("SHOP_BASE_URL", f"http://127.0.0.1:{server.server_port}/v1")
    yield f"127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


def played(agent: str, says: str = "Hello?", fence: str = "kernel", **options: Any) -> Report:
    case = Case("one", says, expect=Expect(contains="Hello"))
    return rehearse(f"{SHOP}:{agent}", [case], workers=1, fence=fence, **options)


def last_words(report: Report) -> str:
    ledger = report.results[0].ledger
    assert ledger is not None
    return messages(ledger)[-1].text


@held
def test_a_case_is_closed_in_by_the_kernel(
    outside: Outside, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SHOP_PORT", outside.ports[0])
    monkeypatch.setenv("SHOP_FILE", str(tmp_path / "file"))
    assert last_words(played("sneaks", fence="process")).endswith("tcp=True udp=True wrote=True")
    (tmp_path / "file").unlink()
    report = played("sneaks")
    assert last_words(report).endswith("tcp=False udp=False wrote=False")
    assert not (tmp_path / "file").exists()
    assert not any("not held" in note for note in report.notes)


@held
def test_a_model_of_an_allowed_provider_is_asked_through_the_proxy(provider: str) -> None:
    assert provider in provider_hosts()
    report = played("asks")
    assert last_words(report) == "Hello from outside."
    assert Provider.asked == ['{"asked":"Hello?"}']


@pytest.mark.heavy
@held
def test_a_host_that_nothing_allows_is_refused_with_what_to_type(
    provider: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kernel_fence, "provider_hosts", lambda: ["api.openai.com"])
    report = played("asks")
    assert Provider.asked == []
    assert report.results[0].status == "error"
    assert any(f"--fence kernel:{provider.partition(':')[0]}" in note for note in report.notes)
    assert last_words(played("asks", fence=f"kernel:{provider}")) == "Hello from outside."


@pytest.mark.parametrize(
    "tool", ["fetch_in_tunnel", pytest.param("fetch", marks=pytest.mark.heavy)]
)
@held
def test_a_live_tool_asks_the_proxy_for_its_own_hosts_alone(
    tool: str,
    provider: str,
    outside: Outside,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("SHOP_BASE_URL")  # only the tool's own hosts lead there
    other = f"127.0.0.1:{outside.ports[0]}"
    (tmp_path / f"{tool}_cases.py").write_text(
        "import sys\n"
        f"sys.path.insert(0, {str(HERE)!r})\n"
        "from greenroom import Case, Expect, live\n"
        f"from closed_in_shop import {tool}\n"
        f"mocks = {{{tool!r}: live({tool}, hosts=[{provider!r}])}}\n"
        "def asks(host):\n"
        "    return Case(host, f'http://{host}/v1', mocks=mocks, expect=Expect(contains='Hello'))\n"
        f"cases = [asks({provider!r}), asks({other!r})]\n"
    )
    cases = f"{tmp_path / f'{tool}_cases.py'}:cases"
    report = rehearse(f"{SHOP}:{tool}_agent", cases, workers=1, fence=f"kernel:{other}")
    reached, refused = report.results
    assert reached.status == "passed", reached.error
    assert len(Provider.asked) == 1
    assert refused.status == "error"
    assert "the fence refused" in str(refused.error)
    time.sleep(0.3)
    assert outside.heard == []


@pytest.mark.heavy
@held
def test_a_run_that_the_kernel_fenced_is_not_resumed_without_it(tmp_path: Path) -> None:
    case = Case("one", "Hello?", expect=Expect(contains="Hello"))
    agent, store = f"{SHOP}:greets", tmp_path / "runs"
    begun = rehearse(agent, [case], fence="kernel", workers=1, store=store)
    with pytest.raises(BadInput, match="the kernel enforced its fence"):
        rehearse(agent, [case], store=store, resume=begun.id)
    again = rehearse(agent, [case], fence="kernel", workers=1, store=store, resume=begun.id)
    assert again.results[0].status == "passed"
    free = rehearse(agent, [case], store=store)
    closer = rehearse(agent, [case], fence="kernel", workers=1, store=store, resume=free.id)
    assert closer.results[0].status == "passed"


def test_a_kernel_without_it_is_said_in_the_notes_and_nothing_else_changes(
    provider: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    why = "anything: this kernel has no Landlock, or has it switched off"
    monkeypatch.setattr(kernel_fence, "not_held_by_kernel", lambda: (why,))
    report = played("asks")
    assert last_words(report) == "Hello from outside."
    assert any("the kernel fence is not held for anything" in note for note in report.notes)
    assert "the kernel fence is not held" in str(report)


@pytest.mark.parametrize(
    "version, reasons",
    [(0, ["anything"]), (1, ["TCP"]), (3, ["TCP"]), (4, []), (7, [])],
)
def test_what_a_kernel_cannot_hold_is_named(
    version: int, reasons: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setattr(kernel, "landlock_version", lambda: version)
    monkeypatch.setattr(kernel, "_has_seccomp", lambda: True)
    monkeypatch.setattr(kernel.platform, "machine", lambda: "x86_64")
    assert [why.partition(":")[0] for why in kernel.not_held_by_kernel()] == reasons
    monkeypatch.setattr(kernel.platform, "machine", lambda: "sparc")
    assert ("UDP and other sockets" in str(kernel.not_held_by_kernel())) == (version > 0)
    monkeypatch.setattr(sys, "platform", "darwin")
    assert "darwin" in kernel.not_held_by_kernel()[0]


@pytest.mark.parametrize("fence", ["kernels", "kernel:", "kernel:a b", "", 1, None, "process:x"])
def test_a_fence_that_makes_no_sense_is_refused(fence: Any) -> None:
    with pytest.raises(BadInput, match="fence="):
        rehearse(f"{SHOP}:asks", [Case("one", "x")], fence=fence)


def test_the_proxy_leads_to_allowed_hosts_by_name_and_port_alone() -> None:
    proxy = Proxy(["API.example", "local:8080"], lambda _: None)
    try:
        assert proxy.admits("api.example", 443)
        assert proxy.admits("local", 8080)
        assert not proxy.admits("local", 81)
        assert not proxy.admits("evil.example", 443)
        with socket.create_connection(("127.0.0.1", proxy.port), 5) as sock:
            sock.sendall(b"CONNECT evil.example:443 HTTP/1.1\r\n\r\n")
            assert sock.recv(100).startswith(b"HTTP/1.1 403")
        with socket.create_connection(("127.0.0.1", proxy.port), 5) as sock:
            sock.sendall(b"nonsense\r\n\r\n")
            assert sock.recv(100) == b""
    finally:
        proxy.close()


@pytest.mark.heavy
def test_nothing_is_left_behind(provider: str) -> None:
    folder = Path(tempfile.gettempdir())
    before = set(folder.glob("greenroom-scratch-*"))
    played("asks")
    assert set(folder.glob("greenroom-scratch-*")) <= before
