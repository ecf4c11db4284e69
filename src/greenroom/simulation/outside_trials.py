"""The fence around what runs outside of a trial: before the first, between two, and after the last.

Greenroom itself calls code of the author's there: functions that make agents and middleware, contract checks,
properties that it reads, hooks that redact and close. No case answers for it, so it connects to nothing and
calls no tool.
"""

from collections.abc import Generator
from contextlib import contextmanager

from greenroom.backends.seams import revisit
from greenroom.errors import BadCase, FenceBreach
from greenroom.simulation.fence import Breach, FencedScope, RunScope, answerable, put_up
from greenroom.simulation.fence.refusal import where
from greenroom.simulation.remedies import REHEARSAL, mend_breach


def check_outermost() -> None:
    """Refuse a rehearsal inside another: its cases would answer to two gates at once, and its hooks may connect."""
    around = answerable()
    if around is None:
        revisit()  # no run is around it, which would have looked at the frameworks' classes
    elif around.around != "run":
        # On record before it is raised: the code of the case may swallow the exception.
        around.record_breach(Breach(REHEARSAL, "", where()))
        inside = f"case {around.name!r}" if around.around == "case" else around.name
        raise BadCase(f"a rehearsal was begun inside {inside}. {mend_breach(REHEARSAL)}")


@contextmanager
def outside_trials() -> Generator[FencedScope]:
    """Fence in a whole run, whose trials have their own fences; what is tried between them is a fault of the run."""
    put_up()
    check_outermost()
    scope = FencedScope("code outside of the trials", around="run")
    try:
        with RunScope(scope):
            yield scope
    finally:
        # Threads that were started here, such as those of the event loop, no longer belong to the run.
        scope.is_void = True


class CalledApart(RunScope):
    """Fence in code that no case answers for; what it tried is raised, even if it swallowed the refusal.

    A class, because one is around the beginning of every trial.
    """

    __slots__ = ("_when",)

    def __init__(self, what: str, when: str) -> None:
        put_up()
        super().__init__(FencedScope(what, around="call"))
        self._when = when

    def __exit__(self, *raised: object) -> None:
        super().__exit__(*raised)
        check_apart(self.scope, self._when)


def judging(what: str) -> CalledApart:
    """Fence in a function of the author's that judges a finished trial: like a metric, it only looks."""
    return CalledApart(what, "while it judged a trial")


def check_apart(scope: FencedScope, when: str) -> None:
    """Raise what code that no case answers for has tried."""
    if scope.breach is not None:
        raise FenceBreach(
            f"{scope.name} tried {scope.breach} {when}; it was refused. Let the agent or a tool of it do that "
            f"when it is needed."
        )
