"""A metric that failed: whether it is worth another try, and the outcome it leaves."""

import asyncio

from greenroom.cases.scores import Unmeasured
from greenroom.errors import (
    GreenroomError,
    ModelTimedOut,
    ModelUnreachable,
    RateLimited,
    Refusal,
)
from greenroom.ledger.origin import summarize_error
from greenroom.world.threads import Interruption

_PASSING_STATUS = (408, 429)
_PASSING_TYPES = {
    "RateLimitError",
    "ResourceExhausted",
    "TimeoutException",
    "Timeout",
    "APITimeoutError",
    "NetworkError",
    "RemoteProtocolError",
    "APIConnectionError",
    "ClientConnectionError",
}
"""The names of such errors in the packages through which models are asked."""


def may_pass(error: BaseException) -> bool:
    """Whether an error is a rate limit, a time-out or a lost connection, which might not happen again.

    Those of other packages are recognised by their status or by the names of their types.
    """
    if isinstance(error, GreenroomError):
        return isinstance(error, RateLimited | ModelTimedOut | ModelUnreachable)
    if isinstance(error, TimeoutError | ConnectionError):
        return True
    if getattr(error, "status_code", None) in _PASSING_STATUS:
        return True
    kinds = {kind.__name__ for kind in type(error).__mro__}
    return isinstance(error, Exception) and not kinds.isdisjoint(_PASSING_TYPES)


def overdue(seconds: float) -> Unmeasured:
    """The outcome of a metric that took longer than allowed."""
    return Unmeasured(f"the metric did not finish within {seconds:g} s")


def outcome_of(
    error: BaseException, attempts: int, task: "asyncio.Task[object] | None"
) -> Unmeasured:
    """The outcome of a metric that failed in `task`; an error that is not the metric's own is raised again."""
    if isinstance(error, Refusal | KeyboardInterrupt | Interruption):
        raise error
    if isinstance(error, GeneratorExit) and not _runs(task):
        raise error  # hanging work is being closed, from outside its task
    if isinstance(error, asyncio.CancelledError):
        # Only a cancellation of this task is ours; any other leaked from the metric.
        if task is None or task.cancelling():
            raise error
        return Unmeasured("CancelledError: something the metric awaited was cancelled")
    # This includes a failed pytest check and a call of sys.exit(): the metric failed, not the run.
    often = f"failed after {attempts} attempts: " if attempts > 1 else ""
    return Unmeasured(f"{often}{summarize_error(error)}")


def _runs(task: asyncio.Task[object] | None) -> bool:
    try:
        return asyncio.current_task() is task
    except RuntimeError:  # no loop is running
        return False
