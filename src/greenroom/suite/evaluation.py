"""Many cases, run and measured: the entry points of an evaluation."""

import asyncio
import threading
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from typing import Any, TypeVar, Unpack

from greenroom.errors import RunBroke
from greenroom.results.report import Report
from greenroom.results.result import CaseResult
from greenroom.simulation.fence import FencedExecutor
from greenroom.simulation.hangs.leftovers import sweep
from greenroom.simulation.trial_context import check_loop
from greenroom.suite.cancel import Cancel
from greenroom.suite.notebook import with_progress
from greenroom.suite.options import Options
from greenroom.suite.plan import Cases, prepare

T = TypeVar("T")

_LOOK = 0.1
"""Seconds between two looks whether the caller was cancelled."""
_PATIENCE = 5.0
"""Seconds that a run which stops may take, before its thread is left."""
_CLOSING = 1.0
"""Seconds in which async generators that are left have to close."""


async def evaluate(agent: Any, cases: Cases, **options: Unpack[Options]) -> Report:
    """Rehearse `agent` on every case and report what came of it, in the order of the cases.

    Each case runs `trials` times, or as often as its set says; "auto" runs round after round until it
    is clear whether the cases' pass rate reaches `min_pass_rate`, 20 at most. `metrics` and the criteria of
    `config` are added to each case's own, `mocks` answer where a case has none. `model` answers in
    place of every model of the agent, whatever its framework, so that no key is needed; a case may
    have a `model` of its own. `allow_tools` names
    tools whose real bodies may run, inside the fence; `resources` are functions by name that open what
    these work with, such as a connection, in each trial in which one really runs. `on_error="stop"`
    ends the run at the first error, "skip" leaves broken cases out of the gate but shows them; `fail_fast` ends it at the first
    case that did not pass. `cache` is a folder where judges' answers are kept, not to be paid for
    twice. `allow_unfenced` runs where the fence cannot hold, `allow_opaque` with an agent whose
    tools run where no gate can see them; the report says so.

    Each finished trial is recorded in `store` (a folder; without one `$GREENROOM_STORE`, else
    `.greenroom`; False records nothing). `resume` continues the run of that id, True the latest
    unfinished one of this set: what is finished does not run again. `budget` is what the run may
    cost in USD: no case begins that could cost more than is left. `cancel` is a token that stops it
    from outside.

    `baseline` is an earlier report of these cases, or several that count together: a case that fails
    though it passed there runs again, up to `confirm` (30) times, until it is clear whether it has
    changed; 0 runs none again. These trials are in `report.confirmed` and count in no rate.
    Ask `Gate().decide(report, baseline)` what came of it.

    A notebook shows a progress bar, unless `progress=False`.

    `record` keeps what models answer in a folder. `replay` takes such a folder, or the id of a run in the
    store: what was recorded answers for the models of agent, users and judges, and for tools that would
    really run, and every result says so. What was not recorded is an error that says what differs, or is
    asked with `on_drift="live"`.

    `workers` runs the trials in that many processes, for agents that block or compute. They import
    agent, cases and metrics by themselves, so these are given as references, names or data. `on`
    runs them on the nodes of a Ray cluster: "ray", its address, or a `Ray`. `rate` is how often models
    may be asked, {"openai:gpt-x": "8000/min"}, by all trials together.
    """
    check_loop()
    with with_progress(options) as given:
        run = await prepare(agent, cases, given)
        return await run.report()


async def stream(
    agent: Any, cases: Cases, **options: Unpack[Options]
) -> AsyncGenerator[CaseResult]:
    """The results of an evaluation one by one, as they are done; takes the same options.

    Nothing is kept once it was handed out, and the run does not go far ahead of the caller.
    Leaving the loop ends the run; one that is recorded can be resumed.
    """
    check_loop()
    results = (await prepare(agent, cases, options)).stream()
    async with aclosing(results):
        async for result in results:
            yield result


def rehearse(agent: Any, cases: Cases, **options: Unpack[Options]) -> Report:
    """`evaluate` for code that is not async; takes the same options."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return on_own_loop(lambda: evaluate(agent, cases, **options))
    cancel = options.get("cancel") or Cancel()
    options["cancel"] = cancel
    return _in_thread(lambda: on_own_loop(lambda: evaluate(agent, cases, **options)), cancel)


def on_own_loop(work: Callable[[], Awaitable[T]]) -> T:
    """The result of `work`, on a loop of its own whose threads stay inside the fence."""

    # Not the result of the task: `asyncio.run` has Python describe that, and so every report in full.
    found: list[T] = []
    ended: list[BaseException] = []

    async def main() -> None:
        asyncio.get_running_loop().set_default_executor(FencedExecutor())
        try:
            found.append(await work())
        except (KeyboardInterrupt, SystemExit) as error:
            ended.append(error)  # asyncio would also log what a task raises of these
        finally:
            # What swallows its cancellation would keep the loop, and the caller, waiting forever.
            await _sweep_all()
            closing = asyncio.ensure_future(asyncio.get_running_loop().shutdown_asyncgens())
            await asyncio.wait({closing}, timeout=_CLOSING)
            await _sweep_all()

    try:
        asyncio.run(main())
        if ended:
            raise ended[0]
        return found[0]
    except SystemExit as error:
        raise RunBroke(
            f"code in the run tried to end the process ({error!r}), so the run has no report. "
            f"Take the exit out of the agent, mock or metric that calls it."
        ) from error


async def _sweep_all() -> None:
    await sweep(task for task in asyncio.all_tasks() if task is not asyncio.current_task())


def _in_thread(work: Callable[[], Report], cancel: Cancel) -> Report:
    """Run `work` next to a loop that is already running in this thread, as in a notebook.

    Ctrl-C stops it, whether it comes as KeyboardInterrupt or as a cancellation of the task.
    """
    box: list[Report | BaseException] = []

    def target() -> None:
        try:
            box.append(work())
        except BaseException as error:  # noqa: BLE001 - raised again in the caller's thread
            box.append(error)

    thread = threading.Thread(target=target, name="greenroom-rehearse")
    thread.start()
    task = asyncio.current_task()
    try:
        while thread.is_alive() and not (task is not None and task.cancelling()):
            thread.join(_LOOK)
    finally:
        if thread.is_alive():
            cancel.cancel("interrupted")
            thread.join(_PATIENCE)
    if not box:
        raise KeyboardInterrupt
    if isinstance(box[0], BaseException):
        raise box[0]
    return box[0]
