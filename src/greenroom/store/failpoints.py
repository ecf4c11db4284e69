"""Named places where a crash hurts most, so that tests can crash there.

    GREENROOM_FAILPOINT=commit.before      the process kills itself when it first gets there
    GREENROOM_FAILPOINT=commit.before:7    ... when it gets there for the seventh time

Without the variable, a failpoint only compares its name with an empty one.
"""

import os
import signal
from itertools import count

FAILPOINTS = (
    "run.begun",
    "journal.opened",
    "journal.half_written",
    "journal.written",
    "trial.played",
    "trial.measured",
    "commit.before",
    "commit.inside",
    "commit.after",
    "journal.cleared",
    "resume.read",
    "run.closing",
)
"""Every failpoint, in the order in which a run passes them."""

_ARMED, _, _TIMES = os.environ.get("GREENROOM_FAILPOINT", "").partition(":")
_passed = count(1)


def is_armed(name: str) -> bool:
    """Whether this failpoint is the one to crash at."""
    return name == _ARMED


def failpoint(name: str) -> None:
    """Crash here, as in a power failure, if the variable says so."""
    if name == _ARMED and next(_passed) >= int(_TIMES or 1):
        os.kill(os.getpid(), signal.SIGKILL)
