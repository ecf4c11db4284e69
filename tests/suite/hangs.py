"""Ways in which a metric, a judge's model or a hook can fail to come to an end."""

import asyncio
import re
import threading
from contextlib import suppress

FOREVER = 3600

_over = threading.Event()
_held: list[threading.Lock] = []


def let_go() -> None:
    """End what nobody can cut and still hangs in a thread: later tests are not to live beside it."""
    _over.set()
    while _held:
        _held.pop().release()
    for thread in threading.enumerate():
        if thread.name == "greenroom-call":
            thread.join(60)
    _over.clear()


def block() -> None:
    """Wait where no exception is heard, as `time.sleep` does."""
    _over.wait(FOREVER)


def sleeps(response):
    block()
    return True


def spins(response):
    while True:
        pass


def waits_for_a_thread(response):
    thread = threading.Thread(target=block, daemon=True)
    thread.start()
    thread.join()
    return True


def waits_for_a_lock(response):
    lock = threading.Lock()
    _held.append(lock)
    lock.acquire()
    lock.acquire()
    return True


def searches(response):
    return bool(re.match(r"(a+)+$", "a" * 64 + "!"))


def ignores_the_first_cut(response):
    try:
        block()
    except BaseException:
        block()
    return True


def makes_the_best_of_it(response):
    """One that is cut and then claims to have measured something."""
    with suppress(BaseException):
        block()
    return True


async def awaits(response):
    await asyncio.Event().wait()
    return True


async def swallows_cancellation(response):
    while True:
        with suppress(asyncio.CancelledError):
            await asyncio.sleep(FOREVER)


async def swallows_everything(response):
    while True:
        with suppress(BaseException):
            await asyncio.sleep(FOREVER)


async def blocks_in_a_coroutine(response):
    await asyncio.sleep(0)
    block()
    return True


async def blocks_when_cancelled(response):
    try:
        await asyncio.sleep(FOREVER)
    finally:
        block()


async def waits_for_a_stubborn_task(response):
    await asyncio.ensure_future(swallows_everything(response))


async def waits_for_an_async_generator(response):
    async def numbers():
        try:
            while True:
                yield 1
                with suppress(asyncio.CancelledError):
                    await asyncio.sleep(FOREVER)
        finally:
            with suppress(BaseException):
                await asyncio.sleep(FOREVER)

    async for _ in numbers():
        pass


async def waits_for_the_loops_thread(response):
    await asyncio.to_thread(block)
    return True


BLOCKING = [
    sleeps,
    spins,
    waits_for_a_thread,
    waits_for_a_lock,
    searches,
    ignores_the_first_cut,
    makes_the_best_of_it,
]
AWAITING = [
    awaits,
    swallows_cancellation,
    swallows_everything,
    blocks_in_a_coroutine,
    blocks_when_cancelled,
    waits_for_a_stubborn_task,
    waits_for_an_async_generator,
    waits_for_the_loops_thread,
]
EVERY = [*BLOCKING, *AWAITING]
