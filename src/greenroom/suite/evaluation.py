"""Many cases, run and measured: the entry points of an evaluation."""

import asyncio
import threading
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from typing import Any, TypeVar, Unpack

from greenroom.errors import RunBroke
from greenroom.results.report import Report
from greenroom.results.result import CaseResult
from greenroom.simulation.fence import FencedExecutor, FencedScope, RunScope
from greenroom.simulation.hangs.leftovers import sweep
from greenroom.simulation.trial_context import check_loop
from greenroom.suite.cancel import Cancel
from greenroom.suite.notebook import with_progress
from greenroom.suite.options import Options
from greenroom.suite.plan import Cases, prepare

T = TypeVar("T")

_LOOK = 0.1
"""Seconds between two checks whether the caller was cancelled."""
_PATIENCE = 5.0
"""Seconds that a stopping run may take before its thread is abandoned."""
_CLOSING = 1.0
"""Seconds that abandoned async generators get to close."""
_STOPPED = "Event loop stopped before Future completed."
"""What asyncio says of a loop that was stopped from inside."""


async def evaluate(agent: Any, cases: Cases, **options: Unpack[Options]) -> Report:
    """Rehearse `agent` on every case, and return a report with the results in the order of the cases.

    What runs: each case runs `trials` times, or as often as its set says. With "auto", rounds are repeated
    until it is clear whether the cases' pass rate reaches `min_pass_rate`, 20 at most. `on_error="stop"`
    ends the run at the first error; "skip" shows broken cases but leaves them out of the verdict.
    `fail_fast` ends the run at the first case that does not pass.

    What answers: `mocks` answer for tools that a case does not mock itself. `model` replaces every model of
    the agent, whatever its framework, so that no key is needed; a case's own `model` comes first.
    `allow_tools` names tools whose real bodies may run, inside the fence. `resources` maps names to functions
    that open what these tools need, such as a connection, in each trial in which one runs for real.

    What measures: `metrics` and the criteria of `config` are added to each case's own. `cache` is a folder
    for judges' answers, so that none is paid for twice.

    Safety: `allow_unfenced` runs even where the fence cannot hold, and `allow_opaque` accepts an agent whose
    tools run where no gate can see them; the report says so.

    Storage and cost: each finished trial is recorded in `store` (a folder; without one `$GREENROOM_STORE`,
    else `.greenroom`; False records nothing). `resume` continues the run of that id, or with True the latest
    unfinished one of this set; finished trials do not run again. `budget` is what the run may cost in
    USD: no case begins that could cost more than is left. `cancel` is a token that stops the run from outside.

    Comparison: `baseline` is an earlier report of these cases, or several that count together. A case that
    passed there and fails now runs again, up to `confirm` (30) times, until it is clear whether it has
    changed; 0 runs none again. These trials are in `report.confirmed` and count in no rate.
    `Gate().decide(report, baseline)` gives the decision.

    Recordings: `record` keeps the models' answers in a folder. `replay` takes such a folder, or the id of a run
    in the store: the recording answers for the models of agent, users and judges, and for tools that would
    run for real, and every result says so. What was not recorded is an error that says what differs; with
    `on_drift="live"` the model is asked instead.

    Processes: `workers` runs the trials in that many processes, for agents that block or compute. They import
    agent, cases and metrics by themselves, so these must be given as references, names or data. `on` runs
    them on the nodes of a Ray cluster: "ray", its address, or a `Ray`. `rate` is how often models may be
    asked, {"openai:gpt-x": "8000/min"}, by all trials together.

    A notebook shows a progress bar, unless `progress=False`.
    """
    check_loop()
    with with_progress(options) as given:
        run = await prepare(agent, cases, given)
        return await run.report()


async def stream(
    agent: Any, cases: Cases, **options: Unpack[Options]
) -> AsyncGenerator[CaseResult]:
    """Yield the results of an evaluation as trials finish; takes the options of `evaluate`.

    No result is kept after it was yielded, and the run does not get far ahead of the caller.
    Leaving the loop ends the run; one that is recorded can be resumed. A run with faults, which `evaluate` would
    have in its report, ends in RunFaulted after its last result. Trials that confirm against a `baseline` come
    after all others, with numbers above `trials`, and belong in no rate.
    """
    check_loop()
    results = (await prepare(agent, cases, options)).stream()
    async with aclosing(results):
        async for result in results:
            yield result


def rehearse(agent: Any, cases: Cases, **options: Unpack[Options]) -> Report:
    """`evaluate` for code that is not async; takes its options."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return on_own_loop(lambda: evaluate(agent, cases, **options))
    cancel = options.get("cancel") or Cancel()
    options["cancel"] = cancel
    return _in_thread(lambda: on_own_loop(lambda: evaluate(agent, cases, **options)), cancel)


def on_own_loop(work: Callable[[], Awaitable[T]]) -> T:
    """The result of `work`, on a separate loop whose threads stay inside the fence."""

    # Not returned by the task: `asyncio.run` would have Python format its result, and so every report in full.
    found: list[T] = []
    ended: list[BaseException] = []

    async def main() -> None:
        asyncio.get_running_loop().set_default_executor(FencedExecutor())
        try:
            found.append(await work())
        except (Exception, KeyboardInterrupt, SystemExit) as error:  # noqa: BLE001 - raised again below
            ended.append(error)  # what the task raised could not be told from what the loop raises
        finally:
            # A task that swallows its cancellation would keep the loop, and the caller, waiting forever.
            await _sweep_all()
            # Generators that a case left behind end here, where no case answers for what they do then.
            with RunScope(FencedScope("a generator that the run left behind", around="call")):
                closing = asyncio.ensure_future(asyncio.get_running_loop().shutdown_asyncgens())
            await asyncio.wait({closing}, timeout=_CLOSING)
            await _sweep_all()

    try:
        asyncio.run(main())
    except SystemExit as error:
        ended[:] = [error]
    except asyncio.CancelledError as error:
        raise RunBroke(
            "code in the run cancelled the run itself, so it has no report. Let the agent, mock or metric "
            "cancel only tasks that it started."
        ) from error
    except RuntimeError as error:
        if str(error) != _STOPPED:
            raise
        raise RunBroke(
            "code in the run stopped its event loop, so the run has no report. Remove the call of `stop()` from "
            "the agent, mock or metric."
        ) from error
    if not ended:
        return found[0]
    if isinstance(ended[0], SystemExit):
        raise RunBroke(
            f"code in the run tried to end the process ({ended[0]!r}), so the run has no report. "
            f"Remove the exit from the agent, mock or metric that calls it."
        ) from ended[0]
    raise ended.pop()


async def _sweep_all() -> None:
    await sweep(task for task in asyncio.all_tasks() if task is not asyncio.current_task())


def _in_thread(work: Callable[[], Report], cancel: Cancel) -> Report:
    """Run `work` in another thread, because a loop is already running in this one, as in a notebook.

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
