from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

pytest.importorskip("starlette", reason="the extra `web` is not installed")

from web.serving import Server, project, rehearse, wait


@pytest.fixture(scope="session")
def rehearsed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project with one finished run of 30 cases."""
    folder = project(tmp_path_factory.mktemp("rehearsed"), 30)
    wait(rehearse(folder))
    return folder


@pytest.fixture
def serve() -> Iterator[Callable[..., Server]]:
    started: list[Server] = []

    def start(folder: Path, *options: str, store: str = "runs") -> Server:
        started.append(Server(folder, options, store=store).start())
        return started[-1]

    yield start
    for server in started:
        if server.process is not None and server.process.poll() is None:
            server.stop()
