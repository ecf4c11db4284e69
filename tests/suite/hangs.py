"""Ways in which a metric, a judge's model or a hook can fail to come to an end."""

import asyncio
import re
import threading
import time
from contextlib import suppress

FOREVER = 3600


def sleeps(response):
    time.sleep(FOREVER)
    return True


def spins(response):
    while True:
        pass


def waits_for_a_thread(response):
    thread = threading.Thread(target=time.sleep, args=(FOREVER,), daemon=True)
    thread.start()
    thread.join()
    return True


def waits_for_a_lock(response):
    lock = threading.Lock()
    with lock, lock:
        return True


def searches(response):
    return bool(re.match(r"(a+)+$", "a" * 64 + "!"))


def ignores_the_first_cut(response):
    try:
        time.sleep(FOREVER)
    except BaseException:
        time.sleep(FOREVER)
    return True


def makes_the_best_of_it(response):
    """One that is cut and then claims to have measured something."""
    with suppress(BaseException):
        time.sleep(FOREVER)
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
    time.sleep(FOREVER)  # noqa: ASYNC251
    return True


async def blocks_when_cancelled(response):
    try:
        await asyncio.sleep(FOREVER)
    finally:
        time.sleep(FOREVER)  # noqa: ASYNC251


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
    await asyncio.to_thread(time.sleep, FOREVER)
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
