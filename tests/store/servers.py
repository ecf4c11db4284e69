"""A Postgres server of the tests' own, started and killed by them."""

import os
import pwd
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Generator
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path
from time import monotonic, sleep
from typing import Any

from greenroom.store import Store

_NUMBERS = count()
_SETTINGS = ("max_connections=80", "shared_buffers=32MB", "autovacuum_naptime=5s")


def programs() -> Path | None:
    """The folder of Postgres's programs; None where it is not installed."""
    found = shutil.which("postgres")
    if found:
        # Where its other programs are, too: the one on the path may be a link.
        return Path(found).resolve().parent
    folders = sorted(Path("/usr/lib/postgresql").glob("*/bin/postgres"))
    return folders[-1].parent if folders else None


class Server:
    """A server in a folder of its own, reached by a socket in it, or by a port of this machine."""

    def __init__(self, folder: Path, bin: Path, *settings: str) -> None:
        self.folder = folder
        self.bin = bin
        self.settings = (*_SETTINGS, *settings)
        self._process: subprocess.Popen[Any] | None = None
        # Postgres refuses to run for root.
        self._user = "nobody" if os.getuid() == 0 else pwd.getpwuid(os.getuid()).pw_name
        if os.getuid() == 0:
            nobody = pwd.getpwnam("nobody")
            os.chown(folder, nobody.pw_uid, nobody.pw_gid)
        self._run("initdb", "-D", f"{folder}/data", "-A", "trust", "-U", "postgres", "-N")
        self.start()

    def _as_user(self) -> dict[str, Any]:
        if os.getuid():
            return {}
        nobody = pwd.getpwnam("nobody")
        return {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": []}

    def _run(self, program: str, *args: str) -> None:
        subprocess.run(
            [self.bin / program, *args],
            check=True,
            capture_output=True,
            cwd=self.folder,
            **self._as_user(),
        )

    def start(self) -> None:
        """Start, and wait until it answers."""
        options = [word for setting in self.settings for word in ("-c", setting)]
        with (self.folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                [
                    *(self.bin / "postgres", "-D", f"{self.folder}/data"),
                    *("-k", str(self.folder), "-c", "listen_addresses=", *options),
                ],
                stdout=log,
                stderr=log,
                cwd=self.folder,
                **self._as_user(),
            )
        until = monotonic() + 60
        while subprocess.run(
            [self.bin / "pg_isready", "-q", "-h", str(self.folder)], check=False
        ).returncode:
            assert monotonic() < until, (self.folder / "log").read_text()[-2000:]
            sleep(0.05)

    def kill(self) -> None:
        """Kill all of it at once, as a power cut would."""
        assert self._process is not None
        children = children_of(self._process.pid)
        self._process.send_signal(signal.SIGKILL)
        self._process.wait()
        for pid in children:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        (self.folder / "data" / "postmaster.pid").unlink(missing_ok=True)

    def sessions(self) -> list[int]:
        """The processes that serve a connection of a store."""
        assert self._process is not None
        found: list[int] = []
        for pid in children_of(self._process.pid):
            with suppress(OSError):
                title = Path(f"/proc/{pid}/cmdline").read_bytes()
                found += [pid] if title.startswith(b"postgres: postgres postgres") else []
        return found

    def stop(self) -> None:
        """Stop it."""
        assert self._process is not None
        self._process.send_signal(signal.SIGINT)
        self._process.wait()

    def url(self, schema: str = "", **options: object) -> str:
        """The address of a store on it, in a schema of its own unless one is named."""
        asked = {"host": self.folder, "schema": schema or f"s{next(_NUMBERS)}", **options}
        return "postgresql://postgres@/postgres?" + "&".join(f"{k}={v}" for k, v in asked.items())

    def sql(self, *statements: str) -> None:
        """Run statements past the store."""
        words = [word for statement in statements for word in ("-c", statement)]
        self._run("psql", "-q", "-h", str(self.folder), "-U", "postgres", "postgres", *words)

    def store(self, **options: Any) -> Store:
        """A new store."""
        store = Store(self.url(**options))
        store.database.upgrade()
        return store


@contextmanager
def server(*settings: str) -> Generator[Server | None]:
    """A server for a while; None where Postgres is not installed."""
    found = programs()
    if found is None:
        yield None
        return
    folder = Path(tempfile.mkdtemp(prefix="pg-"))
    try:
        folder.chmod(0o755)
        running = Server(folder, found, *settings)
        try:
            yield running
        finally:
            running.stop()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def children_of(parent: int) -> list[int]:
    """The processes that a process has started."""
    found: list[int] = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            fields = path.read_text(encoding="utf-8").rpartition(")")[2].split()
            if int(fields[1]) == parent:
                found.append(int(path.parent.name))
    return found
