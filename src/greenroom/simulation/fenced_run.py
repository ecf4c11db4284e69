"""One conversation inside fence and deadline, and how it ended."""

import asyncio
from collections.abc import Awaitable, Callable, Collection
from contextlib import nullcontext
from time import monotonic

from greenroom.errors import (
    BadCase,
    FenceBreach,
    GreenroomError,
    MockBroke,
    RunBroke,
    UserAgentFailed,
)
from greenroom.ledger.events import EndReason, RunEnded
from greenroom.ledger.simulated import unanswered
from greenroom.simulation.fence import Breach, FencedScope, opening_for, put_up, release_cases
from greenroom.simulation.hangs.watchdog import Deadline, finish
from greenroom.simulation.mock_names import check_names_after
from greenroom.simulation.trial_context import TrialContext, on_breach
from greenroom.world.exits import tried_to_exit
from greenroom.world.records import describe_error

_CLOSING = 5.0
"""Seconds in which the resources and the middleware of a trial must be closed."""

Converse = Callable[[TrialContext], Awaitable[EndReason]]
"""Holds the conversation of a trial, and says why it is over."""


async def run_within(limit: float, trial: TrialContext, converse: Converse) -> None:
    """Hold the conversation of a trial for at most `limit` seconds, and record how it ended."""
    deadline = Deadline(limit, name=f"case {trial.case.id!r}", on_extended=trial.world.extend)
    trial.world.deadline = monotonic() + limit
    # SDKs swallow refusals and try again; a case that was refused something ends at once.
    trial.refusals.on_set = deadline.cut
    try:
        task = await finish(_run_fenced(trial, converse, deadline), deadline, trial.case.id)
        not_closed = await _close_up(trial)
        late = limit if deadline.expired or not task.done() else None
        trial.world.record(_ending(trial, task, late, not_closed))
    finally:
        trial.close()
        release_cases()


async def _run_fenced(trial: TrialContext, converse: Converse, deadline: Deadline) -> EndReason:
    """Hold the conversation inside the fence, with tool bodies closed to direct calls."""
    # The callback uses these and not `trial`: it holds the scope, and the cycle would outlive it.
    case, refusals = trial.case, trial.refusals

    def on_stray(breach: Breach) -> None:
        why = (
            f"while case {case.id!r} was open, work that belongs to no case tried {breach}; it was "
            f"refused. It may have come from any case that was open, so none of them is cleared. Start "
            f"threads and tasks from inside the case, or stop what does not belong to it."
        )
        refusals.set(FenceBreach(why))

    put_up()
    trial.scope = scope = FencedScope(
        case.id,
        on_breach(trial),
        body_guard=trial.world.check_direct_call,
        host=trial.visitors.host,
        on_stray=on_stray,
    )
    scope.open(deadline.task)
    try:
        if trial.world.middleware is None:
            return await converse(trial)
        async with trial.world.middleware.around("around_run"):
            return await converse(trial)
    except SystemExit as error:
        raise tried_to_exit(error) from error
    finally:
        scope.close()


async def _close_up(trial: TrialContext) -> GreenroomError | None:
    """Close the resources of tools and let middleware look back; the reason if one of them fails."""
    resources, hooks = trial.world.resources, trial.world.middleware
    not_closed = None
    if resources.is_open:
        not_closed = await _close_fenced(trial, resources.close, "resources", resources.hosts)
    if hooks is not None and hooks.listeners("after_run"):
        not_closed = not_closed or await _close_fenced(trial, hooks.after_run, "middleware")
    return not_closed


async def _close_fenced(
    trial: TrialContext,
    work: Callable[[], Awaitable[None]],
    what: str,
    hosts: Collection[str] = (),
) -> GreenroomError | None:
    """Do the last work of a trial, inside the fence and in time; the reason if that fails."""
    deadline = Deadline(_CLOSING, name=f"closing {what}")

    async def close() -> None:
        put_up()
        reached = opening_for(hosts=hosts) if hosts else nullcontext()
        with FencedScope(trial.case.id, on_breach(trial)), reached:
            await work()

    task = await finish(close(), deadline, f"closing {what} of {trial.case.id}")
    if not task.done() or task.cancelled():
        return RunBroke(f"{what} were not closed within {_CLOSING:g} s.")
    error = task.exception()
    return error if error is None or isinstance(error, RunBroke) else RunBroke(f"{error!r}")


def _ending(
    trial: TrialContext,
    task: "asyncio.Task[EndReason]",
    late: float | None,
    not_closed: GreenroomError | None,
) -> RunEnded:
    """Why the trial is over: safety comes first, then the clock, then the conversation itself.

    `late` is the number of seconds within which it was not done, if it was not.
    """
    case = trial.case
    if trial.refusals.refusal is not None:
        return _error(trial.refusals.refusal)
    if late is not None:
        if waits := ", ".join(unanswered(trial.ledger)):
            why = f"the model that simulates {waits} did not answer within {late:.3g} s."
            return _error(MockBroke(why))
        if not trial.speaking:
            return RunEnded(reason="max_seconds")
        why = f"{trial.speaking} did not answer within {late:.3g} s."
        return _error(UserAgentFailed(why))
    if task.cancelled():
        return _error(
            RunBroke("the trial was cancelled from inside; something cancelled its task.")
        )
    error = task.exception()
    if (broke := error or not_closed) is not None:
        return _error(broke)
    recording = trial.world.recording
    if recording is not None and (drift := recording.unasked()) is not None:
        return _error(drift)
    try:
        check_names_after(case, trial.backend, trial.world.allowed, trial.ledger)
    except BadCase as unknown:
        return _error(unknown)
    return RunEnded(reason=task.result())


def _error(error: BaseException) -> RunEnded:
    phase = error.phase if isinstance(error, GreenroomError) else "system"
    return RunEnded(reason="error", phase=phase, **describe_error(error))
