"""Attacks carried out by somebody else: threads, pools, tasks, callbacks, finalizers, handlers."""

import _thread
import asyncio
import contextvars
import gc
import itertools
import queue
import signal
import socket
import sys
import threading
import types
import weakref
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from multiprocessing.pool import ThreadPool
from typing import Any

from greenroom.simulation.fence import FencedExecutor
from simulation.fence_attacks import Attacks
from simulation.fence_canaries import Canary

births = Attacks()
CONNECT = "socket.connect"
spare_signals = itertools.cycle(range(signal.SIGRTMIN, signal.SIGRTMIN + 16))


def reaching(canary: Canary) -> Callable[[], None]:
    """Code that reaches the canary if it can, and swallows it if it cannot."""

    def reach() -> None:
        with suppress(OSError):
            socket.create_connection(canary.address).close()

    return reach


@births.by(CONNECT)
def a_thread(canary: Canary):
    def act() -> None:
        thread = threading.Thread(target=reaching(canary))
        thread.start()
        thread.join()

    return act


@births.by(CONNECT)
def a_thread_of_a_thread(canary: Canary):
    def act() -> None:
        thread = threading.Thread(target=a_thread(canary))
        thread.start()
        thread.join()

    return act


@births.by(CONNECT)
def a_raw_thread(canary: Canary):
    done = threading.Event()

    def run(reach: Callable[[], None], *, then: Callable[[], None]) -> None:
        reach()
        then()

    def act() -> None:
        _thread.start_new_thread(run, (reaching(canary),), {"then": done.set})
        done.wait(5)

    return act


@births.by(CONNECT)
def a_timer(canary: Canary):
    def act() -> None:
        timer = threading.Timer(0.01, reaching(canary))
        timer.start()
        timer.join()

    return act


@births.by(CONNECT)
def a_pool_made_inside(canary: Canary):
    def act() -> None:
        with ThreadPoolExecutor(1) as pool:
            pool.submit(reaching(canary)).result()

    return act


@births.by(CONNECT)
def a_pool_made_before(canary: Canary):
    pool = ThreadPoolExecutor(1)
    canary.closing.callback(pool.shutdown)
    pool.submit(int).result()
    return lambda: pool.submit(reaching(canary)).result()


@births.by(CONNECT)
def a_pool_that_starts_its_threads_with_something_else(canary: Canary):
    def act() -> None:
        with ThreadPoolExecutor(1, initializer=reaching(canary)) as pool:
            pool.submit(int).result()

    return act


@births.by(CONNECT)
def the_executor_of_rehearsals(canary: Canary):
    pool = FencedExecutor(1)
    canary.closing.callback(pool.shutdown)
    pool.submit(int).result()
    return lambda: pool.submit(reaching(canary)).result()


@births.by(CONNECT)
def another_pool_made_inside(canary: Canary):
    def act() -> None:
        with ThreadPool(1) as pool:
            pool.apply(reaching(canary))

    return act


@births.by(CONNECT)
def another_pool_made_before(canary: Canary):
    pool = ThreadPool(1)
    canary.closing.callback(pool.join)
    canary.closing.callback(pool.terminate)
    return lambda: pool.apply(reaching(canary))


@births.by(CONNECT, stray=True)
def an_older_thread_fed_by_a_queue(canary: Canary):
    jobs: queue.Queue[Callable[[], None] | None] = queue.Queue()

    def work() -> None:
        while (job := jobs.get()) is not None:
            job()
            jobs.task_done()

    threading.Thread(target=work, daemon=True).start()
    canary.closing.callback(jobs.put, None)

    def act() -> None:
        jobs.put(reaching(canary))
        jobs.join()

    return act


@births.by("socket.send", stray=True)
def an_older_thread_with_an_older_connection(canary: Canary):
    jobs: queue.Queue[bytes | None] = queue.Queue()
    sock = canary.connected()

    def work() -> None:
        while (job := jobs.get()) is not None:
            with suppress(OSError):
                sock.send(job)
            jobs.task_done()

    threading.Thread(target=work, daemon=True).start()
    canary.closing.callback(jobs.put, None)

    def act() -> None:
        jobs.put(b"refund")
        jobs.join()

    return act


@births.by(CONNECT)
def asyncio_to_thread(canary: Canary):
    return lambda: asyncio.to_thread(reaching(canary))


@births.by(CONNECT)
def run_in_the_loops_executor(canary: Canary):
    return lambda: asyncio.get_running_loop().run_in_executor(None, reaching(canary))


@births.by(CONNECT)
def a_task(canary: Canary):
    async def reach() -> None:
        reaching(canary)()

    return lambda: asyncio.create_task(reach())


@births.by(CONNECT)
def a_group_of_tasks(canary: Canary):
    async def reach() -> None:
        reaching(canary)()

    async def act() -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(reach())
            group.create_task(reach())

    return act


@births.by(CONNECT, stray=True)
def a_task_with_an_empty_context(canary: Canary):
    async def reach() -> None:
        reaching(canary)()

    return lambda: asyncio.create_task(reach(), context=contextvars.Context())


@births.by(CONNECT)
def an_empty_context(canary: Canary):
    return lambda: contextvars.Context().run(reaching(canary))


def calling(canary: Canary, schedule: Callable[[Callable[[], None]], Any]):
    async def act() -> None:
        called = asyncio.Event()

        def callback() -> None:
            reaching(canary)()
            called.set()

        schedule(callback)
        await called.wait()

    return act


@births.by(CONNECT)
def a_callback_soon(canary: Canary):
    return calling(canary, asyncio.get_running_loop().call_soon)


@births.by(CONNECT)
def a_callback_later(canary: Canary):
    loop = asyncio.get_running_loop()
    return calling(canary, lambda callback: loop.call_later(0.001, callback))


@births.by(CONNECT)
def a_callback_from_a_thread(canary: Canary):
    loop = asyncio.get_running_loop()

    def schedule(callback: Callable[[], None]) -> None:
        threading.Thread(target=loop.call_soon_threadsafe, args=(callback,)).start()

    return calling(canary, schedule)


@births.by(CONNECT)
def a_coroutine_from_a_thread(canary: Canary):
    loop = asyncio.get_running_loop()

    async def reach() -> None:
        reaching(canary)()

    async def act() -> None:
        await asyncio.to_thread(
            lambda: asyncio.run_coroutine_threadsafe(reach(), loop).result(timeout=5)
        )

    return act


@births.by(CONNECT)
def a_callback_of_a_future(canary: Canary):
    async def act() -> None:
        future = asyncio.get_running_loop().create_future()
        future.add_done_callback(lambda _: reaching(canary)())
        future.set_result(None)
        await asyncio.sleep(0)

    return act


@births.by(CONNECT)
def another_event_loop_in_a_thread(canary: Canary):
    async def reach() -> None:
        reaching(canary)()

    def act() -> None:
        thread = threading.Thread(target=lambda: asyncio.run(reach()))
        thread.start()
        thread.join()

    return act


@births.by(CONNECT)
def a_finalizer(canary: Canary):
    class Parting:
        def __del__(self) -> None:
            reaching(canary)()

    def act() -> None:
        Parting()

    return act


@births.by(CONNECT)
def a_finalizer_in_a_cycle(canary: Canary):
    class Parting:
        def __init__(self) -> None:
            self.myself = self

        def __del__(self) -> None:
            reaching(canary)()

    def act() -> None:
        Parting()
        gc.collect(0)  # it is young; what thousands of tests have left behind need not be searched

    return act


@births.by(CONNECT)
def a_weak_references_callback(canary: Canary):
    class Thing: ...

    things = [Thing()]
    reference = weakref.ref(things[0], lambda _: reaching(canary)())
    return lambda: (things.clear(), reference)


@births.by(CONNECT)
def a_weak_references_finalizer(canary: Canary):
    class Thing: ...

    things = [Thing()]
    weakref.finalize(things[0], reaching(canary))
    return things.clear


@births.by(CONNECT)
def a_signal_handler(canary: Canary):
    def act() -> None:
        before = signal.signal(signal.SIGUSR1, lambda *_: reaching(canary)())
        signal.raise_signal(signal.SIGUSR1)
        signal.signal(signal.SIGUSR1, before)

    return act


@births.by(CONNECT)
def the_loops_signal_handler(canary: Canary):
    number = next(spare_signals)

    def schedule(callback: Callable[[], None]) -> None:
        asyncio.get_running_loop().add_signal_handler(number, callback)
        signal.raise_signal(number)

    return calling(canary, schedule)


@births.by(CONNECT)
def a_tracer(canary: Canary):
    def tracer(*_: object) -> None:
        sys.settrace(before)
        reaching(canary)()

    before = sys.gettrace()

    def act() -> None:
        sys.settrace(tracer)
        sorted([2, 1], key=lambda number: -number)
        sys.settrace(before)

    return act


@births.by(CONNECT)
def a_module_being_imported(canary: Canary):
    module = types.ModuleType("backdoor")
    module.__dict__["reach"] = reaching(canary)
    return lambda: exec("reach()", module.__dict__)


@births.by(CONNECT)
def a_generator_being_closed(canary: Canary):
    def generate():
        try:
            yield
        finally:
            reaching(canary)()

    def act() -> None:
        generator = generate()
        next(generator)
        generator.close()

    return act
