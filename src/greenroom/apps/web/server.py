"""The server as a process: its address, its token, and the file by which others find it."""

import json
import os
import secrets
import socket
import sys
import webbrowser
from collections.abc import Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from greenroom.errors import BadInput, MissingExtra
from greenroom.installation import how_to_install
from greenroom.ledger.private_folders import make_private
from greenroom.store.web_address import server_note

if TYPE_CHECKING:
    from collections.abc import Generator, Mapping

    from greenroom.apps.web.site import Settings
    from greenroom.store import Store

LOOPBACK = ("127.0.0.1", "localhost", "[::1]")
_UVICORN: dict[str, Any] = {
    "log_level": "warning",
    "access_log": False,  # addresses may hold what people search for
    "loop": "asyncio",
    "http": "h11",
    "ws": "none",
    "server_header": False,
    "proxy_headers": False,
    "timeout_graceful_shutdown": 1,
    "backlog": 64,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Address:
    """Where the server listens, and who may connect."""

    host: str = "127.0.0.1"
    port: int = 8765
    allow_hosts: Sequence[str] = ()
    """Names by which a proxy passes requests on."""
    auth_header: str = ""
    proxies: Sequence[str] = ()
    token_file: str = ""

    @property
    def is_local(self) -> bool:
        """Whether only this machine can reach it."""
        return self.host in ("127.0.0.1", "localhost", "::1")

    def names(self, port: int) -> frozenset[str]:
        """The hosts that requests may name."""
        local = [f"{name}:{port}" for name in LOOPBACK] if self.is_local else []
        return frozenset([*local, *(name.lower() for name in self.allow_hosts)])

    def check(self, *, read_only: bool) -> None:
        """Refuse to listen for other machines without an access check."""
        if self.is_local:
            return
        if not self.allow_hosts:
            raise BadInput(
                f"--host {self.host} lets other machines in; give the name they use for this one: "
                f"--allow-host evals.example.com."
            )
        signs_in = self.auth_header and self.proxies
        if not signs_in and not (read_only and self.token_file):
            raise BadInput(
                f"--host {self.host} lets other machines in; let a proxy sign them in (--auth-header "
                f"X-Forwarded-User --proxy ADDRESS), or share a page that cannot act (--read-only "
                f"--token-file FILE)."
            )


def serve(store: "Store", settings: "Settings", address: Address, *, browser: bool = True) -> None:
    """Serve until Ctrl-C."""
    address.check(read_only=settings.read_only)
    try:
        import uvicorn

        from greenroom.apps.web.access import Access
        from greenroom.apps.web.app import build
    except ImportError as error:
        raise MissingExtra(
            f"greenroom web needs the package {error.name!r}. Install it with {how_to_install('web')}."
        ) from error
    listening = _listen(address)
    port = int(listening.getsockname()[1])
    access = Access(
        hosts=address.names(port),
        token=_token(address.token_file),
        auth_header=address.auth_header,
        proxies=address.proxies,
    )
    config = uvicorn.Config(build(store, settings, access), **_UVICORN)
    home = f"http://{address.host}:{port}"
    link = f"{home}/#t={access.token}"
    shown = home if address.is_local else ""
    note = {"port": port, "pid": os.getpid(), "token": access.token, "address": shown}
    make_private(store.place, server_note(store.place).parent.name)
    with _known(server_note(store.place), note):
        who = "only this machine" if address.is_local else "behind your proxy"
        print(f"Greenroom is at {link} ({who}; Ctrl-C stops it)", file=sys.stderr, flush=True)
        if browser and address.is_local:
            webbrowser.open(link)
        with suppress(KeyboardInterrupt):  # uvicorn raises it again when all is closed
            uvicorn.Server(config).run(sockets=[listening])


def _listen(address: Address) -> socket.socket:
    family = socket.AF_INET6 if ":" in address.host else socket.AF_INET
    listening = socket.socket(family, socket.SOCK_STREAM)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((address.host, address.port))
        listening.listen()  # whoever is told the address may ask at once
    except (OSError, OverflowError) as error:
        listening.close()
        raise BadInput(
            f"{address.host}:{address.port} cannot be used: {error}. Choose another port, or any that is "
            f"free: --port 0."
        ) from error
    return listening


def _token(file: str) -> str:
    """A new token, or that of a file which a team shares."""
    if not file:
        return secrets.token_urlsafe(32)
    try:
        token = Path(file).read_text(encoding="ascii").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise BadInput(f"--token-file {file}: {error}.") from error
    if len(token) < 20:
        raise BadInput(
            f"--token-file {file}: the token has {len(token)} characters; it needs at least 20, as "
            f'`python -c "import secrets; print(secrets.token_urlsafe(32))"` makes them.'
        )
    return token


@contextmanager
def _known(note: Path, facts: "Mapping[str, object]") -> "Generator[None]":
    """Write a file that tells this user's other commands, such as `eval run`, that the server runs."""
    # Two servers of one store may start at once: each writes its own file, and the last one counts.
    own = note.with_suffix(f".{os.getpid()}")
    own.unlink(missing_ok=True)
    file = os.open(own, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(file, "w") as writing:
        json.dump(facts, writing)
    own.replace(note)
    try:
        yield
    finally:
        with suppress(OSError):
            if json.loads(note.read_text())["pid"] == os.getpid():
                note.unlink()
