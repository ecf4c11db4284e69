"""A store on a real server: whoever is killed or goes away, no tool acts twice and no trial is lost."""

import asyncio
import os
import random
import resource
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from apps.terminals import started
from greenroom import Agent, Case, EvalSet, Scripted, Turn, evaluate, tool
from greenroom.errors import StoreFailed
from greenroom.ledger import ToolCall
from greenroom.metrics import contains
from greenroom.models import ModelReply
from greenroom.store import Store
from store.asked import Asked
from store.recount import recounted
from store.servers import Server, server
from torture.acting import Acts

pytestmark = pytest.mark.heavy


@pytest.fixture(scope="module")
def postgres() -> Iterator[Server]:
    with server() as running:
        if running is None:
            pytest.skip("PostgreSQL is not installed")
        yield running


@pytest.fixture
def mortal() -> Iterator[Server]:
    """A server that a test may kill."""
    with server() as running:
        if running is None:
            pytest.skip("PostgreSQL is not installed")
        yield running


# Whoever runs is killed


@pytest.mark.parametrize("sent", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize("workers", [(), ("--workers", "2")], ids=["alone", "workers"])
def test_a_real_tool_acts_once_though_its_run_is_killed(
    postgres: Server, tmp_path: Path, sent: signal.Signals, workers: tuple[str, ...]
) -> None:
    url = postgres.store().address
    acts = Acts(tmp_path, "--max-concurrency", "8", *workers, store=url)
    assert acts.killed(random.Random(sent), sent, kills=3)
    acts.finish()
    acts.check()
    assert _events(postgres, url) == 0


def _events(postgres: Server, url: str) -> int:
    with Store(url).database.connected() as connection:
        [count] = connection.execute("select count(*) from events").fetchone()
    return count


# The server goes away


@pytest.mark.parametrize("seed", range(3))
def test_a_run_waits_for_a_server_that_comes_back(
    mortal: Server, tmp_path: Path, seed: int
) -> None:
    url, choose = mortal.store().address, random.Random(seed)
    acts = Acts(tmp_path, "--max-concurrency", "8", store=url)
    with started(*acts.words, cwd=tmp_path) as process:
        for _ in range(2):
            acts.wait_for_more(choose.randint(1, 20), process)
            time.sleep(choose.uniform(0, 0.02))
            mortal.kill()
            time.sleep(choose.uniform(0.1, 1.0))
            seen = len(acts.lines)
            time.sleep(0.3)
            assert len(acts.lines) <= seen, "a tool acted that nobody had written down"
            mortal.start()
        told = process.communicate()[0].decode()
    assert process.returncode == 0, told
    acts.check(doubts=())


def test_a_run_ends_cleanly_if_the_server_stays_away(mortal: Server, tmp_path: Path) -> None:
    url = mortal.store(patience=1).address
    acts = Acts(tmp_path, "--max-concurrency", "8", store=url)
    with started(*acts.words, cwd=tmp_path) as process:
        acts.wait_for_more(12, process)
        mortal.kill()
        told = process.communicate(timeout=60)[0].decode()
    assert process.returncode == 3, told
    assert "to resume: greenroom eval run" in told
    assert "Traceback" not in told
    mortal.start()
    [run] = Store(url).runs()
    assert (run.status, run.counts.get("error", 0)) == ("interrupted", 0)
    acts.finish()
    acts.check()


@pytest.mark.parametrize("what", ["sessions", "way"])
def test_a_run_ends_cleanly_if_the_server_never_answers(
    mortal: Server, tmp_path: Path, what: str
) -> None:
    url = mortal.store(patience=1).address
    with cutter(mortal, every=10**9) as (port, pid, _):
        if what == "way":
            path = str(mortal.folder).replace("/", "%2F")
            url = url.replace(f"host={path}", f"host=127.0.0.1&port={port}&sslmode=disable")
            assert str(port) in url
        acts = Acts(tmp_path, "--max-concurrency", "8", store=url)
        with started(*acts.words, cwd=tmp_path) as process:
            acts.wait_for_more(12, process)
            stopped = [pid] if what == "way" else mortal.sessions()
            for one in stopped:
                os.kill(one, signal.SIGSTOP)
            told = process.communicate(timeout=90)[0].decode()
        for one in stopped:
            os.kill(one, signal.SIGCONT)
        assert process.returncode == 3, told
        assert "to resume: greenroom eval run" in told
        assert "Traceback" not in told
        acts.finish()
        acts.check()


def test_a_full_disk_under_the_server_ends_a_run_that_can_go_on(tmp_path: Path) -> None:
    """A file that may not grow is what a full disk is to Postgres."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    with server("max_wal_size=64MB") as running:
        if running is None:
            pytest.skip("PostgreSQL is not installed")
        store = running.store()
        running.stop()
        resource.setrlimit(resource.RLIMIT_FSIZE, (17_000_000, before[1]))
        try:
            running.start()
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, before)
        evalset = EvalSet("large", [Case(f"c{n}", "Talk") for n in range(60)])
        with pytest.raises(StoreFailed) as stopped:
            asyncio.run(_talk(evalset, store))
        assert "resume run" in str(stopped.value)
        done = store.runs()[0].done
        assert 0 < done < 60
        running.stop()
        running.start()
        report = asyncio.run(_talk(evalset, store, resume=True))
        assert (report.passed, len(report)) == (True, 60)
        assert recounted(store) == {}


async def _talk(evalset: EvalSet, store: Store, **options: Any) -> Any:
    agent = Agent("noisy", model=Scripted(lambda _: os.urandom(300_000).hex()))
    return await evaluate(agent, evalset, metrics=[contains("a")], store=store, **options)


# Two at once


def test_of_two_that_resume_one_run_one_is_refused(postgres: Server, tmp_path: Path) -> None:
    acts = Acts(tmp_path, "--max-concurrency", "4", store=postgres.store().address)
    acts.kill_after(3, 0.0, signal.SIGKILL)
    words = (*acts.words, "--resume")
    with started(*words, cwd=tmp_path) as one, started(*words, cwd=tmp_path) as other:
        told = [process.communicate()[0].decode() for process in (one, other)]
    codes = sorted((one.returncode, other.returncode))
    assert codes[1] == 3, told
    assert "is in use by another process" in "".join(told)
    acts.finish()
    acts.check()


def test_a_run_whose_connection_was_cut_gives_way_to_the_one_that_resumed_it(
    postgres: Server, tmp_path: Path
) -> None:
    url = postgres.store().address
    acts = Acts(tmp_path, "--max-concurrency", "2", store=url)
    with started(*acts.words, cwd=tmp_path) as first:
        acts.wait_for_more(4, first)
        os.kill(first.pid, signal.SIGSTOP)
        _terminate_all(postgres)
        with started(*acts.words, "--resume", acts.run_id, cwd=tmp_path) as second:
            acts.wait_for_more(6, second)
            os.kill(first.pid, signal.SIGCONT)
            told = second.communicate()[0].decode()
        stale = first.communicate()[0].decode()
    assert second.returncode in (0, 2), told
    assert first.returncode == 3, stale
    assert "another process" in stale
    acts.check()


def _terminate_all(postgres: Server) -> None:
    postgres.sql(
        "select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'greenroom'"
    )


# Answers that are lost


@contextmanager
def cutter(postgres: Server, every: int) -> Generator[tuple[int, int, list[int]]]:
    """The port of a process that now and then closes a connection right after the server has done its work.

    How often it did so is known when it has ended.
    """
    target = str(postgres.folder / ".s.PGSQL.5432")
    argv = [sys.executable, str(Path(__file__).with_name("cutter.py")), target, str(every)]
    cuts: list[int] = []
    with subprocess.Popen(
        argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        yield int(process.stdout.readline()), process.pid, cuts
        cuts.append(int(process.communicate()[0]))


async def test_what_a_lost_answer_makes_us_do_again_counts_once(postgres: Server) -> None:
    store = postgres.store()
    schema = store.address.rpartition("schema=")[2]
    evalset = EvalSet("s", [Case(f"c{n}", "Hi", mocks={"look": "ok"}) for n in range(120)])
    with cutter(postgres, every=5) as (port, _, cuts):
        through = Store(
            f"postgresql://postgres@127.0.0.1:{port}/postgres?schema={schema}&sslmode=disable"
        )
        report = await evaluate(looker(), evalset, metrics=[contains("found")], store=through)
    # How many answers there are to lose depends on how much is written at once.
    assert cuts[0] > 0
    assert report.passed
    [run] = store.runs()
    assert (run.status, run.done, run.attempt) == ("finished", 120, 1)
    assert recounted(store) == {}
    assert round(store.spent(run.id)[0], 6) == round(120 * 2 * 0.001, 6)
    assert len(store.report(run.id)) == 120


@tool
def look() -> str:
    """Look."""
    raise AssertionError("not for real")


def looker() -> Agent:
    looks = ModelReply(calls=(ToolCall("look"),), cost=0.001, prices="test")
    says = ModelReply("I found it.", cost=0.001, prices="test")
    return Agent("looker", model=Scripted(looks, says, latency=0.01), tools=[look])


# Secrets in what is under way


async def test_a_secret_under_way_is_not_on_the_server_and_its_trial_begins_anew(
    postgres: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CRM_TOKEN", "hunter2-hunter2")
    store = postgres.store()
    evalset = EvalSet("s", [Case("a", turns=[Turn("The key is hunter2-hunter2"), Turn("More")])])
    first = Asked(lambda request: f"Answer to {request.last}", cut=2)
    options: dict[str, Any] = {"metrics": [contains("Answer")], "store": store}
    await evaluate(Agent("a", model=first), evalset, cancel=first.cancel, **options)
    with store.database.connected() as connection:
        rows = connection.execute("select redacted, lines from events").fetchall()
    assert rows
    assert [redacted for redacted, _ in rows if redacted]
    assert not [lines for _, lines in rows if b"hunter2-hunter2" in bytes(lines)]
    again = Asked(lambda request: f"Answer to {request.last}")
    report = await evaluate(Agent("a", model=again), evalset, resume=True, **options)
    assert report.passed
    assert again.count == 2
    assert any("held secrets, which are not kept" in note for note in report.notes)


# A pooler between


@contextmanager
def bouncer(postgres: Server, mode: str, place: Path) -> Generator[str]:
    """The address of a pooler before the server."""
    program = shutil.which("pgbouncer") or "/usr/sbin/pgbouncer"
    if not Path(program).exists():
        pytest.skip("PgBouncer is not installed")
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    folder = postgres.folder / f"bouncer-{mode}"
    folder.mkdir()
    (folder / "ini").write_text(
        f"[databases]\npostgres = host={postgres.folder} dbname=postgres user=postgres\n"
        f"[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = {port}\nauth_type = any\n"
        f"pool_mode = {mode}\nunix_socket_dir =\nlogfile = {folder}/log\n"
    )
    folder.chmod(0o777)
    options: dict[str, Any] = {"user": "nobody", "group": "nogroup", "extra_groups": []}
    with subprocess.Popen(
        [program, "-q", folder / "ini"], **(options if not os.getuid() else {})
    ) as process:
        time.sleep(1)
        try:
            yield f"127.0.0.1:{port}"
        finally:
            process.terminate()


@pytest.mark.parametrize("mode", ["transaction", "session"])
async def test_a_pooler_that_shares_sessions_is_refused(
    postgres: Server, tmp_path: Path, mode: str
) -> None:
    schema = postgres.store().address.rpartition("schema=")[2]
    with bouncer(postgres, mode, tmp_path) as address:
        store = Store(f"postgresql://postgres@{address}/postgres?schema={schema}&sslmode=disable")
        evalset = EvalSet("s", [Case("a", "Hi")])
        model = Agent("a", model=Scripted("Answer"))
        if mode == "session":
            assert (await evaluate(model, evalset, metrics=[contains("A")], store=store)).passed
            return
        with pytest.raises(StoreFailed, match="PgBouncer in transaction mode"):
            await evaluate(model, evalset, metrics=[contains("A")], store=store)
        with pytest.raises(StoreFailed, match="PgBouncer in transaction mode"):
            store.database.about()
