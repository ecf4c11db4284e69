"""Work that runs side by side: begun, stopped, and never left without an end."""

import asyncio
import gc
import warnings

from greenroom.backends.task_group import begin, stop


async def test_work_that_is_stopped_before_it_has_begun_gives_no_warning() -> None:
    begun: list[str] = []

    async def work() -> None:
        begun.append("work")

    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        task = begin(work())
        await stop([task])
        del task
        await asyncio.sleep(0)
        gc.collect(0)
    assert begun == []
    assert [str(one.message) for one in seen] == []
