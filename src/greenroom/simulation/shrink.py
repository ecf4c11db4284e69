"""A failing case made as short as it can be: the fewest messages and mocks with which it still fails."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from msgspec import Struct

from greenroom.cases.case import Case, Turn
from greenroom.cases.users import Lines
from greenroom.errors import BadInput
from greenroom.ledger.ledger import Ledger
from greenroom.ledger.questions import ended
from greenroom.simulation.conversation import simulate


class Shrunk(Struct, frozen=True):
    """The shortest case that was found."""

    case: Case
    trials: int
    """How many trials it took."""
    is_minimal: bool
    """Whether it passes without any one of its messages or mocks; not known if the budget was spent."""


async def shrink(
    case: Case,
    agent: Any,
    fails: Callable[[Ledger], bool],
    *,
    fails_in: int = 1,
    trials: int = 1,
    max_trials: int = 200,
) -> Shrunk:
    """The shortest conversation and the fewest mocks with which a case still fails.

    It counts as failing if it fails in `fails_in` of `trials` trials, so that chance does not decide; a
    trial that broke has not failed. The user's messages must be data: `says`, `turns` or `Lines`.
    """
    if not 1 <= fails_in <= trials <= max_trials:
        raise BadInput("give 1 <= fails_in <= trials <= max_trials.")
    search = _Search(agent, fails, fails_in, trials, max_trials)
    shortest = _as_turns(case)
    if not await search.still_fails(shortest):
        raise BadInput(
            f"case {case.id!r} does not fail in {fails_in} of {trials} trials, so there is nothing to shrink."
        )
    while True:
        for smaller in _smaller(shortest):
            if search.left < trials:
                return Shrunk(shortest, search.taken, is_minimal=False)
            if await search.still_fails(smaller):
                shortest = smaller
                break
        else:
            return Shrunk(shortest, search.taken, is_minimal=True)


class _Search(Struct, eq=False):
    agent: Any
    fails: Callable[[Ledger], bool]
    fails_in: int
    trials: int
    left: int
    taken: int = 0

    async def still_fails(self, case: Case) -> bool:
        """Whether it fails often enough; as few trials are taken as show it."""
        failed = 0
        for number in range(self.trials):
            if failed >= self.fails_in or failed + self.trials - number < self.fails_in:
                break
            self.left, self.taken = self.left - 1, self.taken + 1
            ledger = await simulate(case, self.agent)
            end = ended(ledger)
            is_whole = end is not None and end.reason != "error"
            failed += is_whole and self.fails(ledger)
        return failed >= self.fails_in


def _as_turns(case: Case) -> Case:
    """The case with all that its user says as turns."""
    user = case.user
    if user is None:
        return replace(case, says="", turns=list(case.script))
    if isinstance(user, Lines) and user.last is None:
        lines = _lines(user)
        if all(isinstance(line, str) for line in lines):
            return replace(case, says="", user=None, turns=[*case.script, *map(Turn, lines)])
    raise BadInput(
        f"the user of case {case.id!r} is not made of messages, so none can be left out. Harvest the "
        f"failing trial first: `harvest(ledger, id)` makes its messages turns."
    )


def _lines(user: Any) -> list[Any]:
    return [*user.lines, *(_lines(user.then) if isinstance(user.then, Lines) else [])]


def _smaller(case: Case) -> Iterator[Case]:
    """The case without each one of its messages, the earliest first, and of its mocks."""
    turns = list(case.turns or ())
    if len(turns) > 1:
        for place in range(len(turns)):
            yield replace(case, turns=[*turns[:place], *turns[place + 1 :]])
    for name in case.mocks:
        yield replace(case, mocks={k: mock for k, mock in case.mocks.items() if k != name})
