"""A run is stopped from outside: what is finished stays, whatever hangs is cut, a report comes."""

import asyncio
import signal
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest

from greenroom import Agent, Case, Report, Scripted, call, evaluate, rehearse, step, tool
from greenroom.metrics import contains
from greenroom.suite.cancel import Cancel

OK = contains("Done")


def cases(*says: str) -> list[Case]:
    return [Case(f"c{n}", text) for n, text in enumerate(says)]


def outcomes(report: Report) -> list[tuple[str, str]]:
    return [(result.status, *result.notes)[:2] for result in report]  # pyright: ignore[reportReturnType]


class Stuck:
    """An agent that hangs when it is told to, and says so to whoever waits for that."""

    def __init__(self, hang: Callable[[], Any]) -> None:
        self.hang = hang
        self.is_hanging = threading.Event()
        self.played: list[str] = []

    @property
    def agent(self) -> Any:
        return step(self.play)

    async def play(self, ctx: Any) -> str:
        self.played.append(ctx.input)
        if ctx.input == "hang":
            self.is_hanging.set()
            waits = self.hang()
            if waits is not None:
                await waits
        return "Done."

    def cancelled_by(self, token: Cancel, reason: str = "enough") -> threading.Thread:
        """Another thread that cancels once the agent hangs."""

        def cancel() -> None:
            self.is_hanging.wait()
            token.cancel(reason)

        thread = threading.Thread(target=cancel)
        thread.start()
        return thread


def sleep_awaited() -> Any:
    return asyncio.sleep(600)


def sleep_blocking() -> None:
    time.sleep(600)


def spin() -> None:
    while True:
        pass


async def swallow() -> None:
    while True:
        try:
            await asyncio.sleep(600)
        except asyncio.CancelledError:
            continue


HANGS = [sleep_awaited, sleep_blocking, spin, swallow]


async def test_a_token_that_was_cancelled_before_the_run_lets_nothing_begin():
    token, stuck = Cancel(), Stuck(spin)
    token.cancel("not today")
    report = await evaluate(stuck.agent, cases("hang", "hi"), metrics=[OK], cancel=token)
    assert outcomes(report) == [("skipped", "not run: not today")] * 2
    assert stuck.played == []


@pytest.mark.parametrize("hang", HANGS)
async def test_another_thread_cuts_what_hangs_and_a_report_comes(hang):
    token, stuck = Cancel(), Stuck(hang)
    thread = stuck.cancelled_by(token)
    report = await evaluate(
        stuck.agent, cases("hi", "hang", "later"), metrics=[OK], concurrency=1, cancel=token
    )
    thread.join()
    assert outcomes(report) == [
        ("passed",),
        ("skipped", "not finished: enough"),
        ("skipped", "not run: enough"),
    ]
    assert stuck.played == ["hi", "hang"]
    assert not report.passed


@pytest.mark.parametrize("hang", [sleep_blocking, spin])
async def test_a_live_tool_that_hangs_is_cut(hang):
    token, begun = Cancel(), threading.Event()

    @tool
    def look(key: str) -> str:
        """Look."""
        begun.set()
        hang()
        return key

    def cancel() -> None:
        begun.wait()
        token.cancel()

    agent = Agent("clerk", model=Scripted(call("look", key="a"), "Done."), tools=[look])
    thread = threading.Thread(target=cancel)
    thread.start()
    report = await evaluate(agent, cases("hi"), metrics=[OK], allow_tools=[look], cancel=token)
    thread.join()
    assert outcomes(report) == [("skipped", "not finished: cancelled")]


async def test_all_that_is_under_way_is_cut_at_once():
    token, stuck = Cancel(), Stuck(sleep_awaited)
    thread = stuck.cancelled_by(token)
    report = await evaluate(
        stuck.agent, cases(*["hang"] * 20), metrics=[OK], concurrency=8, cancel=token
    )
    thread.join()
    assert {status for status, _ in outcomes(report)} == {"skipped"}
    assert len(stuck.played) <= 8


async def test_a_hanging_metric_is_cut_too():
    token, begun = Cancel(), threading.Event()

    async def endless(case: Case) -> bool:
        begun.set()
        await asyncio.sleep(600)
        return True

    thread = threading.Thread(target=lambda: (begun.wait(), token.cancel()))
    thread.start()
    report = await evaluate(step(lambda: "Done."), cases("hi"), metrics=[endless], cancel=token)
    thread.join()
    assert outcomes(report) == [("skipped", "not finished: cancelled")]


async def test_two_runs_that_share_a_token_stop_together():
    token = Cancel()
    runs = [Stuck(sleep_awaited), Stuck(sleep_awaited)]

    def cancel() -> None:
        for stuck in runs:
            stuck.is_hanging.wait()
        token.cancel("both")

    thread = threading.Thread(target=cancel)
    thread.start()
    reports = await asyncio.gather(
        *(evaluate(s.agent, cases("hang", "hi"), concurrency=1, cancel=token) for s in runs)
    )
    thread.join()
    for report in reports:
        assert outcomes(report) == [
            ("skipped", "not finished: both"),
            ("skipped", "not run: both"),
        ]


async def test_a_run_without_the_token_goes_on():
    token, stuck = Cancel(), Stuck(sleep_awaited)
    thread = stuck.cancelled_by(token)
    cut, whole = await asyncio.gather(
        evaluate(stuck.agent, cases("hang"), metrics=[OK], cancel=token),
        evaluate(step(slowly), cases(*["hi"] * 9), metrics=[OK], concurrency=3),
    )
    thread.join()
    assert outcomes(cut) == [("skipped", "not finished: enough")]
    assert whole.passed


async def slowly(ctx: Any) -> str:
    for _ in range(20):
        await asyncio.sleep(0.005)
    return "Done."


@pytest.mark.parametrize("hang", [sleep_awaited, spin, swallow])
def test_a_rehearsal_in_another_thread_is_cut(hang):
    token, stuck, reports = Cancel(), Stuck(hang), list[Report]()

    def play() -> None:
        reports.append(
            rehearse(stuck.agent, cases("hang", "hi"), metrics=[OK], concurrency=1, cancel=token)
        )

    thread = threading.Thread(target=play)
    thread.start()
    stuck.is_hanging.wait()
    token.cancel("from main")
    thread.join()
    assert outcomes(reports[0]) == [
        ("skipped", "not finished: from main"),
        ("skipped", "not run: from main"),
    ]


def test_a_rehearsal_that_ends_while_it_is_cancelled_is_no_error():
    token, may_answer, reports = Cancel(), threading.Event(), list[Report]()
    stuck = Stuck(lambda: asyncio.to_thread(may_answer.wait))

    def play() -> None:
        reports.append(rehearse(stuck.agent, cases("hang"), metrics=[OK], cancel=token))

    thread = threading.Thread(target=play)

    def let_it_end() -> None:
        may_answer.set()
        thread.join()

    token.listen(let_it_end)
    thread.start()
    stuck.is_hanging.wait()
    token.cancel()
    assert len(reports) == 1


async def test_a_rehearsal_beside_a_running_loop_is_cut():
    token, stuck = Cancel(), Stuck(sleep_awaited)
    thread = stuck.cancelled_by(token)
    report = rehearse(stuck.agent, cases("hang"), metrics=[OK], cancel=token)
    thread.join()
    assert outcomes(report) == [("skipped", "not finished: enough")]


@pytest.mark.parametrize("hang", [sleep_awaited, sleep_blocking])
async def test_a_signal_handler_may_cancel(hang):
    token = Cancel()
    before = signal.signal(signal.SIGUSR1, lambda *_: token.cancel("interrupted"))
    stuck = Stuck(hang)

    def send() -> None:
        stuck.is_hanging.wait()
        # Python overlooks a signal that comes just before it falls asleep.
        while not token.reason:
            signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGUSR1)
            time.sleep(0.05)

    thread = threading.Thread(target=send)
    thread.start()
    try:
        report = await evaluate(stuck.agent, cases("hang"), metrics=[OK], cancel=token)
    finally:
        signal.signal(signal.SIGUSR1, before)
        thread.join()
    assert outcomes(report) == [("skipped", "not finished: interrupted")]


async def test_a_hook_may_cancel_and_what_is_finished_stays():
    token = Cancel()
    report = await evaluate(
        step(lambda: "Done."),
        cases(*["hi"] * 5),
        metrics=[OK],
        concurrency=1,
        cancel=token,
        on_case_complete=lambda result: token.cancel("seen enough"),
    )
    assert outcomes(report) == [("passed",), *[("skipped", "not run: seen enough")] * 4]


async def test_a_run_that_was_cancelled_goes_on_where_it_was(tmp_path):
    token, stuck = Cancel(), Stuck(sleep_awaited)
    thread = stuck.cancelled_by(token)
    first = await evaluate(
        stuck.agent,
        cases("hi", "hang", "later"),
        metrics=[OK],
        concurrency=1,
        cancel=token,
        store=tmp_path,
    )
    thread.join()
    assert [result.status for result in first] == ["passed", "skipped", "skipped"]
    stuck.hang = lambda: None
    again = await evaluate(
        stuck.agent, cases("hi", "hang", "later"), metrics=[OK], store=tmp_path, resume=first.id
    )
    assert again.passed
    assert stuck.played == ["hi", "hang", "hang", "later"]


def test_the_first_reason_counts_and_there_always_is_one():
    token, silent = Cancel(), Cancel()
    token.cancel("first")
    token.cancel("second")
    silent.cancel("")
    assert (token.reason, silent.reason) == ("first", "cancelled")


def test_whoever_listens_late_hears_at_once_and_whoever_left_hears_nothing():
    token, heard = Cancel(), list[str]()

    def left() -> None:
        heard.append("left")

    token.listen(left)
    token.leave(left)
    token.cancel()
    token.listen(lambda: heard.append("late"))
    assert heard == ["late"]
