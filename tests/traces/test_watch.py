"""Production scored as it comes: counted once, with intervals that hold, and alarms."""

import asyncio
import json
import os
import random
import signal
import sys
from pathlib import Path
from time import monotonic
from typing import Any

import pytest

import warm_python
from greenroom.cases import EvalSet
from greenroom.ledger.questions import turns
from greenroom.models import ModelReply
from greenroom.results import Report
from greenroom.results.result import CaseResult
from greenroom.results.statistics.streams import Drift, StreamRate
from greenroom.suite.recorded.trace_cases import add_failure
from greenroom.suite.recorded.trace_watch import TraceWatch, baseline_rates, is_sampled
from greenroom.traces import Imported, LedgerWriter


def talk(name: str, said: str = "It is in Lyon.", user: str = "Where is order 7?") -> str:
    messages = [{"role": "user", "content": user}, {"role": "assistant", "content": said}]
    return json.dumps({"id": name, "messages": messages})


def watch(folder: Path, **more: Any) -> TraceWatch:
    from greenroom.metrics import contains

    options: dict[str, Any] = {"metrics": [contains("Lyon")], "settle": 0.0, **more}
    return TraceWatch(folder=folder / "in", state=folder / "state", **options)


@pytest.fixture
def folder(tmp_path) -> Path:
    (tmp_path / "in").mkdir()
    return tmp_path


async def test_each_conversation_counts_once_also_after_a_restart(folder):
    (folder / "in" / "a.jsonl").write_text("\n".join(talk(f"c{n}") for n in range(3)))
    first = watch(folder)
    assert len(await first.look()) == 3
    (folder / "in" / "b.jsonl").write_text("\n".join([talk("c2"), talk("c3", "In Rome.")]))
    again = watch(folder)
    assert [one.conversation for one, _ in await again.look()] == ["c3"]
    assert (again.rates["passing"].held, again.rates["passing"].total) == (3, 4)
    assert await again.look() == []


async def test_a_line_that_a_crash_cut_is_no_line(folder):
    (folder / "in" / "a.jsonl").write_text("\n".join(talk(f"c{n}") for n in range(3)))
    await watch(folder).look()
    journal = folder / "state" / "conversations.jsonl"
    journal.write_bytes(journal.read_bytes()[:-20])
    again = watch(folder)
    assert again.rates["passing"].total == 2
    assert len(await again.look()) == 1
    assert watch(folder).rates["passing"].total == 3


async def test_what_was_not_recorded_is_a_rate_of_its_own(folder):
    from greenroom.metrics import completed_within

    (folder / "in" / "a.jsonl").write_text("\n".join(talk(f"c{n}") for n in range(3)))
    found = watch(folder, metrics=[completed_within(1.0)])
    await found.look()
    assert (found.rates["measured"].held, found.rates["measured"].total) == (0, 3)
    assert found.rates["passing"].total == 0


async def test_a_rate_that_leaves_the_baseline_is_said_once(folder):
    good = [CaseResult(case_id=str(n), status="passed") for n in range(200)]
    lines = [talk(f"c{n}", "In Rome.") for n in range(60)]
    (folder / "in" / "a.jsonl").write_text("\n".join(lines))
    found = watch(folder, baseline=Report(good), patience=1000)
    await found.look()
    assert found.alarms
    assert "fewer conversations pass than in the baseline: 0.0 %" in found.alarms[0]
    assert watch(folder, baseline=Report(good), patience=1000).alarms == []


async def test_a_budget_that_is_used_up_leaves_conversations_unmeasured(folder):
    (folder / "in" / "a.jsonl").write_text(talk("c"))
    found = watch(folder, budget=0.0)
    ((_, result),) = await found.look()
    assert result.status == "error"
    assert (found.rates["measured"].held, found.rates["measured"].total) == (0, 1)
    assert (found.rates["unbroken"].held, found.rates["unbroken"].total) == (1, 1)


class Unpriced:
    """A judge that is content, and does not say what it costs."""

    name = "unpriced"

    async def respond(self, request: Any, on_delta: Any = None) -> Any:
        return ModelReply(text='{"reasoning": "Fine.", "verdict": true}', model="unpriced")


async def test_a_budget_is_not_kept_by_taking_unknown_prices_for_nothing(folder, monkeypatch):
    from greenroom.metrics import judge

    monkeypatch.setenv("GREENROOM_JUDGES", str(folder / "judges"))
    (folder / "in" / "a.jsonl").write_text("\n".join(talk(f"c{n}") for n in range(2)))
    found = watch(folder, metrics=[judge("kind", "Is it kind?", model=Unpriced())], budget=1.0)
    (_, first), (_, second) = await found.look()
    assert first.status == "passed"
    assert "the price of a judge is unknown" in second.scores["budget"].why  # type: ignore[union-attr]


async def test_a_conversation_waits_for_all_of_its_files_to_settle(folder):
    from greenroom.metrics import turns_within
    from traces.test_readers import otlp, recorded

    spans, ledger = recorded()
    old, new = folder / "in" / "old.json", folder / "in" / "new.json"
    old.write_text(json.dumps(otlp(spans[:4])))
    new.write_text(json.dumps(otlp(spans[4:])))
    os.utime(old, (1, 1))
    found = watch(folder, metrics=[turns_within(2)], settle=1000.0)
    assert await found.look() == []
    os.utime(new, (1, 1))
    ((one, _),) = await found.look()
    assert turns(one.ledger) == turns(ledger) == 2


async def test_a_conversation_settles_though_others_are_added_to_its_file(folder):
    file = folder / "in" / "a.jsonl"
    file.write_text(talk("c0"))
    found = watch(folder, settle=0.2)
    assert await found.look() == []
    counted: list[str] = []
    until = monotonic() + 600
    number = 0
    while not counted and monotonic() < until:
        number += 1
        with file.open("a") as added:
            added.write("\n" + talk(f"c{number}"))
        counted += [one.conversation for one, _ in await found.look()]
        await asyncio.sleep(0.02)
    assert counted[0] == "c0"
    assert f"c{number}" not in counted


async def test_what_is_still_being_written_is_not_called_unreadable(folder):
    file = folder / "in" / "a.jsonl"
    file.write_text(talk("c0") + "\n" + talk("c1")[:20])
    found = watch(folder, settle=1000.0)
    await found.look()
    assert found.unread == set()
    file.write_text(talk("c0") + "\n" + talk("c1"))
    await found.look()
    assert found.flaws == {}
    file.write_text(talk("c0") + "\n" + talk("c1")[:20])
    os.utime(file, (1, 1))
    await found.look()
    assert "line 2" in "".join(found.unread)


async def test_files_are_read_once_and_forgotten_when_they_are_counted(folder):
    first, second = folder / "in" / "a.jsonl", folder / "in" / "b.jsonl"
    first.write_text(talk("c0"))
    found = watch(folder)
    await found.look()
    assert found.files.contents == {first: None}
    assert not found.files.refresh()
    second.write_text(talk("c1") + "\n{")
    assert [one.conversation for one, _ in await found.look()] == ["c1"]
    assert found.files.contents[first] is None
    assert found.files.contents[second] is not None  # it may still become whole
    second.unlink()
    assert await found.look() == []
    assert (found.files.contents, found.unread) == ({first: None}, set())


async def test_a_log_that_goes_on_after_it_was_counted_is_named_and_counts_once(folder):
    file = folder / "in" / "a.json"
    file.write_text(talk("c"))
    found = watch(folder)
    await found.look()
    assert found.late == set()
    longer = json.loads(talk("c"))
    longer["messages"] *= 2
    file.write_text(json.dumps(longer))
    assert await found.look() == []
    assert (found.late, found.rates["passing"].total) == ({"c"}, 1)


async def test_a_trace_that_comes_after_its_conversation_was_counted_is_named(folder):
    from greenroom.metrics import turns_within
    from traces.test_partial import AGENT, FIRST, LAST, TRACK

    def put(name: str, trace: str, *spans: Any) -> None:
        named = [{**one, "traceId": trace} for one in spans]
        data = {"resourceSpans": [{"scopeSpans": [{"spans": named}]}]}
        (folder / "in" / name).write_text(json.dumps(data))

    put("a.json", "a" * 32, AGENT, FIRST, TRACK, LAST)
    put("noise.json", "c" * 32, {**AGENT, "attributes": [], "name": "GET /"})
    found = watch(folder, metrics=[turns_within(2)])
    assert len(await found.look()) == 1
    assert set(found.files.contents.values()) == {None}
    assert (found.late, found.unread) == (set(), set())
    put("late.json", "a" * 32, LAST)
    put("b.json", "b" * 32, AGENT, FIRST, TRACK, LAST)
    assert await found.look() == []
    assert (found.late, found.rates["passing"].total) == ({"c"}, 1)
    assert set(found.files.contents.values()) == {None}


async def test_conversations_of_one_trace_do_not_lose_each_other(folder):
    from greenroom.metrics import turns_within
    from traces.test_partial import model, span

    def agent(number: int, name: str) -> dict[str, Any]:
        return span(number, "invoke_agent", attributes={"gen_ai.conversation.id": name})

    def put(name: str, *spans: Any) -> None:
        data = {"resourceSpans": [{"scopeSpans": [{"spans": spans}]}]}
        (folder / "in" / name).write_text(json.dumps(data))

    put("a.json", agent(1, "a"), model(2, [], parent=1))
    first = watch(folder, metrics=[turns_within(2)])
    assert [one.conversation for one, _ in await first.look()] == ["a"]
    put("b.json", agent(3, "b"), model(4, [], parent=3))
    assert [one.conversation for one, _ in await first.look()] == ["b"]
    put("c.json", agent(5, "c"), model(6, [], parent=5))
    again = watch(folder, metrics=[turns_within(2)])
    assert [one.conversation for one, _ in await again.look()] == ["c"]
    assert again.late == set()


def test_a_failure_is_not_lost_when_the_watch_is_killed_before_it_counts(folder):
    (folder / "in" / "a.jsonl").write_text(talk("c", "In Rome."))
    code = """
import asyncio, os, signal
from pathlib import Path
from greenroom.metrics import contains
from greenroom.suite.recorded.trace_cases import add_failure
from greenroom.suite.recorded.trace_watch import TraceWatch

def killed(one, result):
    assert add_failure(one, Path("failed.json"), [])
    os.kill(os.getpid(), signal.SIGKILL)

watch = TraceWatch(folder=Path("in"), state=Path("state"), metrics=[contains("Lyon")], settle=0.0,
                   before_counting=killed)
asyncio.run(watch.look())
"""
    done = warm_python.run([sys.executable, "-c", code], cwd=folder, check=False)
    assert done.returncode == -signal.SIGKILL
    assert not (folder / "state" / "conversations.jsonl").exists()
    place = folder / "failed.json"
    added: list[str] = []
    again = watch(
        folder, before_counting=lambda one, result: added.append(add_failure(one, place, []))
    )
    asyncio.run(again.look())
    assert (added, again.rates["passing"].total) == ([""], 1)
    assert len(EvalSet.load(place)) == 1


async def test_a_result_is_used_before_it_counts_so_that_a_crash_cannot_lose_it(folder):
    def killed(one: Imported, result: CaseResult) -> None:
        raise KeyboardInterrupt

    (folder / "in" / "a.jsonl").write_text(talk("c"))
    with pytest.raises(KeyboardInterrupt):
        await watch(folder, before_counting=killed).look()
    seen: list[str] = []
    again = watch(folder, before_counting=lambda one, result: seen.append(one.conversation))
    await again.look()
    assert (seen, again.rates["passing"].total) == (["c"], 1)


def test_a_failure_is_added_once_and_no_other_is_taken_for_it(folder):
    def failure(phone: str, said: str) -> Imported:
        writer = LedgerWriter(phone)
        writer.user(said)
        writer.said("No.")
        return writer.imported("log")

    place = folder / "failed.json"
    first = failure("+49 30 1234567", "I am ann@shop.com. Where is order 7?")
    other = failure("+49 30 7654321", "I am bob@shop.com. Where is order 8?")
    # Both ids become phone-1; and what is written again after a crash may come in another order.
    added = [add_failure(one, place, []) for one in (first, other, other, first)]
    assert added == ["phone-1", "phone-1-2", "", ""]
    assert [case.script[0].says for case in EvalSet.load(place)] == [
        "I am user-1@example.com. Where is order 7?",
        "I am user-1@example.com. Where is order 8?",
    ]


def test_the_same_conversations_are_sampled_everywhere():
    names = [f"c{n}" for n in range(2000)]
    few = {name for name in names if is_sampled(name, 0.1)}
    assert 120 < len(few) < 280
    assert few <= {name for name in names if is_sampled(name, 0.3)}
    assert all(is_sampled(name, 1.0) for name in names)


def test_an_interval_holds_at_every_look():
    chance = random.Random(7)
    wrong = 0
    for _ in range(80):
        rate = StreamRate()
        for _ in range(150):
            rate.add(chance.random() < 0.8)
            interval = rate.interval()
            assert interval is not None
            if not interval.low <= 0.8 <= interval.high:
                wrong += 1
                break
    assert wrong <= 8, "at most 5 % of the streams may ever be wrong, and a little chance"


def test_drift_is_seen_soon_and_rarely_where_there_is_none():
    chance = random.Random(7)
    delays: list[int] = []
    false = 0
    for _ in range(50):
        drift = Drift(0.9, 10_000)
        false += any(drift.add(chance.random() < 0.9) for _ in range(1000))
        drift = Drift(0.9, 10_000)
        delays.append(next(n for n in range(1, 5000) if drift.add(chance.random() < 0.7)))
    assert false <= 8
    assert sorted(delays)[25] < 120


def test_what_never_held_cannot_hold_less_often():
    drift = Drift(0.0, 10_000)
    assert not any(drift.add(False) for _ in range(9000))


def test_a_baseline_speaks_for_the_low_ends_of_its_rates():
    results = [CaseResult(case_id=str(n), status="passed") for n in range(50)]
    rates = dict(baseline_rates(Report(results)))
    assert rates.keys() == {"passing", "unbroken", "measured"}
    assert 0.85 < rates["passing"] < 1


# From the command line


def test_failures_become_cases_without_personal_data(folder, monkeypatch):
    from click.testing import CliRunner

    from greenroom.apps.cli import main

    monkeypatch.chdir(folder)
    lines = [talk("good"), talk("bad", "Ask ann@shop.com.", "I am ann@shop.com, Ann Lee.")]
    (folder / "in" / "a.jsonl").write_text("\n".join(lines))
    (folder / "names.txt").write_text("Ann Lee\n")
    words = ["traces", "watch", "--folder", "in", "--once", "-m", "contains:Lyon"]
    words += ["--state", "state", "--failures", "failed.json", "--redact", "names.txt"]
    first = CliRunner().invoke(main, words)
    assert first.exit_code == 0
    assert "bad: written to failed.json as bad\n" in first.output
    done = CliRunner().invoke(main, words)
    assert done.exit_code == 0, done.output
    assert "passing 50.0 % of 2" in done.output
    text = (folder / "failed.json").read_text()
    assert "ann@shop.com" not in text
    assert "Ann Lee" not in text
    (case,) = EvalSet.load(folder / "failed.json")
    assert case.script[0].says == "I am user-1@example.com, Person 1."


def test_a_folder_that_is_not_there_is_an_error_and_not_an_empty_one(folder, monkeypatch):
    from click.testing import CliRunner

    from greenroom.apps.cli import main

    monkeypatch.chdir(folder)
    (folder / "traces").mkdir()
    (folder / "a.json").write_text("{}")
    words = ["traces", "watch", "--once", "-m", "contains:Rome", "--folder"]
    done = CliRunner().invoke(main, [*words, "trace"])
    assert (done.exit_code, "Did you mean 'traces'?" in done.output) == (3, True)
    assert not (folder / "trace").exists()
    assert CliRunner().invoke(main, [*words, "a.json"]).exit_code == 3


def test_what_could_not_be_measured_is_no_failure(folder, monkeypatch):
    from click.testing import CliRunner

    from greenroom.apps.cli import main

    monkeypatch.chdir(folder)
    (folder / "in" / "a.jsonl").write_text(talk("c"))
    words = ["traces", "watch", "--folder", "in", "--once", "-m", "contains:Rome", "--budget", "0"]
    done = CliRunner().invoke(main, [*words, "--state", "state", "--failures", "failed.json"])
    assert done.exit_code == 0, done.output
    assert "c: error" in done.output
    assert not (folder / "failed.json").exists()
