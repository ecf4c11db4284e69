"""What the tables keep: positions to follow, sums of each run, what was spent, ledgers in little room."""

import sqlite3
import subprocess
import sys
import zlib
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from greenroom import Agent, Case, EvalSet, Expect, Scripted, evaluate, tool
from greenroom.errors import GreenroomError, StoreFailed
from greenroom.ledger.ledger import Ledger
from greenroom.models import ModelReply
from greenroom.store import Run, Store
from greenroom.store.ledgers import loaded, pack
from greenroom.store.rows import _lookup
from greenroom.store.runs import ASIDE, Key, Plan, Row
from store.recount import recounted
from warm_python import WarmPython


def row(case_id: str = "a", trial: int = 1, **options: Any) -> Row:
    kept: dict[str, Any] = {
        "place": 0,
        "digest": "d",
        "status": "passed",
        "verdict": "{}",
        "ledger": b"",
        "judging": b"",
        **options,
    }
    return Row(key=Key(case_id, trial), **kept)


def begun(store: Store, *rows: Row) -> Run:
    with store.database.connected(to_write=True) as connection:
        run = store.begin(Plan(name="s", cases=3), connection)
        store.add(run, rows, connection)
        return run


def add(store: Store, run: Run, *rows: Row) -> None:
    with store.database.connected(to_write=True) as connection:
        store.add(run, rows, connection)


# Positions


def test_every_change_of_a_run_and_its_trials_is_followed(tmp_path: Path) -> None:
    store = Store(tmp_path)
    run = begun(store, row("a"), row("b"))
    first = store.changes()
    assert [(change.kind, change.key) for change in first] == [
        ("trial", Key("a", 1)),
        ("trial", Key("b", 1)),
        ("run", None),
    ]
    add(store, run, row("a", status="failed"))
    again = store.changes(first[-1].position)
    assert [(change.kind, change.status) for change in again] == [
        ("trial", "failed"),
        ("run", "running"),
    ]
    with store.database.connected(to_write=True) as connection:
        store.close(run, "interrupted", [], 1.0, connection)
        run = store.resume(store.run(run.id), run.plan, {Key("a", 1): 0}, connection)
    aside = store.changes(again[-1].position)
    assert [(change.kind, change.key) for change in aside] == [
        ("trial", Key("b", 1)),
        ("run", None),
    ]
    store.delete(run.id)
    [deleted] = store.changes(aside[-1].position)
    assert (deleted.kind, deleted.run_id) == ("deleted", run.id)
    assert store.latest_position()[1] == deleted.position


def test_the_position_of_a_deleted_row_is_never_given_again(tmp_path: Path) -> None:
    store = Store(tmp_path)
    store.delete(begun(store, row("a")).id)
    after = store.latest_position()[1]
    with store.database.connected(to_write=True) as connection:
        connection.execute("vacuum")
    begun(store, row("b"))
    assert [change.position > after for change in store.changes(after)] == [True, True]


def test_changes_are_read_some_at_a_time(tmp_path: Path) -> None:
    store = Store(tmp_path)
    begun(store, *(row(str(number)) for number in range(20)))
    seen, after = [], 0
    while found := store.changes(after, limit=7):
        seen += found
        after = found[-1].position
    assert seen == store.changes()
    assert len(seen) == 21


def test_a_store_has_an_id_of_its_own(tmp_path: Path) -> None:
    stores = [Store(tmp_path / name) for name in "ab"]
    for store in stores:
        begun(store)
    assert len({store.latest_position()[0] for store in stores}) == 2


WRITER = """
import sys
from greenroom.store import Store
from greenroom.store.runs import Key, Plan, Row

store, count = Store(sys.argv[1]), int(sys.argv[2])
sys.stdin.read()
with store.database.connected(to_write=True) as connection:
    run = store.begin(Plan(name="s", cases=count), connection)
    for number in range(count):
        one = Row(key=Key(str(number), 1), place=number, digest="d", status="passed", verdict="{}",
            ledger=b"", judging=b"")
        store.add(run, [one], connection)
"""


@pytest.mark.sqlite
def test_a_reader_beside_several_writing_processes_misses_nothing(tmp_path: Path) -> None:
    store, count = Store(tmp_path), 40
    begun(store)
    command = [sys.executable, "-c", WRITER, str(tmp_path), str(count)]
    writers = [WarmPython(command, stdin=subprocess.PIPE) for _ in range(3)]
    for writer in writers:
        assert writer.stdin is not None
        writer.stdin.close()
    seen: set[tuple[str, str]] = set()
    after, is_over = 0, False
    while not is_over:
        is_over = all(writer.poll() is not None for writer in writers)
        for change in store.changes(after):
            assert change.position > after, "a change stands before one that was seen earlier"
            after = change.position
            if change.key is not None:
                assert (change.run_id, change.key.case_id) not in seen, "seen twice"
                seen.add((change.run_id, change.key.case_id))
    assert [writer.returncode for writer in writers] == [0, 0, 0]
    assert len(seen) == 3 * count


# Sums


@pytest.mark.sqlite
def test_listing_runs_reads_no_trial(tmp_path: Path) -> None:
    store = Store(tmp_path)
    begun(store, row("a"), row("b", status="failed", cost=0.25), row("c", cost=None))
    with store.database.connected(to_write=True) as connection:
        connection.execute("drop table trials")
    [run] = store.runs()
    assert (run.counts, run.done, run.cost) == ({"passed": 2, "failed": 1}, 3, None)


def test_a_run_that_another_process_has_resumed_is_written_no_more(tmp_path: Path) -> None:
    store = Store(tmp_path)
    run = begun(store, row("a"))
    with store.database.connected(to_write=True) as connection:
        resumed = store.resume(run, run.plan, {Key("a", 1): 0}, connection)
    with pytest.raises(StoreFailed, match="was resumed by another process"):
        add(store, run, row("b"))
    add(store, resumed, row("c"))
    assert set(store.keys(run.id)) == {Key("a", 1), Key("c", 1)}
    store.delete(run.id)
    with pytest.raises(StoreFailed, match="was deleted from the store while it was running"):
        add(store, resumed, row("d"))


PRICES = st.sampled_from([None, 0.0, 0.1, 0.2, 0.3, 1e-7, 12.34])
ROWS = st.builds(
    row,
    case_id=st.sampled_from("abc"),
    trial=st.integers(1, 4),
    place=st.integers(0, 9),
    status=st.sampled_from(["passed", "failed", "error", "terminated", "skipped"]),
    error_type=st.sampled_from([None, "", "AgentFailed", "InDoubt"]),
    cost=PRICES,
    spent=st.sampled_from([0.0, 0.25, 0.5]),
    began=st.sampled_from([1.0, 2.0, 3.0]),
)
PLANS = st.builds(Plan, trials=st.integers(1, 3), confirm=st.integers(0, 2), cases=st.just(3))


class Sums(RuleBasedStateMachine):
    """Any sequence of writing, writing again, resuming and deleting."""

    place: Path

    def __init__(self) -> None:
        super().__init__()
        Sums.number += 1
        self.store = Store(self.place / str(Sums.number))
        self.connection = self.store.database.open()
        self.runs: list[Run] = []
        self.spent: dict[str, dict[tuple[Key, float], float]] = {}

    number = 0

    @rule(plan=PLANS)
    def begin(self, plan: Plan) -> None:
        run = self.store.begin(plan, self.connection)
        self.runs.append(run)
        self.spent[run.id] = {}

    @precondition(lambda self: self.runs)
    @rule(rows=st.lists(ROWS, min_size=1, max_size=5), which=st.integers(0, 9))
    def add(self, rows: list[Row], which: int) -> None:
        run = self.runs[which % len(self.runs)]
        self.store.add(run, rows, self.connection)
        for one in rows:
            if one.spent:
                self.spent[run.id].setdefault((one.key, one.began), one.spent)

    @precondition(lambda self: self.runs)
    @rule(plan=PLANS, which=st.integers(0, 9), kept=st.sets(st.sampled_from("abc")))
    def resume(self, plan: Plan, which: int, kept: set[str]) -> None:
        which %= len(self.runs)
        run = self.runs[which]
        places = {key: 0 for key in self.store.keys(run.id) if key.case_id in kept}
        self.runs[which] = self.store.resume(run, plan, places, self.connection)

    @precondition(lambda self: self.runs)
    @rule(which=st.integers(0, 9))
    def delete(self, which: int) -> None:
        run = self.runs.pop(which % len(self.runs))
        self.store.delete(run.id)
        assert self.store.spent(run.id) == (0.0, 0.0)

    @invariant()
    def what_runs_count_is_what_a_recount_gives(self) -> None:
        assert recounted(self.store) == {}
        for run in self.runs:
            expected = self.spent[run.id].values()
            assert self.store.spent(run.id)[0] == pytest.approx(sum(expected))
            assert self.store.spent(run.id)[1] == max(expected, default=0.0)
        positions = [change.position for change in self.store.changes()]
        assert positions == sorted(set(positions))
        assert self.store.latest_position()[1] >= max(positions, default=0)

    def teardown(self) -> None:
        self.connection.close()


def test_any_sequence_of_writes_keeps_the_sums_right(tmp_path: Path) -> None:
    Sums.place = tmp_path
    case = Sums.TestCase
    case.settings = settings(max_examples=15, stateful_step_count=12, deadline=None)
    case("runTest").runTest()


def test_what_is_taken_away_leaves_no_crumbs(tmp_path: Path) -> None:
    store = Store(tmp_path)
    run = begun(store, *(row(name, cost=0.1) for name in "abc"))
    add(store, run, *(row(name, cost=0.0) for name in "abc"))
    assert store.run(run.id).cost == 0.0


def test_a_trial_that_is_set_aside_is_not_counted(tmp_path: Path) -> None:
    store = Store(tmp_path)
    run = begun(store, row("a", cost=0.5), row("b", place=ASIDE, cost=0.25))
    assert (store.run(run.id).done, store.run(run.id).cost) == (1, 0.5)


# Spending


def test_what_a_trial_cost_is_spent_also_when_it_runs_again(tmp_path: Path) -> None:
    store = Store(tmp_path)
    first = row("a", cost=0.5, spent=0.5, began=1.0)
    run = begun(store, first)
    add(store, run, row("a", cost=0.25, spent=0.25, began=2.0))
    add(store, run, row("a", cost=0.25, spent=0.25, began=2.0))  # a commit that is done again
    assert store.spent(run.id) == (0.75, 0.5)
    assert store.run(run.id).cost == 0.25


async def test_two_tries_at_a_trial_began_at_different_times(tmp_path: Path) -> None:
    reply = ModelReply("Yes.", cost=0.5, prices="test")
    agent = Agent("clerk", model=Scripted(then=reply))
    for expected in ("Yes", "No"):
        cases = EvalSet("s", [Case("a", "Hi", expect=Expect(contains=expected))])
        going_on: Any = {"resume": True, "accept_changes": True} if expected == "No" else {}
        report = await evaluate(agent, cases, store=tmp_path, **going_on)
        if not going_on:
            with Store(tmp_path).database.connected(to_write=True) as connection:
                connection.execute("update runs set status = 'interrupted'")
    assert Store(tmp_path).spent(report.id) == (1.0, 0.5)


# Digests


async def test_a_run_knows_the_digests_of_its_set_and_its_agent(tmp_path: Path) -> None:
    @tool
    def look(order: int) -> str:
        """Look an order up."""
        raise AssertionError(order)

    agent = Agent("clerk", model=Scripted(then="Hello"), tools=[look])
    other = Agent("clerk", model=Scripted(then="Hello"), instructions="Be kind.", tools=[look])
    one, two = Case("a", "Hi"), Case("b", "Hi")
    names: dict[str, Any] = {}
    exec("def answer(order):\n    return 'ok'", names)
    unreadable = Case("c", "Hi", mocks={"look": names["answer"]})
    for given_agent, cases in (
        (agent, [one, two]),
        (agent, [two, one]),
        (other, [one]),
        (agent, [one, unreadable]),
    ):
        await evaluate(given_agent, EvalSet("s", cases), store=tmp_path)
    query = "select set_digest, agent_digest from runs order by begun"
    with Store(tmp_path).database.connected() as connection:
        [first, turned, changed, unknown] = connection.execute(query).fetchall()
    assert first == turned
    assert changed[0] not in ("", first[0])
    assert changed[1] != first[1]
    assert unknown == ("", first[1]), "code that cannot be read may have changed"


# Ledgers


@given(st.binary(max_size=5_000).map(lambda data: data.hex().encode()))
def test_what_is_packed_is_found_again(data: bytes) -> None:
    lines = b'{"x":"' + data + b'"}\n'
    packed = pack(lines)
    assert len(packed) <= len(lines)
    with pytest.raises(GreenroomError) as refused:
        loaded(packed, "r", Key("a", 1))
    with pytest.raises(GreenroomError) as same:
        Ledger.loads(lines.decode(), "run 'r', case 'a'")
    assert str(refused.value) == str(same.value), "not the text that was packed"


async def test_a_ledger_is_kept_plain_or_compressed_and_read_alike(tmp_path: Path) -> None:
    words = {"short": "Hi", "long": "Hi there. " * 20_000}
    agent = Agent("clerk", model=Scripted(then="Hello"))
    cases = EvalSet("s", [Case(name, text) for name, text in words.items()])
    report = await evaluate(agent, cases, store=tmp_path)
    store = Store(tmp_path)
    sizes: dict[str, tuple[int, int]] = {}
    with store.database.connected() as connection:
        query = "select case_id, ledger_size, length(ledger) from trials"
        sizes = {name: (size, kept) for name, size, kept in connection.execute(query)}
    assert sizes["long"][0] > 200_000 > 20 * sizes["long"][1]
    for result in store.report(report.id):
        assert result.ledger is not None
        assert words[result.case_id] in result.ledger.dumps()


TORN = {
    "nothing behind the mark": b"Z",
    "not zlib": b"Znonsense",
    "cut": b"Z" + zlib.compress(b'{"kind":"x"}\n' * 99)[:-9],
    "without its last line": b"Z" + zlib.compress(b'{"kind":"x"}'),
    "plain, without its last line": b'{"kind":"x"}',
    "no ledger": b"nonsense\n",
    "compressed nonsense": b"Z" + zlib.compress(b"nonsense\n"),
}


@pytest.mark.parametrize("name", TORN)
def test_a_ledger_that_is_damaged_is_named(tmp_path: Path, name: str) -> None:
    store = Store(tmp_path)
    run = begun(store, row("a", ledger=b"{}\n"))
    with store.database.connected(to_write=True) as connection:
        connection.execute("update trials set ledger = ?", (TORN[name],))
    with pytest.raises(GreenroomError, match=f"run '{run.id}', case 'a'"):
        store.ledger(run.id, Key("a", 1))


def test_a_ledger_that_unpacks_to_more_than_any_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bomb = b"Z" + zlib.compress(b"{}\n" * 100_000)
    loaded_anyway = pytest.raises(GreenroomError, match="line 1")
    with loaded_anyway:
        loaded(bomb, "r", Key("a", 1))
    monkeypatch.setattr("greenroom.store.ledgers._LARGEST", 1_000)
    with pytest.raises(GreenroomError, match="the ledger in the store is damaged"):
        loaded(bomb, "r", Key("a", 1))


@pytest.mark.sqlite
@pytest.mark.parametrize(
    "statement, says",
    [
        ("update trials set verdict = x'00ff'", "the verdict in the store cannot be read"),
        ("update trials set verdict = '[]'", "expected `object`, got `array`"),
        ("update trials set verdict = '{'", "the verdict in the store cannot be read"),
        ("drop table trials", "no such table: trials"),
    ],
)
def test_rows_that_were_tampered_with_give_a_named_error(
    tmp_path: Path, statement: str, says: str
) -> None:
    store = Store(tmp_path)
    run = begun(store, row("a"))
    connection = sqlite3.connect(tmp_path / "runs.db")
    connection.execute(statement)
    connection.commit()
    connection.close()
    with pytest.raises(GreenroomError, match=says):
        store.report(run.id)


@pytest.mark.sqlite
@pytest.mark.parametrize(
    "column, value",
    [
        ("trials.status", "'junk'"),
        ("trials.status", "x'00ff'"),
        ("trials.case_id", "x'00ff'"),
        ("trials.trial", "'junk'"),
        ("trials.place", "1.5"),
        ("trials.ledger_size", "'junk'"),
        ("trials.cost", "'junk'"),
        ("trials.ledger", "'junk'"),
        ("runs.id", "x'00ff'"),
        ("runs.status", "'junk'"),
        ("runs.begun", "'junk'"),
        ("runs.passed", "'junk'"),
        ("store.position", "1e300"),
    ],
)
def test_a_value_that_greenroom_never_wrote_is_named_as_damage(
    tmp_path: Path, column: str, value: str
) -> None:
    store = Store(tmp_path)
    begun(store, row("a"))
    table, _, name = column.partition(".")
    connection = sqlite3.connect(tmp_path / "runs.db")
    connection.execute(f"update {table} set {name} = {value}")
    connection.commit()
    connection.close()
    with pytest.raises(StoreFailed, match=f"it is damaged: its column '{name}' holds .*restore"):
        store.database.about()


@pytest.mark.sqlite
def test_a_trial_that_is_written_again_is_found_by_its_key(tmp_path: Path) -> None:
    begun(Store(tmp_path))
    with Store(tmp_path).database.connected() as connection:
        plan = connection.execute(f"explain query plan {_lookup(2)}", ("a", 1, "b", 1, "r"))
        [search] = [step for *_, step in plan if step.startswith("SEARCH trials")]
    assert "(run_id=? AND case_id=? AND trial=?)" in search, "each commit would read the whole run"


@pytest.mark.sqlite
@pytest.mark.parametrize("kind", ["table", "index"])
def test_a_store_that_lacks_a_part_of_it_is_not_sound(tmp_path, kind):
    database = Store(tmp_path).database
    database.open().close()
    database.about()
    with closing(sqlite3.connect(tmp_path / "runs.db")) as connection:
        query = "select name from sqlite_master where type = ? and sql is not null"
        names = [name for (name,) in connection.execute(query, (kind,)) if name != "runs"]
        connection.execute(f"drop {kind} {names[0]}")
        connection.commit()
    with pytest.raises(StoreFailed, match=f"is damaged: it lacks .*{names[0]}"):
        database.about()
