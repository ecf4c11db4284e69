"""A store on a server: what a user does with it, and what is refused and how."""

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from greenroom import Agent, Case, EvalSet, Expect, Scripted, Turn, call, evaluate, tool
from greenroom.errors import BadInput, NotFound, StoreFailed
from greenroom.ledger import Ledger
from greenroom.ledger.blobs import attach
from greenroom.metrics import called, contains
from greenroom.store import Store
from greenroom.store.conversations import Conversations
from greenroom.store.database import transaction
from greenroom.store.postgres import schema
from greenroom.store.postgres.address import read_address
from greenroom.store.runs import Plan
from greenroom.suite.recorded.rescores import rescore
from greenroom.suite.recorded.shrunk_trials import shrink_trial
from marks import heavy
from store.servers import Server
from store.timeless import timeless

pytestmark = pytest.mark.usefixtures("warm_workers")


@tool
def refund(order: int) -> str:
    """Give the money back."""
    return f"refunded {order}"


def clerk() -> Agent:
    model = Scripted(call("refund", order=7), "Your money is on its way.")
    return Agent("clerk", model=model, tools=[refund])


def cases(count: int = 3) -> EvalSet:
    made = [Case(f"c{n}", f"Refund order {n}", mocks={"refund": "ok"}) for n in range(count)]
    return EvalSet("shop", made)


async def played(store: Store, **options: Any) -> Any:
    metrics = [contains("money"), called("refund")]
    return await evaluate(clerk(), cases(), metrics=metrics, store=store, **options)


def command(*words: str, **environment: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-m", "greenroom", *words],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "GREENROOM_STORE": "off", **environment},
    )


# What a user does


async def test_a_run_on_a_server_is_the_run_that_a_folder_has(
    postgres: Server, tmp_path: Path
) -> None:
    on_server, in_folder = postgres.store(), Store(tmp_path)
    reports = [await played(store, trials=2) for store in (on_server, in_folder)]
    assert timeless(reports[0]) == timeless(reports[1])
    kept = [
        store.report(report.id)
        for store, report in zip((on_server, in_folder), reports, strict=True)
    ]
    assert timeless(kept[0]) == timeless(kept[1]) == timeless(reports[0])
    assert _ledgers(kept[0]) == _ledgers(kept[1])
    [run] = on_server.runs()
    assert (run.status, run.done, dict(run.counts)) == ("finished", 6, {"passed": 6})
    with on_server.database.connected() as connection:
        assert connection.execute("select count(*) from events").fetchone() == (0,)


def _ledgers(report: Any) -> list[Any]:
    """The events of all trials, without what differs from run to run."""
    found: list[Any] = []
    for result in report:
        events = [json.loads(line) for line in result.ledger.dumps().splitlines()]
        for event in events:
            for name in ("at", "seconds", "run_id"):
                event.pop(name, None)
        found.append(events)
    return found


def test_a_store_is_made_and_checked_by_commands(postgres: Server) -> None:
    url = postgres.url()
    missing = command("runs", "list", "--store", url)
    assert missing.returncode == 3
    assert f"greenroom store init --store {shlex.quote(Store(url).address)}" in missing.stderr
    assert "has the tables of format" in command("store", "init", "--store", url).stderr
    assert "already" in command("store", "migrate", GREENROOM_STORE=url).stderr
    facts = json.loads(command("store", "check", "--json", "--store", url).stdout)
    assert (facts["durable"], facts["runs"]) == ("yes", "0")
    assert facts["user"] == "postgres, who may record runs"


async def test_a_project_may_name_the_server(
    postgres: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = postgres.store()
    (tmp_path / "pyproject.toml").write_text(f'[tool.greenroom]\nstore = "{store.address}"\n')
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("GREENROOM_STORE")
    await evaluate(clerk(), cases(), metrics=[contains("money")])
    assert [run.done for run in store.runs()] == [3]
    assert not (tmp_path / ".greenroom").exists()


async def test_attachments_are_found_from_another_machine(postgres: Server) -> None:
    store = postgres.store()
    picture = attach(b"some bytes of a picture", "application/octet-stream")
    case = Case("a", "Look at this", mocks={"refund": picture})
    report = await evaluate(clerk(), EvalSet("s", [case]), metrics=[contains("money")], store=store)
    code = (
        "import sys; from greenroom.store import Store; from greenroom.ledger.blobs import data_of\n"
        "from greenroom.ledger.attachments import Attachment\n"
        "Store(sys.argv[1]).runs(); store = Store(sys.argv[1])\n"
        "print(data_of(Attachment('x/y', sys.argv[2], 1, 'n')).decode())"
    )
    told = _told(code, store.address, picture.digest)
    assert told == "some bytes of a picture\n"
    store.delete(report.id)
    with store.database.connected() as connection:
        assert connection.execute("select count(*) from blobs").fetchone() == (0,)


def _told(code: str, *argv: str) -> str:
    """What another process prints."""
    command = [sys.executable, "-c", code, *argv]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def _files(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file()]


@pytest.mark.parametrize("scheme", [heavy(""), "file://"])
async def test_large_ledgers_lie_in_a_folder_or_a_bucket(
    postgres: Server, tmp_path: Path, scheme: str
) -> None:
    store = Store(postgres.url())
    store.database.upgrade(f"{scheme}{tmp_path}")
    noise = os.urandom(1_500_000).hex()
    agent = Agent("clerk", model=Scripted(noise))
    report = await evaluate(
        agent, EvalSet("s", [Case("a", "Talk")]), metrics=[contains("a")], store=store
    )
    [file] = _files(tmp_path)
    assert file.stat().st_size > 1_000_000
    [result] = Store(store.address).report(report.id)
    assert noise in result.ledger.dumps()
    store.delete(report.id)
    assert not _files(tmp_path)
    with pytest.raises(BadInput, match="already"):
        store.database.upgrade("/elsewhere")


async def test_conversations_are_kept_on_a_server(postgres: Server) -> None:
    from greenroom import perform

    store = postgres.store()
    agent = Agent("clerk", model=Scripted("Hello.", "Hello again."))
    ledger = await perform(agent, "Hi", store=store)
    kept = Conversations(store.database)
    [facts] = kept.list()
    assert not facts.is_open
    assert timeless_lines(kept.ledger(facts.id)) == timeless_lines(ledger)
    held = kept.open(ledger, {})
    with pytest.raises(StoreFailed, match=r"conversation .* is in use by another process"):
        Conversations(Store(store.address).database).open(ledger, {})
    held.close()
    kept.delete(facts.id)
    with pytest.raises(NotFound):
        kept.ledger(facts.id)


def timeless_lines(ledger: Ledger) -> list[str]:
    return [type(event).__name__ for event in ledger]


async def test_a_run_on_a_server_is_measured_replayed_and_shrunk_as_one_in_a_folder(
    postgres: Server, tmp_path: Path
) -> None:
    talk = [Turn("Hello there"), Turn("Refund order 7, please")]
    evalset = EvalSet("s", [Case("a", turns=talk, mocks={"refund": "ok"})])
    metrics = [contains("never said")]
    agent = Agent("clerk", model=Scripted("Which order?", call("refund", order=7), "It is on its way."), tools=[refund])  # fmt: skip
    found: list[Any] = []
    for store in (postgres.store(), Store(tmp_path)):
        first = await evaluate(agent, evalset, metrics=metrics, store=store)
        again = await rescore(first.id, metrics=[called("refund")], store=store)
        replayed = await evaluate(agent, evalset, metrics=metrics, store=store, replay=first.id)
        shrunk = await shrink_trial(first.id, "a", agent, metrics=metrics, store=store)
        outcomes = [[one.status for one in report] for report in (first, again.report, replayed)]
        found.append((outcomes, shrunk.case.turns))
    assert found[0] == found[1]
    assert found[0][0] == [["failed"], ["passed"], ["failed"]]


# Formats and rights


def test_a_store_of_an_older_format_names_the_command(postgres: Server) -> None:
    store = postgres.store()
    _set_format(store, schema.VERSION - 1)
    with pytest.raises(StoreFailed, match=r"greenroom store migrate --store '?postgresql://"):
        Store(store.address).runs()


def test_a_store_of_a_newer_format_is_refused(postgres: Server) -> None:
    store = postgres.store()
    _set_format(store, schema.VERSION + 1)
    for act in (Store(store.address).runs, Store(store.address).database.upgrade):
        with pytest.raises(StoreFailed, match="written by a newer Greenroom"):
            act()


@pytest.mark.parametrize("shard", ["", "2/3"])
def test_a_store_is_not_migrated_under_a_run(postgres: Server, shard: str) -> None:
    store = postgres.store()
    with store.database.connected(to_write=True) as connection:
        run = store.begin(Plan(name="s", called="n", shards=3 if shard else 0), connection)
    journal = store.journal(run.id, shard)
    _set_format(store, schema.VERSION - 1)
    with pytest.raises(StoreFailed, match=f"is in use for run '{run.id}'"):
        store.database.upgrade()
    journal.close(remove=False)


def _set_format(store: Store, version: int) -> None:
    with store.database.connected() as connection:
        connection.execute("update format set version = ?", (version,))


@pytest.fixture
def users(postgres: Server) -> Any:
    """Addresses of one store for users with different roles."""
    store = postgres.store()
    for name in ("writer", "reader", "nobody"):
        postgres.sql(f"drop role if exists u_{name}", f"create role u_{name} login")
    postgres.sql("grant greenroom_writer to u_writer", "grant greenroom_reader to u_reader")
    return {
        name: Store(store.address.replace("postgres@", f"u_{name}@"))
        for name in ("writer", "reader", "nobody")
    }


async def test_who_may_write_runs_and_changes_no_table(users: dict[str, Store]) -> None:
    store = users["writer"]
    report = await played(store)
    assert store.report(report.id).passed
    with pytest.raises(StoreFailed, match="permission denied"), store.database.connected() as one:
        one.execute("create table mine (id integer)")
    with pytest.raises(StoreFailed, match="permission denied"), store.database.connected() as one:
        one.execute("update format set version = 9")
    store.delete(report.id)


async def test_who_may_look_sees_what_has_ended_and_nothing_under_way(
    users: dict[str, Store],
) -> None:
    report = await played(users["writer"])
    reader = users["reader"]
    assert timeless(reader.report(report.id)) == timeless(report)
    assert reader.under_way(report.id) == []
    with pytest.raises(StoreFailed, match="table events"), reader.database.connected() as one:
        one.execute("select * from events")
    with pytest.raises(StoreFailed, match="greenroom_writer to users who run"):
        await played(reader)
    assert dict(reader.database.about())["user"] == "u_reader, who may look at runs"


def test_who_may_do_nothing_is_told_which_role_is_needed(users: dict[str, Store]) -> None:
    with pytest.raises(StoreFailed, match=r"no store in|grant greenroom_writer"):
        users["nobody"].runs()
    with pytest.raises(StoreFailed, match=r"permission denied|must be owner"):
        Store(users["nobody"].address.replace("schema=", "schema=other")).database.upgrade()


# Secrets


@pytest.mark.parametrize(
    "given, shown",
    [
        ("postgresql://me:pa55-word@db/evals", "postgresql://me@db/evals"),
        ("postgresql://me@db/evals?password=pa55-word", "postgresql://me@db/evals"),
        ("postgres://me:pa55%2Dword@a:1,b:2/e?schema=x", "postgres://me@a:1,b:2/e?schema=x"),
    ],
)
def test_an_address_is_shown_without_its_password(given: str, shown: str) -> None:
    address = read_address(given)
    assert address.shown == shown
    assert address.password == "pa55-word"


def test_a_password_is_in_no_message(postgres: Server, tmp_path: Path) -> None:
    (tmp_path / "desk.py").write_text(
        "from greenroom import Agent, Case, EvalSet, Expect, Scripted\nfrom greenroom.metrics import contains\n"
        "agent = Agent('clerk', model=Scripted('My password is pa55-word-9.'))\n"
        "cases = EvalSet('s', [Case('a', 'Hi', metrics=[contains('nothing')])])\n"
    )
    store = postgres.store()
    url = store.address.replace("postgres@", "postgres:pa55-word-9@")
    words = ["eval", "run", str(tmp_path / "desk.py"), "--store", url]
    told = command(*words, "-f", "json", "-o", str(tmp_path / "r.json"))
    away = command(*words[:-1], url.replace(str(postgres.folder).replace("/", "%2F"), "%2Fnowhere"))
    assert (told.returncode, away.returncode) == (1, 3)
    seen = [told.stdout, told.stderr, away.stdout, away.stderr, (tmp_path / "r.json").read_text()]
    with store.database.connected() as connection:
        for table in ("runs", "trials"):
            seen += [str(row) for row in connection.execute(f"select * from {table}")]
    assert not [text for text in seen if "pa55-word-9" in text]


async def test_an_agent_in_a_worker_does_not_get_what_opens_the_store(
    postgres: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "desk.py").write_text(
        "import os\nfrom greenroom import step\n"
        "names = ('GREENROOM_STORE', 'PGPASSWORD', 'PGSERVICE', 'PGHOST')\n"
        "agent = step(lambda: ' '.join(str(os.environ.get(name)) for name in names), name='agent')\n"
    )
    store = postgres.store()
    monkeypatch.setenv("GREENROOM_STORE", store.address)
    for name in ("PGPASSWORD", "PGHOST"):
        monkeypatch.setenv(name, "mine-and-yours")
    cases = EvalSet(
        "s", [Case("a", "Hi", expect=Expect(contains=["off None None mine-and-yours"]))]
    )
    for given in (None, store, store.address):
        report = await evaluate(f"{tmp_path / 'desk.py'}:agent", cases, workers=1, store=given)
        assert report.passed, report
    # A folder needs no password: whose variable it is then, is the agent's business.
    cases = EvalSet("s", [Case("a", "Hi", expect=Expect(contains=["off mine-and-yours None"]))])
    report = await evaluate(
        f"{tmp_path / 'desk.py'}:agent", cases, workers=1, store=tmp_path / "runs"
    )
    assert report.passed, report


@pytest.mark.parametrize(
    "given", ["postgresql://db/evals?schema=Robert';--", "postgresql://db/evals?patience=long"]
)
def test_an_address_that_makes_no_sense_is_refused(given: str) -> None:
    with pytest.raises(BadInput, match=r"schema|patience"):
        Store(given)


# Writes that are done twice


def test_a_commit_that_is_done_again_begins_no_second_run(postgres: Server) -> None:
    store = postgres.store()
    with store.database.connected(to_write=True) as connection:
        run = store.begin(Plan(name="s"), connection)
        with transaction(connection):
            connection.execute("update runs set begun = begun")
    assert [one.id for one in store.runs()] == [run.id]


@pytest.mark.parametrize("kind", ["mysql", "postgresq", "sqlite", "file"])
def test_an_address_of_another_kind_is_no_folder_and_not_shown(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(BadInput, match=f"no store at {kind}://…: name a folder") as found:
        Store(f"{kind}://me:pa55-word@db/evals").runs()
    assert "pa55" not in str(found.value)


def test_a_server_that_was_never_there_fails_at_once(tmp_path: Path) -> None:
    with pytest.raises(StoreFailed, match="check that the server is up"):
        Store(f"postgresql:///db?host={tmp_path}").runs()
    with pytest.raises(BadInput, match="not an address of a server"):
        Store("postgresql://db/evals?nonsense=1")
