"""Results come one by one, and nobody plays far ahead of whoever takes them."""

import asyncio
import contextlib
import gc
import pickle
import socket
import threading
import tracemalloc
from contextlib import aclosing
from pathlib import Path

import pytest

from greenroom import Agent, Case, Expect, Scripted, evaluate
from greenroom.errors import BadInput, RunFaulted
from greenroom.results import CaseResult
from greenroom.store import Store
from greenroom.suite import Cancel, stream

HELLO = Agent("hello", model=Scripted("Hello."))


def cases(count: int) -> list[Case]:
    return [Case(f"case-{n}", says="Hi.", expect=Expect(response="Hello.")) for n in range(count)]


async def test_every_result_comes_once() -> None:
    seen = [result async for result in stream(HELLO, cases(40), trials=2)]
    assert sorted((result.case_id, result.trial) for result in seen) == sorted(
        (case.id, trial) for case in cases(40) for trial in (1, 2)
    )
    assert all(result.passed for result in seen)


async def test_a_slow_reader_is_waited_for() -> None:
    begun: list[str] = []
    read = 0
    async for _ in stream(HELLO, cases(200), on_case_start=lambda case: begun.append(case.id)):
        read += 1
        await asyncio.sleep(0)
        assert len(begun) - read < 60
    assert read == 200


async def test_a_reader_who_leaves_ends_the_run_which_can_be_resumed(tmp_path: Path) -> None:
    async with aclosing(stream(HELLO, cases(100), store=tmp_path, concurrency=1)) as results:
        async for result in results:
            if result.case_id == "case-3":
                break
    [run] = Store(tmp_path).runs()
    assert run.status == "interrupted"
    assert 0 < run.done < 100
    report = await evaluate(HELLO, cases(100), store=tmp_path, resume=True)
    assert report.summary.passed == 100


async def test_a_resumed_run_streams_what_was_finished_too(tmp_path: Path) -> None:
    await evaluate(HELLO, cases(3), store=tmp_path)
    [run] = Store(tmp_path).runs()
    seen = [r.case_id async for r in stream(HELLO, cases(5), store=tmp_path, resume=run.id)]
    assert sorted(seen) == [f"case-{n}" for n in range(5)]


def stray() -> None:
    with contextlib.suppress(OSError):
        socket.create_connection(("127.0.0.1", 9), 1)


async def test_a_stream_ends_with_the_faults_that_a_report_would_have(
    caplog: pytest.LogCaptureFixture,
) -> None:
    go, gone = threading.Event(), threading.Event()

    def older() -> None:
        go.wait(5)
        stray()
        gone.set()

    threading.Thread(target=older).start()

    async def patient(message: str) -> str:
        go.set()
        while not gone.is_set():  # noqa: ASYNC110 - a thread sets it
            await asyncio.sleep(0.005)
        return "Hello."

    seen: list[str] = []

    async def read() -> None:
        async for result in stream(patient, cases(1), store=False):
            seen.append(result.status)

    with pytest.raises(RunFaulted, match="work of no case tried") as ended:
        await read()
    assert seen == ["error"]
    assert len(ended.value.faults) == 1
    assert ended.value.faults[0] in caplog.text
    assert pickle.loads(pickle.dumps(ended.value)).faults == ended.value.faults


async def test_what_is_logged_holds_no_secret(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SHOP_KEY", "sesame-4711-open")

    def broken(case: Case) -> None:
        raise ValueError("sesame-4711-open")

    async for _ in stream(HELLO, cases(1), store=False, on_case_start=broken):
        pass
    assert "ValueError('[redacted:SHOP_KEY]')" in caplog.text
    assert "sesame" not in caplog.text


async def test_trials_that_confirm_come_once_and_after_all_others() -> None:
    baseline = await evaluate(HELLO, cases(3), store=False)
    worse = Agent("hello", model=Scripted(then=lambda _: "Go away."))
    seen = [
        (result.case_id, result.trial)
        async for result in stream(worse, cases(3), baseline=baseline, store=False)
    ]
    assert len(set(seen)) == len(seen) > 3
    assert sorted(seen[:3]) == [("case-0", 1), ("case-1", 1), ("case-2", 1)]
    assert all(trial > 1 for _, trial in seen[3:])


async def test_what_is_wrong_is_said_before_the_first_result() -> None:
    with pytest.raises(BadInput):
        async for _ in stream(HELLO, cases(1), on_error="never"):  # pyright: ignore[reportArgumentType]
            pass


async def test_an_option_that_does_not_exist_is_named_with_its_neighbour() -> None:
    with pytest.raises(TypeError, match=r"no option 'concurency'\. Did you mean concurrency"):
        await evaluate(HELLO, cases(1), concurency=2)  # pyright: ignore[reportCallIssue]


async def test_a_reader_who_cancels_and_leaves_is_not_kept_waiting() -> None:
    token, begun = Cancel(), list[Case]()
    opened = stream(HELLO, cases(200), cancel=token, on_case_start=begun.append)
    async with asyncio.timeout(30), aclosing(opened) as results:
        async for _ in results:
            token.cancel()
            break
    assert 0 < len(begun) < 200


@pytest.mark.heavy
async def test_nothing_piles_up_in_a_long_stream(tmp_path: Path) -> None:
    heard: list[str] = []
    gc.collect()
    others = [one for one in gc.get_objects() if isinstance(one, CaseResult | asyncio.Task)]
    results, tasks = 0, 0
    known = set(map(id, others))

    def alive(kind: type) -> int:
        return sum(isinstance(one, kind) and id(one) not in known for one in gc.get_objects())

    found = stream(
        HELLO,
        cases(300),
        store=tmp_path / "runs",
        on_case_complete=lambda result: heard.append(result.case_id),
    )
    async for result in found:
        if result.case_id.endswith("50"):
            gc.collect()
            # Counted without a list of them, which would keep them for the next count.
            results = max(results, alive(CaseResult))
            tasks = max(tasks, alive(asyncio.Task))
    assert len(heard) == 300
    # Those under way, on their way to the disk and to the reader.
    assert 0 < results < 150
    assert 0 < tasks < 150


async def test_trials_are_made_when_they_run_and_not_all_before(tmp_path: Path) -> None:
    async def peak(trials: int) -> int:
        results = stream(HELLO, cases(1), trials=trials, store=tmp_path / str(trials))
        tracemalloc.start()
        try:
            async with aclosing(results):
                await anext(results)
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    await peak(2)  # whatever is loaded on the way
    assert await peak(100_000) - await peak(100) < 2_000_000
