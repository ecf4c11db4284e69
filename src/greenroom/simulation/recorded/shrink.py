"""A failing case made as short as it can be: the fewest messages and mocks with which it still fails."""

from collections.abc import Awaitable, Callable, Collection, Iterable, Sequence
from dataclasses import replace
from inspect import isawaitable
from typing import TYPE_CHECKING, Any, TypedDict, Unpack

from msgspec import Struct

from greenroom.cases.case import Case, Turn
from greenroom.cases.from_runs import check_secrets, recorded_mocks, with_recorded_user
from greenroom.cases.users import Lines
from greenroom.errors import BadInput, OverBudget
from greenroom.ledger.ledger import Ledger
from greenroom.ledger.questions import ended
from greenroom.simulation.conversation import simulate
from greenroom.simulation.outside_trials import CalledApart, judging
from greenroom.simulation.recorded.allowance import Allowance
from greenroom.world.known_answers import KnownAnswers
from greenroom.world.resources import Factories

if TYPE_CHECKING:
    from greenroom.world.middleware.stack import MiddlewareStack

Fails = Callable[[Ledger], "bool | Awaitable[bool]"]
FailsAs = Callable[[Case, Ledger], "bool | Awaitable[bool | None] | None"]
"""Whether a trial of a smaller case fails; None if that cannot be found out, which ends the search."""
Part = int | str
"""A message by its place, or a mock by its tool."""


class Shrunk(Struct, frozen=True):
    """The shortest case that was found."""

    case: Case
    trials: int
    """How many trials were needed."""
    is_minimal: bool
    """Whether it passes without any one of its messages or mocks; not known if the search was stopped."""
    stopped: str = ""
    """Why the search was stopped; empty if it was not."""
    model_calls: int = 0
    """How often models were asked for real."""
    cost: float = 0.0
    """What that cost in USD, as far as prices are known."""


class Shrinking(Struct, frozen=True):
    """How far the search has got: the shortest case so far, and what it has used."""

    turns: int
    mocks: int
    trials: int
    model_calls: int


class ShrinkOptions(TypedDict, total=False):
    """How a case is shrunk: when it counts as failing, what the search may use, and what may run."""

    fails_in: int
    """In how many of `trials` trials it must fail; 1 unless given."""
    trials: int
    max_trials: int
    """200 unless given."""
    allowance: Allowance
    """The limit for questions that were not answered before."""
    allow_tools: Collection[Any]
    resources: Factories
    middleware: "Iterable[object] | MiddlewareStack"
    on_step: Callable[[Shrinking], None]
    """Called with every smaller case that still fails."""


async def shrink(
    case: Case,
    agent: Any,
    fails: Fails,
    *,
    ledger: Ledger | None = None,
    **options: Unpack[ShrinkOptions],
) -> Shrunk:
    """The shortest conversation and the fewest mocks with which a case still fails.

    It counts as failing if it fails in `fails_in` of `trials` trials, so that chance does not decide; a
    trial that broke has not failed. The user's messages must be data (`says`, `turns` or `Lines`), or
    recorded: `ledger` is a trial of the case that failed. Questions that were answered in it, or in an earlier
    trial, are not asked again, and `allowance` limits the rest. Real tools run if they are named in `allow_tools`,
    once for the same arguments.
    """

    async def has_failed(_: Case, tried: Ledger) -> bool:
        with judging("fails"):
            found = fails(tried)
            return await found if isawaitable(found) else found

    return await shrink_by(case, agent, has_failed, ledger, options)


async def shrink_by(
    case: Case, agent: Any, fails: FailsAs, ledger: Ledger | None, options: ShrinkOptions
) -> Shrunk:
    """`shrink`, with a function of a smaller case and its trial that says whether it fails."""
    whole = _as_turns(case, ledger, options.get("allow_tools", ()))
    tries = _Tries(whole, agent, fails, ledger, options)
    kept: list[Part] = [*range(len(whole.turns)), *whole.mocks]
    if not await tries.still_fails(kept):
        raise BadInput(
            f"case {case.id!r} does not fail in {tries.fails_in} of {tries.trials} trials, so there is "
            f"nothing to shrink."
            if not tries.stopped
            else f"case {case.id!r} could not be shown to fail: {tries.stopped}."
        )
    kept = await _smallest(tries, await _cut_short(tries, kept))
    return Shrunk(
        _with_parts(whole, kept),
        tries.taken,
        not tries.stopped,
        tries.stopped,
        tries.allowance.asked,
        tries.allowance.cost,
    )


async def _cut_short(tries: "_Tries", kept: list[Part]) -> list[Part]:
    """First try without mocks and without the end of the conversation: that needs no new question to a model."""
    for part in reversed(kept):
        fewer = [other for other in kept if other != part]
        if await tries.still_fails(fewer):
            kept = fewer
        elif isinstance(part, int):
            break
    return kept


async def _smallest(tries: "_Tries", kept: list[Part]) -> list[Part]:
    """The parts that remain when no further one can be left out; ever smaller groups are tried."""
    size = max(1, len(kept) // 2)
    while True:
        before, place = len(kept), 0
        while place < len(kept) and not tries.stopped:
            fewer = [*kept[:place], *kept[place + size :]]
            if await tries.still_fails(fewer):
                kept = fewer
            else:
                place += size
        # Only a round that tries single parts and finds nothing shows that no more can be left out.
        if tries.stopped or (size == 1 and len(kept) == before):
            return kept
        size = max(1, size // 2)


class _Tries:
    """The cases that were tried, and what is known from their trials."""

    def __init__(
        self,
        whole: Case,
        agent: Any,
        fails: FailsAs,
        ledger: Ledger | None,
        options: ShrinkOptions,
    ) -> None:
        self.fails_in, self.trials = options.get("fails_in", 1), options.get("trials", 1)
        self.most = options.get("max_trials", 200)
        if not 1 <= self.fails_in <= self.trials <= self.most:
            raise BadInput("give 1 <= fails_in <= trials <= max_trials.")
        self.allowance = options.get("allowance") or Allowance()
        self.taken = 0
        self.stopped = ""
        self._whole, self._agent, self._fails = whole, agent, fails
        self._on_step = options.get("on_step")
        self._known: dict[tuple[Part, ...], bool] = {}
        self._options: dict[str, Any] = {
            "allow_tools": options.get("allow_tools", ()),
            "resources": options.get("resources"),
            "middleware": options.get("middleware", ()),
        }
        # The n-th trials of all cases share known answers; trials with different numbers do not.
        self._answers = [KnownAnswers(self.allowance.check) for _ in range(self.trials)]
        if ledger is not None:
            self._answers[0].learn(ledger)

    async def still_fails(self, parts: Sequence[Part]) -> bool:
        """Whether the case with these parts fails often enough, with as few trials as can show it."""
        if not any(isinstance(part, int) for part in parts):
            return False
        key = tuple(parts)
        if key not in self._known:
            found = await self._is_failing(_with_parts(self._whole, parts))
            if self.stopped:
                return False
            self._known[key] = found
            if found:
                self._tell(parts)
        return self._known[key]

    async def _is_failing(self, case: Case) -> bool:
        failed = 0
        for number, answers in enumerate(self._answers):
            if failed >= self.fails_in or failed + self.trials - number < self.fails_in:
                break
            if self.taken >= self.most:
                self.stopped = f"{self.most} trials were run"
                return False
            self.taken += 1
            failed += await self._fails_once(case, answers)
            if self.stopped:
                return False
        return failed >= self.fails_in

    async def _fails_once(self, case: Case, answers: KnownAnswers) -> bool:
        allowance = self.allowance
        answers.begin()
        ledger = await simulate(
            case, self._agent, on_event=allowance.add, recording=answers, **self._options
        )
        answers.learn(ledger)
        end = ended(ledger)
        if end is None or end.reason == "error":
            if end is not None and end.error_type == OverBudget.__name__:
                self.stopped = allowance.refusal  # if empty, a budget of middleware was used up
            return False
        found = self._fails(case, ledger)
        has_failed = await found if isawaitable(found) else found
        if has_failed is None:
            self.stopped = allowance.refusal or "it could not be measured"
        return bool(has_failed)

    def _tell(self, parts: Sequence[Part]) -> None:
        if self._on_step is not None:
            turns = sum(isinstance(part, int) for part in parts)
            found = Shrinking(turns, len(parts) - turns, self.taken, self.allowance.asked)
            with CalledApart("on_step", "between two trials"):
                self._on_step(found)


def _as_turns(case: Case, ledger: Ledger | None, allowed: Collection[object]) -> Case:
    """The case with all that its user says as turns, and all that its tools answered as mocks."""
    user = case.user
    if case.history:
        raise BadInput(
            f"case {case.id!r} continues a recorded session, which cannot be made shorter. Shrink the "
            f"case of that session."
        )
    if ledger is not None:
        check_secrets(Case(case.id), list(ledger))
        names = {getattr(tool, "name", tool) for tool in (*allowed, *case.allow_tools)}
        known = {t: m for t, m in recorded_mocks(ledger, case.id).items() if t not in names}
        case = replace(case, mocks={**known, **case.mocks})
    if user is None:
        return replace(case, says="", attachments=(), expect=None, turns=list(case.script))
    if isinstance(user, Lines) and user.last is None:
        lines = _lines(user)
        if all(isinstance(line, str) for line in lines):
            turns = [*case.script, *map(Turn, lines)]
            return replace(case, says="", attachments=(), expect=None, user=None, turns=turns)
    if ledger is not None:
        return with_recorded_user(case, ledger)
    raise BadInput(
        f"the user of case {case.id!r} is not made of messages, so none can be left out. Give the "
        f"ledger of a trial that failed: shrink(..., ledger=ledger)."
    )


def _lines(user: Any) -> list[Any]:
    return [*user.lines, *(_lines(user.then) if isinstance(user.then, Lines) else [])]


def _with_parts(whole: Case, parts: Sequence[Part]) -> Case:
    """The case with these messages and mocks, and no others."""
    return replace(
        whole,
        turns=[whole.turns[part] for part in parts if isinstance(part, int)],
        mocks={part: whole.mocks[part] for part in parts if isinstance(part, str)},
    )
