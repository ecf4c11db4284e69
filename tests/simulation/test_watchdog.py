"""The watchdog cuts what hangs, whatever it hangs on, and costs next to nothing."""

import asyncio
import contextvars
import gc
import signal
import subprocess
import sys
import threading
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from functools import partial
from importlib import import_module
from queue import SimpleQueue
from typing import Any

import pytest

from greenroom.simulation.hangs.leftovers import sweep
from greenroom.simulation.hangs.limits import await_in_time, call_in_time
from greenroom.simulation.hangs.watchdog import (
    Deadline,
    finish,
    keep_watching,
    sweep_cut_work,
    watched,
)
from greenroom.world.threads import Expired, Here, Overdue, call_blocking, in_thread

# Deadlines are short. What hangs does so for 30 seconds: whatever ends well before them was cut,
# however busy the machine is with others.
SOON = 0.2
AT_MOST = 20.0


async def cut(work: Callable[[], Awaitable[object]]) -> asyncio.Task[object]:
    """Finish the work under a short deadline, and insist that the deadline was what ended it."""

    async def run() -> object:
        return await work()

    deadline, began = Deadline(SOON), time.monotonic()
    task = await finish(run(), deadline)
    assert deadline.expired
    assert time.monotonic() - began < AT_MOST
    return task


def spin() -> None:
    while True:
        pass


async def block_by_sleeping() -> None:
    time.sleep(30)  # noqa: ASYNC251


async def block_by_spinning() -> None:
    spin()


async def block_in_a_child() -> None:
    await asyncio.gather(asyncio.sleep(30), block_by_spinning())


async def swallow_every_cancellation() -> None:
    while True:
        try:
            await asyncio.sleep(30)
        except asyncio.CancelledError:
            continue


async def swallow_the_alarm_once() -> None:
    try:
        time.sleep(30)  # noqa: ASYNC251
    except BaseException:
        time.sleep(30)  # noqa: ASYNC251


async def block_when_cancelled() -> None:
    try:
        await asyncio.sleep(30)
    finally:
        time.sleep(30)  # noqa: ASYNC251


async def hang_in_a_thread() -> None:
    await in_thread(time.sleep, 30)


async def spin_in_a_thread() -> None:
    await in_thread(spin)


HANGS = [
    lambda: asyncio.sleep(30),
    block_by_sleeping,
    block_by_spinning,
    block_in_a_child,
    swallow_every_cancellation,
    swallow_the_alarm_once,
    block_when_cancelled,
    hang_in_a_thread,
    spin_in_a_thread,
]


@pytest.mark.parametrize("hang", HANGS, ids=lambda hang: hang.__name__)
async def test_a_case_that_hangs_is_over_soon_after_its_deadline(hang):
    task = await cut(hang)
    await asyncio.wait({task}, timeout=AT_MOST)
    assert task.done()


async def test_work_that_ends_in_time_keeps_its_result():
    async def work() -> int:
        await asyncio.sleep(0)
        return 7

    deadline = Deadline(30)
    task = await finish(work(), deadline)
    assert (task.result(), deadline.expired, deadline.was_cut) == (7, False, False)


async def test_work_that_raises_hands_over_its_exception():
    async def work() -> None:
        raise KeyError("seven")

    task = await finish(work(), Deadline(30))
    assert repr(task.exception()) == "KeyError('seven')"


async def test_work_without_limit_is_not_cut():
    assert (await finish(asyncio.sleep(0.01, 7), Deadline(float("inf")))).result() == 7


async def test_stubborn_work_is_left_behind_but_never_lets_its_cleanup_run_elsewhere():
    whose = contextvars.ContextVar("whose", default="nobody")
    seen: list[str] = []

    async def work() -> None:
        whose.set("the case")
        try:
            await swallow_every_cancellation()
        finally:
            seen.append(whose.get())

    await cut(work)
    assert seen == ["the case"]


async def test_work_that_cannot_even_be_closed_is_left_behind():
    stop = asyncio.Event()

    async def work() -> None:
        while not stop.is_set():
            try:
                await stop.wait()
            except BaseException:
                continue

    deadline = Deadline(SOON)
    task = await finish(work(), deadline)
    assert (task.done(), deadline.expired) == (False, True)
    stop.set()
    await asyncio.wait({task}, timeout=AT_MOST)


async def test_a_case_can_be_cut_before_its_time_from_any_thread():
    deadline = Deadline(30)
    threading.Timer(0.05, deadline.cut).start()
    task = await finish(asyncio.sleep(30), deadline)
    assert (task.cancelled(), deadline.was_cut, deadline.expired) == (True, True, False)


async def test_a_case_cut_before_its_time_may_block_its_loop_and_is_broken_all_the_same():
    deadline = Deadline(30)

    async def work() -> None:
        deadline.cut()
        time.sleep(30)  # noqa: ASYNC251

    began = time.monotonic()
    task = await finish(work(), deadline)
    assert isinstance(task.exception(), Expired)
    assert time.monotonic() - began < AT_MOST


async def test_whoever_waits_for_a_case_can_be_cancelled_and_takes_the_case_along():
    deadline = Deadline(30)
    inner: list[asyncio.Task[None]] = []

    async def work() -> None:
        task = asyncio.current_task()
        assert task
        inner.append(task)
        await asyncio.sleep(30)

    waiter = asyncio.create_task(finish(work(), deadline))
    await asyncio.sleep(0.01)
    waiter.cancel()
    await asyncio.wait({waiter}, timeout=AT_MOST)
    assert waiter.cancelled()
    assert inner[0].cancelled()


async def test_only_the_case_past_its_deadline_is_broken():
    async def patient() -> str:
        for _ in range(10):
            await asyncio.sleep(0.02)
            time.sleep(0.02)  # noqa: ASYNC251
        return "fine"

    late, early = Deadline(0.1), Deadline(30)
    blocked, fine = await asyncio.gather(
        finish(block_by_sleeping(), late), finish(patient(), early)
    )
    assert isinstance(blocked.exception(), Expired)
    assert fine.result() == "fine"
    assert (late.expired, early.expired) == (True, False)


async def test_a_deadline_inside_a_longer_one_cuts_only_what_is_inside():
    async def outer() -> str:
        inner = Deadline(SOON)
        await finish(block_by_sleeping(), inner)
        return f"inner expired: {inner.expired}"

    assert (await finish(outer(), Deadline(30))).result() == "inner expired: True"


async def test_a_shorter_deadline_outside_cuts_what_is_inside_too():
    async def outer() -> None:
        await finish(block_by_sleeping(), Deadline(30))

    assert (await cut(outer)).done()


async def test_a_task_watches_itself_and_is_told_once():
    told: list[str] = []

    async def work() -> tuple[bool, int]:
        task = asyncio.current_task()
        assert task
        with watched(task, SOON, lambda: told.append("expired")) as deadline:
            for _ in range(3):
                with suppress(asyncio.CancelledError):
                    await asyncio.sleep(30)
        await asyncio.sleep(0)
        return deadline.expired, task.cancelling()

    assert await asyncio.create_task(work()) == (True, 0)
    assert told == ["expired"]


async def test_the_alarm_clock_belongs_to_us_only_while_somebody_is_watched():
    assert signal.getsignal(signal.SIGALRM) == signal.SIG_DFL

    async def work() -> object:
        return signal.getsignal(signal.SIGALRM)

    assert (await finish(work(), Deadline(30))).result() != signal.SIG_DFL
    assert signal.getsignal(signal.SIGALRM) == signal.SIG_DFL
    assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)


async def test_an_alarm_clock_that_somebody_else_uses_is_left_alone():
    rung: list[int] = []
    before = signal.signal(signal.SIGALRM, lambda number, _: rung.append(number))
    try:
        await cut(block_by_spinning)
        assert rung == []
        signal.raise_signal(signal.SIGALRM)
        assert rung == [signal.SIGALRM]
    finally:
        signal.signal(signal.SIGALRM, before)


async def test_a_case_that_borrows_the_timer_and_stops_it_does_not_stop_later_deadlines():
    async def borrow() -> None:
        signal.setitimer(signal.ITIMER_REAL, 0)

    async def both() -> None:
        await finish(borrow(), Deadline(30))
        await cut(block_by_sleeping)

    await finish(both(), Deadline(30))


@pytest.mark.parametrize("hang", [block_by_spinning, block_in_a_child], ids=lambda f: f.__name__)
def test_a_loop_on_another_thread_is_broken_when_it_spins(hang):
    ended: list[bool] = []

    async def main() -> None:
        ended.append((await cut(hang)).done())

    thread = threading.Thread(target=lambda: asyncio.run(main()), daemon=True)
    thread.start()
    thread.join(AT_MOST * 2)
    assert ended == [True]


def test_a_loop_on_another_thread_that_sleeps_in_c_is_cut_only_when_it_wakes():
    """What the watchdog cannot do: `time.sleep` on another thread than the main one."""
    took: list[float] = []

    async def main() -> None:
        began = time.monotonic()

        async def nap() -> None:
            time.sleep(1.0)  # noqa: ASYNC251

        deadline = Deadline(SOON)
        await finish(nap(), deadline)
        took.append(time.monotonic() - began)
        assert deadline.expired

    thread = threading.Thread(target=lambda: asyncio.run(main()), daemon=True)
    thread.start()
    thread.join(AT_MOST * 2)
    assert took
    assert took[0] >= 0.99


async def test_a_thread_has_the_context_of_its_caller():
    who = contextvars.ContextVar("who", default="nobody")
    who.set("the case")
    assert await in_thread(who.get) == "the case"


async def test_a_thread_hands_over_arguments_results_and_errors():
    assert await in_thread(int, "11", base=2) == 3
    with pytest.raises(ValueError, match="invalid literal"):
        await in_thread(int, "eleven")
    with pytest.raises(RuntimeError, match="StopIteration"):
        await in_thread(next, iter([]))


async def test_a_thread_whose_caller_is_cancelled_is_stopped():
    seen: list[type[BaseException]] = []
    running, stopped = threading.Event(), threading.Event()

    def run() -> None:
        running.set()
        try:
            spin()
        except BaseException as error:
            seen.append(type(error))
            stopped.set()

    task = asyncio.create_task(in_thread(run))
    await asyncio.to_thread(running.wait, AT_MOST)
    task.cancel()
    await asyncio.wait({task}, timeout=AT_MOST)
    assert task.cancelled()
    assert stopped.wait(AT_MOST)
    assert seen == [Expired]


async def test_what_a_case_left_behind_is_swept():
    left = [asyncio.create_task(swallow_every_cancellation()) for _ in range(3)]
    left.append(asyncio.create_task(asyncio.sleep(30)))
    await asyncio.sleep(0)
    await sweep(left)
    assert all(task.done() for task in left)


async def block_before_ending_it(child: asyncio.Task[None]) -> None:
    try:
        await asyncio.sleep(30)
    finally:
        spin()
        child.cancel()


async def swallow_before_ending_it(child: asyncio.Task[None]) -> None:
    await swallow_every_cancellation()
    child.cancel()


async def fate_of_a_task(ending_it: Callable[[asyncio.Task[None]], Awaitable[None]]) -> list[str]:
    """What became of a task whose work was ended by force before it could end the task itself."""
    heard: list[str] = []

    async def wait_forever() -> None:
        try:
            await asyncio.get_running_loop().create_future()
        except asyncio.CancelledError:
            heard.append("cancelled")
            raise

    async def work() -> None:
        await ending_it(asyncio.create_task(wait_forever()))

    asyncio.get_running_loop().set_exception_handler(
        lambda _, context: heard.append(context["message"])
    )
    with keep_watching():
        await finish(work(), Deadline(SOON))
        gc.collect()
        await sweep_cut_work()
    return heard


BY_FORCE = [block_before_ending_it, swallow_before_ending_it]


@pytest.mark.parametrize("ending_it", BY_FORCE, ids=lambda it: it.__name__)
async def test_a_task_that_nothing_else_holds_is_swept_with_work_that_was_ended_by_force(ending_it):
    assert await fate_of_a_task(ending_it) == ["cancelled"]


@pytest.mark.parametrize("ending_it", BY_FORCE, ids=lambda it: it.__name__)
def test_a_task_that_nothing_else_holds_is_swept_on_a_loop_of_another_thread_too(ending_it):
    with ThreadPoolExecutor(1) as pool:
        heard = pool.submit(lambda: asyncio.run(fate_of_a_task(ending_it))).result(AT_MOST)
    assert heard == ["cancelled"]


async def by_a_loop(steps: AsyncGenerator[int, None]) -> None:
    async for _ in steps:
        pass


async def by_a_step(steps: AsyncGenerator[int, None]) -> None:
    await steps.asend(None)


async def by_a_step_with_a_default(steps: AsyncGenerator[int, None]) -> None:
    await anext(steps, 0)


async def by_a_wrapper(steps: AsyncGenerator[int, None]) -> None:
    class Wrapped:
        def __await__(self) -> Generator[Any, Any, None]:
            return by_a_loop(steps).__await__()

    await Wrapped()


@pytest.mark.parametrize("depth", [1, 3])
@pytest.mark.parametrize("way", [by_a_loop, by_a_step, by_a_step_with_a_default, by_a_wrapper])
async def test_what_is_swept_is_left_from_inside_out_and_in_its_own_context(
    way: Callable[[AsyncGenerator[int, None]], Coroutine[Any, Any, None]], depth: int
):
    held, left = contextvars.ContextVar("held", default=0), list[int]()

    @contextmanager
    def holding(number: int) -> Generator[None, None, None]:
        token = held.set(number)
        try:
            yield
        finally:
            held.reset(token)  # not possible in another context
            left.append(number)

    async def steps(number: int) -> AsyncGenerator[int, None]:
        with holding(number):
            await (way(steps(number - 1)) if number > 1 else swallow_every_cancellation())
            yield number

    task = asyncio.create_task(way(steps(depth)))
    await asyncio.sleep(0)
    await sweep([task])
    assert left == [*range(1, depth + 1)]


@pytest.mark.parametrize("what", ["waits", "yields"])
async def test_a_generator_that_refuses_to_end_is_left_without_a_complaint(what: str):
    async def steps() -> AsyncGenerator[int, None]:
        while True:
            try:
                await asyncio.sleep(30)
            except GeneratorExit:
                if what == "yields":
                    yield 1
            except asyncio.CancelledError:
                pass

    task = asyncio.create_task(by_a_loop(steps()))
    await asyncio.sleep(0)
    await sweep([task])
    del task
    gc.collect()  # would complain
    await asyncio.sleep(0)


PROGRAM = """
import asyncio, time
from greenroom.simulation.hangs.watchdog import Deadline, finish
from greenroom.world.threads import in_thread

async def stubborn():
    while True:
        try:
            await asyncio.sleep(30)
        except asyncio.CancelledError:
            pass

async def main():
    await finish(in_thread(time.sleep, 30), Deadline(0.1))
    await finish(stubborn(), Deadline(0.1))
    print("left")

asyncio.run(main())
print("ended")
"""


def test_neither_a_hanging_thread_nor_a_stubborn_task_keeps_the_interpreter_from_ending():
    ran = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True
    )
    assert (ran.stdout.split(), ran.stderr) == (["left", "ended"], "")


UNHEARD = """
import asyncio, signal, time
from greenroom.simulation.hangs.watchdog import Deadline, finish

async def deaf_to_the_first():
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGALRM})
    signal.sigwait({signal.SIGALRM})
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGALRM})
    time.sleep(30)

async def main():
    deadline = Deadline(0.1)
    task = await finish(deaf_to_the_first(), deadline)
    print(deadline.expired, type(task.exception()).__name__, *signal.getitimer(signal.ITIMER_REAL))

asyncio.run(main())
"""


LATE = """
import asyncio, signal, time
from greenroom.simulation.hangs.watchdog import Deadline, finish

async def work():
    while not signal.sigpending():
        time.sleep(0.01)

signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGALRM})  # in every thread that begins now
asyncio.run(finish(work(), Deadline(0.1)))
signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGALRM})
print("lives")
"""


def test_an_alarm_that_comes_when_nobody_is_watched_any_more_does_not_kill_the_process():
    ran = subprocess.run([sys.executable, "-c", LATE], capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "lives\n", "")


def test_an_alarm_that_is_not_heard_rings_again():
    """As happens to one that comes between the last step of Python code and a call that blocks."""
    ran = subprocess.run(
        [sys.executable, "-c", UNHEARD], capture_output=True, text=True, check=True
    )
    assert ran.stdout.split() == ["True", "Expired", "0.0", "0.0"]


CUT_AT_THE_END = """
import asyncio, signal, threading, time
from greenroom.simulation.hangs import guards
from greenroom.simulation.hangs.watchdog import watched

is_about_to_set, first_act = threading.Event(), guards._first_act

def slow(watches):
    found = first_act(watches)
    if threading.current_thread() is not threading.main_thread():
        is_about_to_set.set()
        time.sleep(0.2)
    return found

async def main():
    with watched(asyncio.current_task(), 60) as deadline:
        thread = threading.Thread(target=deadline.cut)
        thread.start()
        is_about_to_set.wait()
    thread.join()

guards._first_act = slow
asyncio.run(main())
time.sleep(0.2)
print(*signal.getitimer(signal.ITIMER_REAL))
"""


def test_work_that_a_thread_cuts_as_it_ends_leaves_no_alarm_behind():
    """One that rang without its handler would kill the process, and every case in it."""
    ran = subprocess.run(
        [sys.executable, "-c", CUT_AT_THE_END], capture_output=True, text=True, check=True
    )
    assert ran.stdout.split() == ["0.0", "0.0"]


async def vigilant(work: Callable[[], Awaitable[object]]) -> None:
    """Cut the work in a watch that has seen other, unhurried work before."""
    with keep_watching():
        await finish(asyncio.sleep(0), Deadline(30))
        task = await cut(work)
        await asyncio.wait({task}, timeout=AT_MOST)
        assert task.done()


def assert_the_alarm_clock_is_nobodys() -> None:
    assert signal.getsignal(signal.SIGALRM) == signal.SIG_DFL
    assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)


@pytest.mark.parametrize("hang", HANGS, ids=lambda hang: hang.__name__)
async def test_a_case_that_hangs_in_a_vigil_is_over_as_soon(hang):
    await vigilant(hang)
    assert_the_alarm_clock_is_nobodys()


@pytest.mark.parametrize("hang", [block_by_spinning, block_in_a_child], ids=lambda f: f.__name__)
def test_a_vigil_on_another_thread_breaks_what_spins(hang):
    ended: list[bool] = []

    async def main() -> None:
        await vigilant(hang)
        ended.append(True)

    thread = threading.Thread(target=lambda: asyncio.run(main()), daemon=True)
    thread.start()
    thread.join(AT_MOST * 2)
    assert ended == [True]


async def test_a_vigil_without_work_leaves_the_alarm_clock_alone():
    with keep_watching():
        assert_the_alarm_clock_is_nobodys()
    assert_the_alarm_clock_is_nobodys()


async def test_a_vigil_keeps_the_alarm_clock_between_two_cases_and_gives_it_back():
    with keep_watching():
        await finish(asyncio.sleep(0), Deadline(30))
        assert signal.getsignal(signal.SIGALRM) != signal.SIG_DFL
    assert_the_alarm_clock_is_nobodys()


async def test_a_vigil_ended_by_an_error_gives_the_alarm_clock_back():
    with suppress(KeyError), keep_watching():
        await finish(asyncio.sleep(0), Deadline(30))
        raise KeyError
    assert_the_alarm_clock_is_nobodys()


async def test_a_vigil_sets_no_timer_for_a_deadline_that_is_not_the_first():
    loop = asyncio.get_running_loop()
    with keep_watching():
        await finish(asyncio.sleep(0), Deadline(30))
        timers = list(loop._scheduled)  # pyright: ignore[reportAttributeAccessIssue]
        for _ in range(10):
            await finish(asyncio.sleep(0), Deadline(30))
        assert loop._scheduled == timers  # pyright: ignore[reportAttributeAccessIssue]


async def test_vigils_nest_and_overlap():
    async def keep(seconds: float) -> None:
        with keep_watching():
            await asyncio.sleep(seconds)
            await cut(block_by_sleeping)

    with keep_watching():
        await asyncio.gather(keep(0), keep(0.1))
        await cut(block_by_spinning)
    assert_the_alarm_clock_is_nobodys()


async def test_vigils_on_two_threads_do_not_mind_each_other():
    ended: list[bool] = []

    async def elsewhere() -> None:
        await vigilant(block_by_spinning)
        ended.append(True)

    thread = threading.Thread(target=lambda: asyncio.run(elsewhere()), daemon=True)
    with keep_watching():
        thread.start()
        await cut(block_by_sleeping)
        await asyncio.to_thread(thread.join, AT_MOST * 2)
    assert ended == [True]
    assert_the_alarm_clock_is_nobodys()


async def test_what_outlives_its_vigil_stays_watched():
    with keep_watching():
        late = asyncio.create_task(cut(block_when_cancelled))
        await asyncio.sleep(0)
    assert (await late).done()
    assert_the_alarm_clock_is_nobodys()


@pytest.mark.parametrize(
    "borrow",
    [
        lambda: signal.setitimer(signal.ITIMER_REAL, 0),
        lambda: signal.signal(signal.SIGALRM, signal.SIG_DFL),
    ],
    ids=["timer", "handler"],
)
async def test_a_case_that_borrows_the_alarm_clock_does_not_stop_the_vigil(borrow):
    async def work() -> None:
        borrow()

    with keep_watching():
        await finish(work(), Deadline(30))
        await cut(block_by_sleeping)
    assert_the_alarm_clock_is_nobodys()


async def test_a_case_that_takes_the_alarm_clock_away_leaves_the_vigil_to_the_patrol():
    async def take() -> None:
        signal.signal(signal.SIGALRM, lambda *_: None)

    try:
        with keep_watching():
            await finish(take(), Deadline(30))
            await cut(block_by_spinning)
        assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0), "it would ring for the other"
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, signal.SIG_DFL)


async def test_a_vigil_in_which_nobody_is_watched_does_not_ring_on():
    with keep_watching():
        await finish(asyncio.sleep(0), Deadline(0.01))
        async with asyncio.timeout(AT_MOST):
            while signal.getitimer(signal.ITIMER_REAL)[0]:  # noqa: ASYNC110 - nobody tells
                await asyncio.sleep(0.01)


async def test_a_timer_that_a_case_set_for_itself_is_left_alone():
    async def take() -> None:
        signal.signal(signal.SIGALRM, lambda *_: None)
        signal.setitimer(signal.ITIMER_REAL, 30)

    try:
        await finish(take(), Deadline(30))
        assert signal.getitimer(signal.ITIMER_REAL)[0] > 0
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, signal.SIG_DFL)


async def test_work_that_is_cancelled_before_it_begins_is_handed_over():
    others = asyncio.all_tasks()
    finishing = asyncio.create_task(finish(asyncio.sleep(30), Deadline(30)))
    await asyncio.sleep(0)
    (task,) = asyncio.all_tasks() - others - {finishing}
    task.cancel()
    async with asyncio.timeout(AT_MOST):
        assert (await finishing).cancelled()
    assert_the_alarm_clock_is_nobodys()


async def test_work_that_was_given_up_stays_watched_while_what_it_awaits_lives_on():
    outcome = asyncio.get_running_loop().create_future()

    async def stubborn() -> None:
        for _ in range(6):  # more often than work is knocked at before it is given up
            with suppress(asyncio.CancelledError):
                await asyncio.sleep(30)
        try:
            time.sleep(30)  # noqa: ASYNC251
        except Expired:
            outcome.set_result("broken")

    async def work() -> None:
        await asyncio.ensure_future(stubborn())

    with keep_watching():
        task = await finish(work(), Deadline(SOON))
        async with asyncio.timeout(AT_MOST):
            assert await outcome == "broken"
            await asyncio.wait({task})
    assert_the_alarm_clock_is_nobodys()


async def test_what_work_raises_after_its_waiter_was_cancelled_twice_is_nobodys_surprise():
    told: list[object] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, what: told.append(what))

    async def work() -> None:
        try:
            await asyncio.sleep(30)
        except asyncio.CancelledError:
            raise KeyError("seven") from None

    finishing = asyncio.create_task(finish(work(), Deadline(30)))
    await asyncio.sleep(0.01)
    finishing.cancel()
    await asyncio.sleep(0)
    finishing.cancel()
    with suppress(asyncio.CancelledError):
        await finishing
    del finishing
    await asyncio.sleep(0.01)
    gc.collect()
    assert not told


async def test_work_that_is_broken_while_the_loop_hears_of_its_end_is_handed_over_all_the_same():
    loop = asyncio.get_running_loop()
    told: list[object] = []
    loop.set_exception_handler(lambda _, what: told.append(what["exception"]))

    def broken(*_: object, **__: object) -> asyncio.Handle:
        del loop.call_soon
        raise Expired

    async def work() -> int:
        loop.call_soon = broken  # pyright: ignore[reportAttributeAccessIssue]
        return 7

    deadline = Deadline(SOON)
    async with asyncio.timeout(AT_MOST):
        task = await finish(work(), deadline)
    assert (task.result(), deadline.expired) == (7, False)
    assert [type(error) for error in told] == [Expired]
    assert_the_alarm_clock_is_nobodys()


async def test_the_alarm_does_not_break_the_loop_while_it_keeps_its_books():
    loop = asyncio.get_running_loop()
    told: list[object] = []
    loop.set_exception_handler(lambda _, what: told.append(what))
    mask = import_module("_signal").pthread_sigmask  # which has no line of Python code

    async def work() -> None:
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGALRM})
        try:
            time.sleep(2 * SOON)  # noqa: ASYNC251
            # What waits rings at once, in a line of the loop's own code.
            ring = asyncio.Handle(mask, (signal.SIG_UNBLOCK, {signal.SIGALRM}), loop)
            ring._run()
            spin()
        finally:
            # Another thread may have heard the alarm, and this one would stay deaf.
            signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGALRM})

    deadline = Deadline(SOON)
    task = await finish(work(), deadline)
    assert isinstance(task.exception(), Expired)
    assert not told


def test_the_patrol_does_not_break_a_loop_of_another_thread_while_it_keeps_its_books():
    told: list[object] = []
    ended: list[object] = []

    async def work() -> None:
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda _, what: told.append(what))
        # A call from a line of the loop's own code, which lasts until long after the deadline.
        asyncio.Handle(time.sleep, (5 * SOON,), loop)._run()
        spin()

    async def main() -> None:
        task = await finish(work(), Deadline(SOON))
        ended.append(type(task.exception()))

    thread = threading.Thread(target=lambda: asyncio.run(main()), daemon=True)
    thread.start()
    thread.join(AT_MOST * 2)
    assert (ended, told) == ([Expired], [])


async def test_the_alarm_does_not_break_a_callback_of_the_garbage_collector():
    rung: list[str] = []

    def slow(phase: str, _: dict[str, int]) -> None:
        if phase == "start":
            until = time.monotonic() + 3 * SOON
            while time.monotonic() < until:
                pass
            rung.append(phase)

    async def work() -> None:
        gc.callbacks.append(slow)
        try:
            gc.collect()
        finally:
            gc.callbacks.remove(slow)
        spin()

    task = await finish(work(), Deadline(SOON))
    assert isinstance(task.exception(), Expired)
    assert rung == ["start"]


class BlocksInC:
    """Awaited, it sleeps without a line of Python of its own."""

    def __await__(self) -> Any:
        return iter(partial(time.sleep, 30), None)


async def test_a_function_in_c_that_is_called_within_a_limit_is_cut():
    began = time.monotonic()
    with pytest.raises(Overdue):
        call_in_time(partial(time.sleep, 30), SOON, "a hook")
    with pytest.raises(Overdue):
        await await_in_time(BlocksInC(), SOON, "a metric")
    assert time.monotonic() - began < AT_MOST


async def test_a_call_that_fails_when_nobody_waits_for_it_any_more_is_not_reported():
    started, go_on, reported = SimpleQueue[threading.Thread](), threading.Event(), list[object]()
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(lambda _, context: reported.append(context))

    def fail() -> None:
        started.put(threading.current_thread())
        go_on.wait()
        raise LookupError("late")

    # A task that is left behind when a loop ends is not cancelled: its coroutine is closed.
    waiting = in_thread(fail)
    waiting.send(None)
    waiting.close()
    go_on.set()
    started.get().join()
    await asyncio.sleep(0)
    gc.collect()
    assert reported == []


async def test_a_function_that_outlives_the_code_that_called_it_does_not_replace_its_result():
    loops, calls = list[asyncio.AbstractEventLoop](), list[asyncio.Future[object]]()

    def outlives() -> None:
        while not loops or not loops[0].is_closed():
            time.sleep(0.01)

    async def leaves(here: Here) -> str:
        loops.append(asyncio.get_running_loop())
        calls.append(asyncio.ensure_future(here(outlives)))
        await asyncio.sleep(0)
        return "done"

    assert call_blocking(leaves) == "done"
