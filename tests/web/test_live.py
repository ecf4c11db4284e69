"""What is written to the store reaches a page exactly once, whichever process writes or is killed."""

from collections import Counter
from collections.abc import Callable
from http.client import HTTPException
from pathlib import Path
from threading import Thread
from typing import Any
from urllib.error import URLError

import pytest

from greenroom.store import Store
from store.servers import server as postgres
from web.serving import Server, kill, project, rehearse, until, wait

COUNT = 40


class Tab:
    """A page that follows the store and takes up the stream wherever it was cut."""

    def __init__(self, server: Server) -> None:
        self.server = server
        self.seen: list[tuple[str, Any]] = []
        self.since = ""
        self.ended = False
        self.thread = Thread(target=self.follow, daemon=True)
        self.thread.start()

    def follow(self) -> None:
        while not self.ended:
            try:
                for position, event, data in self.server.events(f"?since={self.since}"):
                    self.since = position or self.since
                    self.seen.append((event, data))
                    if event == "run" and data["status"] in ("finished", "interrupted"):
                        self.ended = True
                        return
            except (OSError, URLError, HTTPException, ValueError):
                continue

    def results(self) -> Counter[str]:
        return Counter(data["case"] for event, data in self.seen if event == "trial")


@pytest.mark.e2e
def test_every_result_of_another_process_reaches_every_tab_once(
    tmp_path: Path, serve: Callable[..., Server]
) -> None:
    project(tmp_path, COUNT)
    (tmp_path / "runs").mkdir()
    server = serve(tmp_path)
    tabs = [Tab(server), Tab(server)]
    run = rehearse(tmp_path, "--max-concurrency", "4")
    wait(run)
    for tab in tabs:
        tab.thread.join(30)
        assert set(tab.results().values()) == {1}
        assert len(tab.results()) == COUNT


@pytest.mark.slow
def test_a_killed_server_loses_and_repeats_nothing(
    tmp_path: Path, serve: Callable[..., Server]
) -> None:
    project(tmp_path, COUNT)
    (tmp_path / "runs").mkdir()
    server = serve(tmp_path)
    tab = Tab(server)
    until(lambda: bool(tab.since))
    run = rehearse(tmp_path, "--max-concurrency", "2")
    until(lambda: len(tab.results()) >= 5 or run.poll() is not None)
    assert server.process is not None
    kill(server.process)
    server.start()
    wait(run)
    tab.thread.join(30)
    assert set(tab.results().values()) == {1}
    assert len(tab.results()) == COUNT


@pytest.mark.heavy
def test_a_run_on_postgres_is_followed_through_a_restart_of_the_server(
    tmp_path: Path, serve: Callable[..., Server]
) -> None:
    project(tmp_path, COUNT)
    with postgres() as running:
        if running is None:
            pytest.skip("PostgreSQL is not installed")
        address = running.url("followed")
        Store(address).database.upgrade()
        server = serve(tmp_path, store=address)
        tabs = [Tab(server), Tab(server)]
        run = rehearse(tmp_path, "--max-concurrency", "2", store=address)
        until(lambda: len(tabs[0].results()) >= 5 or run.poll() is not None)
        assert server.process is not None
        kill(server.process)
        server.start()
        wait(run)
        for tab in tabs:
            tab.thread.join(60)
            assert set(tab.results().values()) == {1}
            assert len(tab.results()) == COUNT
        [found] = server.get("/api/runs")["runs"]
        assert server.get(f"/api/runs/{found['id']}/rows")["total"] == COUNT
        server.stop()


@pytest.mark.slow
def test_a_killed_run_is_seen_to_be_interrupted(
    tmp_path: Path, serve: Callable[..., Server]
) -> None:
    project(tmp_path, 400)
    (tmp_path / "runs").mkdir()
    server = serve(tmp_path)
    tab = Tab(server)
    run = rehearse(tmp_path, "--max-concurrency", "1")
    until(lambda: len(tab.results()) >= 2)
    kill(run)
    tab.thread.join(30)
    assert tab.seen[-1][0] == "run"
    assert tab.seen[-1][1]["status"] == "interrupted"


def test_a_place_in_another_store_means_asking_for_everything(
    rehearsed: Path, serve: Callable[..., Server]
) -> None:
    server = serve(rehearsed)
    for since in ("9999999", "x", "-1"):
        position, event, _ = next(server.events(f"?since={since}"))
        assert event == "again"
        assert position.isdecimal()
    position, event, _ = next(server.events())
    assert event == "here"
