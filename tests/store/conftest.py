"""Tests of the store hold for both of its engines."""

from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path

import pytest

from greenroom.store import Store
from greenroom.store.database import Database
from store.servers import Server, server

BOTH = {
    "store.test_costs",
    "store.test_drift",
    "store.test_going_on",
    "store.test_identity",
    "store.test_long_texts",
    "store.test_resumed_reports",
    "store.test_resuming",
    "store.test_schema",
    "store.test_secrets",
    "store.test_shards",
    "store.test_store",
}
"""The modules whose tests run on a server as well, but for those marked `sqlite`."""


@pytest.fixture(scope="session")
def postgres() -> Iterator[Server]:
    """A Postgres server for all tests; they are skipped where there is none."""
    with server() as running:
        if running is None:
            pytest.skip("PostgreSQL is not installed")
        yield running


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run tests on both engines; on the server only among the heavy ones."""
    name = str(getattr(metafunc.module, "__name__", "")).removeprefix("tests.")
    is_of_files = any(metafunc.definition.iter_markers("sqlite"))
    if name in BOTH and not is_of_files:
        on_server = pytest.param("postgres", marks=pytest.mark.heavy)
        metafunc.parametrize("engine", ["sqlite", on_server], indirect=True)


@pytest.fixture(autouse=True)
def engine(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where stores are kept that a test has in a folder."""
    if getattr(request, "param", "sqlite") != "postgres":
        return
    running: Server = request.getfixturevalue("postgres")
    opened: dict[str, Database] = {}

    def on_server(place: str | Path) -> Database:
        folder = str(Path(place).absolute())
        if folder not in opened:
            schema = f"t{sha256(folder.encode()).hexdigest()[:16]}"
            opened[folder] = Store(running.url(schema)).database
            opened[folder].upgrade()
        return opened[folder]

    # The address is asked for before the way to open it is changed.
    from greenroom.store import store as module

    usual = module._database  # pyright: ignore[reportPrivateUsage]
    monkeypatch.setattr(
        module,
        "_database",
        lambda place: usual(place) if "://" in str(place) else on_server(place),
    )
