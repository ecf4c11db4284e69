"""A rehearsal in which you speak for the user: the agent goes as far as it can, then rests until the next move.

Nothing waits in memory between two moves: the resting state is an unfinished ledger, so a rehearsal can be
continued in another process, and time to think does not count for the case. It is the conversation of a
trial, split where the user is asked; gate, fence and watchdog are the same.
"""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from typing import Any

from msgspec import Struct

from greenroom.backends.backend import Advance, Failed, Finished, TurnOver, Waiting, Yield
from greenroom.cases.case import Case, Stop
from greenroom.errors import BadInput
from greenroom.ledger.changes import State
from greenroom.ledger.events import EndReason, Event, Forked, RunEnded, ToolBlocked, ToolCalled
from greenroom.ledger.functions import Anything
from greenroom.ledger.ledger import Ledger
from greenroom.ledger.messages import is_blank
from greenroom.ledger.plain import Json
from greenroom.ledger.questions import ended, started
from greenroom.simulation.conversation import advance, answer, last_outcome, say
from greenroom.simulation.fenced_run import run_within
from greenroom.simulation.outside_trials import check_outermost
from greenroom.simulation.recorded.fork import check_place
from greenroom.simulation.trial_context import (
    TrialContext,
    begin,
    check_fence,
    check_loop,
    check_opaque,
    preparing,
    set_up,
)
from greenroom.simulation.user.given_answers import answers_to

_MANY_TURNS = 1_000
_Move = Callable[[TrialContext, Advance | None], Awaitable[bool]]
"""Makes a move where the agent rests; returns whether the agent should continue then."""


class Rest(Struct, frozen=True, kw_only=True):
    """Where a rehearsal rests."""

    waits: tuple[Yield, ...] = ()
    """What the agent waits for; nothing after a finished turn."""
    ended: str = ""
    """`finished` if the agent has ended the conversation, `error` if it cannot continue."""
    error: str = ""
    refused: tuple[str, ...] = ()
    """Tools that were refused because they have no mock; `go_on` tries again with one."""


class Rehearsal:
    """A conversation with an agent, move by move, with every side effect mocked.

    `case` gives mocks, state and the simulated user; `mocks` and `state` are added to them. An unfinished
    `ledger` is continued. No tool body runs, not even one that the case allows, except by a mock that is
    the tool itself or `live(...)`.
    """

    def __init__(
        self,
        agent: Any,
        case: Case | None = None,
        *,
        mocks: Mapping[str, Anything] | None = None,
        state: State | None = None,
        ledger: Ledger | None = None,
        model: Any = None,
        seconds: float = 120.0,
        on_event: Callable[[Event], None] | None = None,
    ) -> None:
        given = case or Case("rehearsal")
        self._agent = agent
        self._model = model
        self._seconds = seconds
        self._on_event = on_event
        self.case = replace(
            given,
            says="",
            turns=(),
            expect=None,
            attachments=(),
            allow_tools=(),
            mocks={**given.mocks, **(mocks or {})},
            state=given.state if state is None else state,
            stop=Stop(max_turns=_MANY_TURNS, max_seconds=seconds),
        )
        self.ledger = Ledger() if ledger is None else ledger

    async def say(self, message: str) -> Rest:
        """Say something to the agent."""
        if is_blank(message):
            raise BadInput("the message is empty; say something.")

        async def move(trial: TrialContext, outcome: Advance | None) -> bool:
            if isinstance(outcome, Waiting):
                trial.world.record(answers_to(outcome.yields, {}, message))
            else:
                await say(trial, message)
            return True

        return await self._take(move)

    async def answer(self, answers: Mapping[str, Json]) -> Rest:
        """Answer what the agent waits for, by tool or by id of the wait."""

        async def move(trial: TrialContext, outcome: Advance | None) -> bool:
            if not isinstance(outcome, Waiting):
                raise BadInput("the agent does not wait for an answer; say something to it.")
            trial.world.record(answers_to(outcome.yields, answers))
            return True

        return await self._take(move)

    async def let_user_answer(self) -> Rest:
        """Let the simulated user of the case say what comes next."""

        async def move(trial: TrialContext, outcome: Advance | None) -> bool:
            if outcome is None:
                outcome = TurnOver()
            if not isinstance(outcome, TurnOver | Waiting):
                return False
            return await answer(trial, outcome)

        return await self._take(move)

    async def go_on(self, mocks: Mapping[str, Anything] | None = None) -> Rest:
        """Continue after a refusal, with the mocks that were missing."""
        self.give_mocks(mocks or {})

        async def move(_: TrialContext, outcome: Advance | None) -> bool:
            return outcome is None

        return await self._take(move)

    def give_mocks(self, mocks: Mapping[str, Anything]) -> None:
        """Change what tools answer from now on; None removes a mock."""
        kept = {
            name: mock for name, mock in {**self.case.mocks, **mocks}.items() if mock is not None
        }
        self.case = replace(self.case, mocks=kept)

    def fork(self, at: int, mocks: Mapping[str, Anything] | None = None) -> "Rehearsal":
        """Another rehearsal that continues from before event `at`; nothing before it is asked again."""
        first = started(self.ledger)
        if first is None or not 0 < at <= len(self.ledger):
            raise BadInput(f"at={at} should be one of the events 1 to {len(self.ledger)}.")
        with preparing(self.case):
            backend = set_up(self.case, self._agent, model=self._model).backend
        if at < len(self.ledger):
            check_place(self.ledger, at, backend)
        changed = tuple(f"mocks.{tool}" for tool in mocks or ())
        begun = Ledger(self.ledger[:at])
        begun.append(
            Forked(from_run=first.run_id, from_seq=at, changed=changed, digest=backend.digest),
            self.ledger[at - 1].at,
        )
        begun.loaded_count = len(begun)
        other = Rehearsal(
            self._agent,
            self.case,
            ledger=begun,
            model=self._model,
            seconds=self._seconds,
            on_event=self._on_event,
        )
        other.give_mocks(mocks or {})
        return other

    async def _take(self, move: _Move) -> Rest:
        """Make a move and let the agent go as far as it can."""
        check_loop()
        check_outermost()
        check_fence()
        if ended(self.ledger) is not None:
            raise BadInput("the agent has ended this conversation; begin another one, or fork it.")
        ledger = Ledger(self.ledger[:])
        ledger.loaded_count = len(ledger)
        with preparing(self.case):
            trial = set_up(
                self.case,
                self._agent,
                ledger,
                on_event=self._on_event,
                run_id="rehearsal",
                model=self._model,
            )
            check_opaque(trial.backend, allowed=False)
            begin(trial)
        reached: list[Advance] = []
        mistakes: list[BadInput] = []

        async def converse(context: TrialContext) -> EndReason:
            outcome = await _where(context)
            try:
                goes_on = await move(context, outcome)
            except BadInput as mistake:
                mistakes.append(mistake)
                raise
            if goes_on:
                outcome = await advance(context)
            if isinstance(outcome, Failed):
                raise outcome.error
            reached.append(outcome or TurnOver())
            return "finished" if isinstance(outcome, Finished) else "completed"

        await run_within(self._seconds, trial, converse)
        if mistakes:
            raise mistakes[0]  # nothing was said: the rehearsal rests where it was
        return self._rested(ledger, reached)

    def _rested(self, ledger: Ledger, reached: list[Advance]) -> Rest:
        """Keep what happened; its end is kept only if the agent ended the conversation."""
        end = ledger[-1]
        assert isinstance(end, RunEnded)
        if reached and end.reason != "error":
            outcome = reached[0]
            is_over = isinstance(outcome, Finished)
            self.ledger = ledger if is_over else Ledger(ledger[:-1])
            waits = outcome.yields if isinstance(outcome, Waiting) else ()
            return Rest(waits=waits, ended="finished" if is_over else "")
        new = ledger[len(self.ledger) :]
        blocked = next((event for event in new if isinstance(event, ToolBlocked)), None)
        if blocked is None:
            self.ledger = ledger
            return Rest(ended="error", error=end.error or end.reason)
        self.ledger = Ledger(ledger[: _before_call(ledger, blocked)])
        return Rest(error=end.error, refused=(blocked.tool,))


async def _where(trial: TrialContext) -> Advance | None:
    """The state of the agent: it waits, it has answered, or it has not been spoken to."""
    index = trial.ledger.index_of()
    if index.open_invocation is not None:
        return await advance(trial)
    return last_outcome(trial) if index.said or index.invocations else None


def _before_call(ledger: Ledger, blocked: ToolBlocked) -> int:
    """The place of a call that was refused, if it was recorded before that."""
    for event in reversed(ledger[: blocked.seq]):
        if isinstance(event, ToolCalled) and event.call_id == blocked.call_id:
            return event.seq
    return blocked.seq
