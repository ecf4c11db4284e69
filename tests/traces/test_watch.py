"""Production scored as it comes: counted once, with intervals that hold, and alarms."""

import json
import os
import random
import signal
import subprocess
import sys
from pathlib import Path
from time import monotonic, sleep
from typing import Any

import pytest

from greenroom.cases import EvalSet
from greenroom.results import Report
from greenroom.results.result import CaseResult
from greenroom.results.streams import Drift, StreamRate
from greenroom.suite.trace_watch import TraceWatch, baseline_rates, is_sampled


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
    assert found.rates["measured"].held == 0


def test_the_same_conversations_are_sampled_everywhere():
    names = [f"c{n}" for n in range(2000)]
    few = {name for name in names if is_sampled(name, 0.1)}
    assert 120 < len(few) < 280
    assert few <= {name for name in names if is_sampled(name, 0.3)}
    assert all(is_sampled(name, 1.0) for name in names)


def test_an_interval_holds_at_every_look():
    chance = random.Random(7)
    wrong = 0
    for _ in range(200):
        rate = StreamRate()
        for _ in range(150):
            rate.add(chance.random() < 0.8)
            interval = rate.interval()
            assert interval is not None
            if not interval.low <= 0.8 <= interval.high:
                wrong += 1
                break
    assert wrong <= 15, "at most 5 % of the streams may ever be wrong, and a little chance"


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
    assert CliRunner().invoke(main, words).exit_code == 0
    done = CliRunner().invoke(main, words)
    assert done.exit_code == 0, done.output
    assert "passing 50.0 % of 2" in done.output
    text = (folder / "failed.json").read_text()
    assert "ann@shop.com" not in text
    assert "Ann Lee" not in text
    (case,) = EvalSet.load(folder / "failed.json")
    assert case.script[0].says == "I am user-1@example.com, Person 1."


@pytest.mark.slow
def test_a_receiver_that_is_killed_counts_nothing_twice_and_loses_nothing(tmp_path):
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.trace.export import SpanExportResult

    from traces.test_readers import recorded

    spans, _ = recorded()
    command = [sys.executable, "-m", "greenroom", "traces", "watch", "--otlp", "127.0.0.1:0"]
    command += ["-m", "turns_within:2", "--state", str(tmp_path), "--settle", "0.1"]
    for _ in range(2):
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=tmp_path)
        assert process.stdout is not None
        line = process.stdout.readline()
        place = line.split("takes OTLP at ")[1].strip()
        assert OTLPSpanExporter(place).export(spans) is SpanExportResult.SUCCESS
        journal = tmp_path / "conversations.jsonl"
        until = monotonic() + 20
        while not journal.exists() and monotonic() < until:
            sleep(0.1)
        os.kill(process.pid, signal.SIGKILL)
        process.communicate()
    done = subprocess.run(
        [*command, "--once"], capture_output=True, text=True, cwd=tmp_path, check=False
    )
    assert "passing 100.0 % of 1" in done.stdout, done.stderr
