"""The journal: whatever byte it is cut at, what is left of it is how the trial began."""

import fcntl
import os
import resource
import stat
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from greenroom.errors import StoreFailed
from greenroom.ledger import (
    AgentSaid,
    Event,
    Ledger,
    ModelCalled,
    ModelReplied,
    RunEnded,
    RunStarted,
    ToolCalled,
    ToolReturned,
    UserSaid,
    call,
)
from greenroom.store.cut_trials import CutTrial
from greenroom.store.journal import Entry, Journal
from greenroom.store.lock import is_held
from greenroom.store.runs import Key

KEY = Key("a", 1)
TEXTS = st.text(max_size=8)


def replied(text: str) -> Event:
    return ModelReplied(path="@1/clerk", node="clerk", agent="clerk", text=text)


EVENTS = st.one_of(
    st.builds(UserSaid, text=TEXTS),
    st.builds(lambda text: AgentSaid(path="@1", text=text), TEXTS),
    st.builds(
        lambda n: ModelCalled(path="@1", node="clerk", agent="clerk", n=n), st.integers(0, 9)
    ),
    st.builds(replied, TEXTS),
    st.builds(
        lambda key: ToolCalled(path="@1", call_id="c", tool="look", args={"key": key}), TEXTS
    ),
    st.builds(
        lambda value: ToolReturned(path="@1", call_id="c", tool="look", value=value, source="mock"),
        st.recursive(TEXTS, lambda inner: st.lists(inner, max_size=2), max_leaves=3),
    ),
)
RUNS = st.lists(st.tuples(st.sampled_from("AJ"), EVENTS), max_size=12)


def stamped(ledger: Ledger, event: Event) -> Event:
    return ledger.append(event, at=float(len(ledger)))


def written(entry: Entry, run: list[tuple[str, Event]]) -> tuple[Ledger, Ledger]:
    """Write a trial down as a run would, and give what was written of agent and judges."""
    ledger, judging = Ledger(), Ledger()
    entry.agent(stamped(ledger, RunStarted(run_id="a", case={"id": "a"})))
    for mark, event in run:
        if mark == "A":
            entry.agent(stamped(ledger, event))
        else:
            entry.judge(stamped(judging, event))
    return ledger, judging


def begun(journal: Journal, key: Key = KEY, digest: str = "d1") -> Entry:
    entry = journal.entry()
    entry.begin(key, digest)
    entry.restore(Ledger(), Ledger())
    return entry


def file_of(entry: Entry) -> Path:
    assert entry.place is not None
    return entry.place.path


def is_prefix(part: Ledger, whole: Ledger) -> bool:
    return part.events == whole.events[: len(part)]


@given(run=RUNS, data=st.data())
def test_a_journal_cut_at_any_byte_holds_the_beginning_of_its_trial(run: Any, data: Any) -> None:
    with TemporaryDirectory() as folder:
        journal = Journal(Path(folder) / "run")
        entry = begun(journal)
        ledger, judging = written(entry, run)
        file = file_of(entry)
        journal.close(remove=False)
        whole = file.read_bytes()
        part = whole[: data.draw(st.integers(0, len(whole)))]
        file.write_bytes(part)
        again = Journal(Path(folder) / "run")
        found = again.left_over()
        assert not again.nameless
        lines = part.count(b"\n") + whole.startswith(part + b"\n")  # only its end is missing
        assert len(found) == (lines > 0)  # whose trial it was is in the first line
        for left in found:
            assert (left.key, left.digest, left.damage) == (KEY, "d1", "")
            assert len(left.ledger) + len(left.judging) == lines - 1
            assert is_prefix(left.ledger, ledger)
            assert is_prefix(left.judging, judging)
        again.close(remove=True)


@given(run=RUNS)
def test_what_was_paid_for_is_in_the_file_at_once(run: Any) -> None:
    with TemporaryDirectory() as folder:
        journal = Journal(Path(folder) / "run")
        written(begun(journal), run)
        [left] = journal.left_over()  # read while the trial is under way: nothing waits in memory
        paid = [event for _, event in run if isinstance(event, ModelReplied | ToolCalled)]
        kept = [*left.ledger, *left.judging]
        assert len([e for e in kept if isinstance(e, ModelReplied | ToolCalled)]) == len(paid)
        journal.close(remove=True)


@given(before=RUNS, run=RUNS, data=st.data())
def test_only_the_last_trial_in_a_file_counts(before: Any, run: Any, data: Any) -> None:
    with TemporaryDirectory() as folder:
        journal = Journal(Path(folder) / "run")
        first = begun(journal, Key("before", 1))
        earlier, _ = written(first, before)
        first.forget()
        file = file_of(first)
        size = file.stat().st_size
        first.begin(Key("after", 2), "d2")
        first.restore(Ledger(), Ledger())
        ledger, _ = written(first, run)
        journal.close(remove=False)
        whole = file.read_bytes()
        part = whole[: data.draw(st.integers(size, len(whole)))]
        file.write_bytes(part)
        again = Journal(Path(folder) / "run")
        [left] = again.left_over()
        if b"\n" in whole[size : len(part) + 1]:
            assert (left.key, left.digest) == (Key("after", 2), "d2")
            assert is_prefix(left.ledger, ledger)
        else:
            assert (left.key, left.digest) == (Key("before", 1), "d1")
            assert is_prefix(left.ledger, earlier)
        again.close(remove=True)


@pytest.mark.parametrize("length", [10, 100_000])
def test_a_wiped_file_has_nothing_of_a_longer_trial_behind_a_shorter_one(
    tmp_path: Path, length: int
) -> None:
    journal = Journal(tmp_path / "run")
    first = begun(journal, Key("before", 1))
    written(first, [("A", UserSaid(text="x" * length)), ("A", replied("y"))])
    journal.release(first)
    second = begun(journal, Key("after", 2), "d2")
    ledger, _ = written(second, [("A", replied("z"))])
    assert b"xxxxx" not in file_of(second).read_bytes()
    [left] = journal.left_over()
    assert (left.key, left.digest) == (Key("after", 2), "d2")
    assert left.ledger == ledger
    journal.close(remove=True)


@given(before=RUNS, run=RUNS)
def test_a_file_is_empty_when_the_next_trial_has_it(before: Any, run: Any) -> None:
    with TemporaryDirectory() as folder:
        journal = Journal(Path(folder) / "run")
        first = begun(journal, Key("before", 1))
        written(first, before)
        journal.release(first)
        assert file_of(first).read_bytes().strip(b"\0") == b""
        second = begun(journal, Key("after", 2), "d2")
        assert second is first
        written(second, run)
        [left] = journal.left_over()
        assert (left.key, left.digest) == (Key("after", 2), "d2")
        journal.close(remove=True)


@given(run=RUNS, junk=st.binary(max_size=30))
def test_junk_at_the_end_of_a_file_is_never_taken_for_an_event(run: Any, junk: bytes) -> None:
    with TemporaryDirectory() as folder:
        journal = Journal(Path(folder) / "run")
        entry = begun(journal)
        ledger, judging = written(entry, run)
        [before] = journal.left_over()
        in_the_file = before.ledger, before.judging
        path = file_of(entry)
        journal.close(remove=False)
        with path.open("ab") as file:
            file.write(junk)
        again = Journal(Path(folder) / "run")
        found = again.left_over()
        if b"\n" not in junk:
            [left] = found
            assert (left.key, left.ledger, left.judging) == (KEY, *in_the_file)
        for left in found:
            assert is_prefix(left.ledger, ledger)
            assert is_prefix(left.judging, judging)
        again.close(remove=True)


def taken_up(journal: Journal, left: CutTrial) -> Entry:
    entry = journal.entry()
    entry.begin(left.key, left.digest)
    entry.restore(left.ledger, left.judging)
    left.discard()
    return entry


def test_a_trial_that_is_taken_up_twice_loses_nothing(tmp_path: Path) -> None:
    ledger, judging = Ledger(), Ledger()
    journal = Journal(tmp_path / "run")
    first = begun(journal)
    first.agent(stamped(ledger, RunStarted(run_id="a")))
    first.agent(stamped(ledger, replied("one")))
    journal.close(remove=False)
    for text in ("two", "three"):
        journal = Journal(tmp_path / "run")
        [left] = journal.left_over()
        assert left.ledger == ledger
        entry = taken_up(journal, left)
        entry.agent(stamped(ledger, replied(text)))
        entry.judge(stamped(judging, replied(f"judge {text}")))
        journal.close(remove=False)
    journal = Journal(tmp_path / "run")
    [left] = journal.left_over()
    assert (left.ledger, left.judging) == (ledger, judging)
    journal.close(remove=True)
    assert not (tmp_path / "run").exists()


def test_a_row_is_the_whole_trial_whatever_is_in_the_file_by_then(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "run")
    entry = begun(journal)
    ledger, judging = written(entry, [("A", UserSaid(text="x")), ("J", replied("y"))])
    entry.agent(stamped(ledger, RunEnded(reason="finished")))
    assert Ledger.loads(entry.ledger.decode()) == ledger
    assert Ledger.loads(entry.judging.decode()) == judging
    journal.release(entry)
    assert (entry.ledger, entry.judging) == (b"", b"")
    journal.close(remove=True)


def test_each_trial_under_way_has_a_place_of_its_own(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "run")
    entries = [begun(journal, Key("a", trial)) for trial in range(1, 13)]
    assert len({entry.place for entry in entries}) == 12
    assert {left.key for left in journal.left_over()} == {Key("a", t) for t in range(1, 13)}
    journal.close(remove=True)


def test_files_that_were_left_behind_are_not_written_over(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "run")
    for trial in (1, 2, 3):
        begun(journal, Key("a", trial))
    journal.close(remove=False)
    again = Journal(tmp_path / "run")
    for left in again.left_over()[:2]:
        taken_up(again, left)
    begun(again, Key("b", 1))
    assert len(again.left_over()) == 4
    again.close(remove=True)


def test_a_file_that_has_grown_long_is_emptied_for_the_next(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "run")
    sizes: list[int] = []
    for trial in range(1, 5):
        entry = begun(journal, Key("a", trial))
        ledger = Ledger()
        entry.agent(stamped(ledger, RunStarted(run_id="a")))
        entry.agent(stamped(ledger, replied("x" * 600_000)))
        [left] = journal.left_over()
        assert (left.key, left.ledger) == (Key("a", trial), ledger)
        sizes.append(file_of(entry).stat().st_size)
        journal.release(entry)
    assert max(sizes) < 2_000_000
    journal.close(remove=True)


@given(st.lists(st.sampled_from([10, 20_000, 65_000, 70_000]), min_size=1, max_size=6))
def test_a_trial_that_outgrows_its_slot_is_whole_after_every_answer(sizes: list[int]) -> None:
    with TemporaryDirectory() as folder:
        journal = Journal(Path(folder) / "run")
        neighbours = [begun(journal, Key("small", trial)) for trial in (1, 2)]
        entry, ledger, judging = begun(journal, Key("a", 1)), Ledger(), Ledger()
        for size in sizes:
            entry.agent(stamped(ledger, replied("x" * size)))
            entry.judge(stamped(judging, replied("y" * size)))
            found = {left.key: left for left in journal.left_over()}
            assert (found[KEY].ledger, found[KEY].judging) == (ledger, judging)
            assert len(found) == 1 + len(neighbours)
        journal.release(entry)
        assert KEY not in {left.key for left in journal.left_over()}
        assert all(b"xx" not in path.read_bytes() for path in (Path(folder) / "run").iterdir())
        journal.close(remove=True)


@contextmanager
def limited(kind: int, limit: int) -> Generator[None]:
    soft, hard = resource.getrlimit(kind)
    resource.setrlimit(kind, (limit, hard))
    try:
        yield
    finally:
        resource.setrlimit(kind, (soft, hard))


def test_a_trial_that_cannot_get_a_file_of_its_own_keeps_what_is_in_its_slot(
    tmp_path: Path,
) -> None:
    journal = Journal(tmp_path / "run")
    entry, ledger = begun(journal), Ledger()
    entry.agent(stamped(ledger, replied("short")))
    with limited(resource.RLIMIT_NOFILE, 3):
        entry.agent(stamped(ledger, replied("x" * 70_000)))
    assert entry.failure == ""
    [left] = journal.left_over()
    assert [e.text for e in left.ledger.of(ModelReplied)] == ["short"]
    journal.release(entry)
    again = begun(journal, Key("b", 1))
    assert again is entry
    [left] = journal.left_over()
    assert left.key == Key("b", 1)
    journal.close(remove=True)


def test_a_disk_that_is_full_when_a_trial_outgrows_its_slot_leaves_the_slot_as_it_is(
    tmp_path: Path,
) -> None:
    journal = Journal(tmp_path / "run")
    entry, ledger = begun(journal), Ledger()
    entry.agent(stamped(ledger, replied("short")))
    with limited(resource.RLIMIT_FSIZE, 66_000):
        entry.agent(stamped(ledger, replied("x" * 70_000)))
    assert "cannot write to the journal" in entry.failure
    [left] = journal.left_over()
    assert [e.text for e in left.ledger.of(ModelReplied)] == ["short"]
    assert [path.name for path in (tmp_path / "run").glob("*.*")] == ["0.slots"]
    journal.close(remove=True)


def test_a_write_that_breaks_off_leaves_nothing_behind_once_the_trial_is_safe(
    tmp_path: Path,
) -> None:
    journal = Journal(tmp_path / "run")
    entry, ledger = begun(journal), Ledger()
    with limited(resource.RLIMIT_FSIZE, 3_000):
        entry.agent(stamped(ledger, replied("secret " * 1_000)))
    assert entry.failure
    assert b"secret" in file_of(entry).read_bytes()
    begun(journal, Key("b", 1))
    journal.release(entry)
    journal.close(remove=False)
    [file] = (tmp_path / "run").glob("*.slots")
    assert b"secret" not in file.read_bytes()


def test_a_place_that_cannot_be_wiped_is_given_to_nobody(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "run")
    first, ledger = begun(journal), Ledger()
    first.agent(stamped(ledger, replied("x" * 2_000)))
    with limited(resource.RLIMIT_FSIZE, 1):
        journal.release(first)
    second = begun(journal, Key("b", 1))
    assert second is not first
    assert Key("b", 1) in {left.key for left in journal.left_over()}
    journal.close(remove=True)


def test_a_journal_that_is_closed_writes_into_nobodys_file(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "run")
    small, large, ledger = begun(journal), begun(journal, Key("b", 1)), Ledger()
    small.agent(stamped(ledger, replied("short")))
    large.agent(stamped(Ledger(), replied("x" * 70_000)))
    journal.close(remove=False)
    taken = [os.open(tmp_path / f"other {n}", os.O_RDWR | os.O_CREAT) for n in range(4)]
    journal.release(small)
    journal.release(large)
    for file in taken:
        assert os.fstat(file).st_size == 0
        os.close(file)


def test_no_empty_files_pile_up_when_a_run_is_taken_up_again_and_again(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "run")
    for trial in (1, 2):
        begun(journal, Key("a", trial))
    journal.close(remove=False)
    for _ in range(4):
        journal = Journal(tmp_path / "run")
        for left in journal.left_over():
            taken_up(journal, left)
        journal.close(remove=False)
    assert len(list((tmp_path / "run").glob("*.slots"))) == 1
    [journal] = [Journal(tmp_path / "run")]
    assert len(journal.left_over()) == 2
    journal.close(remove=True)


def test_what_was_taken_up_from_a_slot_leaves_its_neighbours_alone(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "run")
    for trial in (1, 2, 3):
        begun(journal, Key("a", trial))
    journal.close(remove=False)
    again = Journal(tmp_path / "run")
    again.left_over()[1].discard()
    assert [left.key.trial for left in again.left_over()] == [1, 3]
    again.close(remove=True)


def test_a_frozen_file_keeps_what_it_has(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "run")
    entry, ledger = begun(journal), Ledger()
    entry.agent(stamped(ledger, RunStarted(run_id="a")))
    entry.agent(stamped(ledger, replied("paid for")))
    journal.freeze()
    entry.agent(stamped(ledger, replied("noise")))
    [left] = journal.left_over()
    assert [e.text for e in left.ledger.of(ModelReplied)] == ["paid for"]
    journal.close(remove=True)


def test_half_a_character_does_not_stop_the_journal(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "run")
    key = Key("a\udc80", 1)
    entry, ledger = begun(journal, key), Ledger()
    entry.agent(stamped(ledger, RunStarted(run_id="a")))
    entry.agent(stamped(ledger, replied("half \ud83d")))
    entry.agent(
        stamped(ledger, ToolCalled(path="@1", call_id="c", tool="t", args={"\ud83d": "\udc80"}))
    )
    [left] = journal.left_over()
    assert (left.key, len(left.ledger)) == (key, 3)
    journal.close(remove=True)


def test_line_ends_inside_of_texts_do_not_cut_lines(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "run")
    entry, ledger = begun(journal, Key("a\nA{}\nT{}", 1)), Ledger()
    entry.agent(stamped(ledger, RunStarted(run_id="a")))
    entry.agent(stamped(ledger, replied('T{"case_id": "x"}\nA{}\r\n\u2028\u0085\x00 end')))
    [left] = journal.left_over()
    assert (left.key.case_id, left.ledger) == ("a\nA{}\nT{}", ledger)
    journal.close(remove=True)


@pytest.mark.parametrize(
    "content", [b"", b"\n", b"T\n", b"T{}\n", b"T[]\n", b"\x00" * 9, b'T{"case_id": 1}\n', b"A{}\n"]
)
def test_a_file_that_makes_no_sense_is_left_out(tmp_path: Path, content: bytes) -> None:
    journal = Journal(tmp_path / "run")
    (tmp_path / "run" / "0.jsonl").write_bytes(content)
    assert journal.left_over() == []
    journal.close(remove=True)


def test_one_holder_at_a_time(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "run")
    assert is_held(tmp_path / "run")
    with pytest.raises(StoreFailed, match="run 'run' is in use by another process"):
        Journal(tmp_path / "run")
    journal.close(remove=False)
    assert not is_held(tmp_path / "run")
    assert not is_held(tmp_path / "never")
    Journal(tmp_path / "run").close(remove=True)


def test_who_only_looks_whether_it_is_held_does_not_stand_in_the_way(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Journal(tmp_path / "run").close(remove=False)
    looking = os.open(tmp_path / "run" / "lock", os.O_RDWR)
    fcntl.flock(looking, fcntl.LOCK_SH)
    waited: list[float] = []

    def wait(seconds: float) -> None:
        waited.append(seconds)
        if len(waited) == 50:  # who looks may have to let many others go first
            os.close(looking)

    monkeypatch.setattr("greenroom.store.lock.sleep", wait)
    Journal(tmp_path / "run").close(remove=True)
    assert len(waited) == 50


def test_what_somebody_else_put_there_does_not_break_the_end(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "run")
    begun(journal)
    (tmp_path / "run" / ".DS_Store").touch()
    journal.close(remove=True)
    assert not is_held(tmp_path / "run")
    assert [path.name for path in (tmp_path / "run").iterdir()] == [".DS_Store"]


def test_journals_are_for_their_owner_only(tmp_path: Path) -> None:
    umask = os.umask(0)
    try:
        journal = Journal(tmp_path / "journals" / "run")
        begun(journal)
    finally:
        os.umask(umask)
    run = tmp_path / "journals" / "run"
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in run.iterdir()}
    assert [stat.S_IMODE(place.stat().st_mode) for place in (run, run.parent)] == [0o700, 0o700]
    assert modes == {"lock": 0o600, "0.slots": 0o600}
    journal.close(remove=True)


def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(StoreFailed, match="cannot keep a journal in"):
        Journal(tmp_path / "file" / "run")


def test_calls_with_arguments_come_back_as_they_were(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "run")
    entry, ledger = begun(journal), Ledger()
    wanted = (call("look", key="ö\u2028"), call("look", key=[1, 2.5, None, {"x": True}]))
    entry.agent(stamped(ledger, RunStarted(run_id="a")))
    entry.agent(
        stamped(ledger, ModelReplied(path="@1", node="n", agent="n", text="", calls=wanted))
    )
    [left] = journal.left_over()
    assert left.ledger == ledger
    journal.close(remove=True)


@given(run=RUNS, data=st.data())
def test_a_trial_cut_while_it_is_written_down_again_is_the_old_one_or_the_new(
    run: list[tuple[str, Event]], data: st.DataObject
) -> None:
    with TemporaryDirectory() as folder:
        journal = Journal(Path(folder) / "run")
        entry = begun(journal)
        ledger, judging = written(entry, [*run, ("A", replied("the last word"))])
        kept = data.draw(st.integers(1, len(ledger)))
        size = file_of(entry).stat().st_size
        entry.forget()
        entry.begin(KEY, "d1")
        entry.restore(Ledger(ledger.events[:kept]), judging)
        whole = file_of(entry).read_bytes()
        file_of(entry).write_bytes(whole[: data.draw(st.integers(size, len(whole)))])
        [left] = journal.left_over()
        assert len(left.ledger) in (len(ledger), kept)
        assert is_prefix(left.ledger, ledger)
        journal.close(remove=True)
