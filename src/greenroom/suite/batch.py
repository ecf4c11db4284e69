"""Many simulated conversations at once, and what they came to together."""

import asyncio
from collections.abc import Callable, Collection, Sequence
from dataclasses import field
from typing import Any

from greenroom.backends.registry import backend_for
from greenroom.cases.case import Case
from greenroom.errors import BadInput
from greenroom.ledger.records import record
from greenroom.simulation.checks import check_fence, check_opaque
from greenroom.simulation.conversation import simulate
from greenroom.simulation.fence import strays
from greenroom.simulation.summary import Simulation, simulation_of
from greenroom.simulation.users import with_user_model
from greenroom.suite.plan import Cases
from greenroom.suite.references import as_evalset, load_agent
from greenroom.suite.trial import CONCURRENCY
from greenroom.suite.watch import refusals_since, watched

OnSimulated = Callable[[Simulation], None]


@record
class Batch:
    """Simulations in the order of their cases. Those that broke are counted apart."""

    simulations: Sequence[Simulation]
    notes: Sequence[str] = field(default=())
    faults: Sequence[str] = field(default=())
    """What was refused and belongs to no conversation."""

    @property
    def played(self) -> Sequence[Simulation]:
        """Those that did not break."""
        return [one for one in self.simulations if one.ended not in (None, "error")]

    @property
    def errors(self) -> Sequence[Simulation]:
        """Those that broke, or could not be played at all."""
        return [one for one in self.simulations if one.ended in (None, "error")]

    @property
    def completed(self) -> float | None:
        """The share of played conversations that came to an end of their own."""
        return _mean([float(one.completed) for one in self.played])

    @property
    def mean_turns(self) -> float | None:
        """How many turns a played conversation took."""
        return _mean([float(one.turns) for one in self.played])

    @property
    def goals_achieved(self) -> float | None:
        """The share of all goals of played conversations that were shown to be reached."""
        goals = sum(len(one.goals) for one in self.played)
        reached = sum(len(one.goals_achieved) for one in self.played)
        return reached / goals if goals else None


def _mean(values: Sequence[float]) -> float | None:
    return sum(values) / len(values) if values else None


async def simulate_all(
    agent: Any,
    cases: Cases,
    *,
    user_model: Any = None,
    concurrency: int = CONCURRENCY,
    allow_tools: Collection[Any] = (),
    allow_unfenced: bool = False,
    allow_opaque: bool = False,
    on_complete: OnSimulated | None = None,
) -> Batch:
    """Simulate every case, at most `concurrency` at once, without measuring anything.

    `user_model` plays the simulated users who have no model of their own. `on_complete` hears of
    each conversation as it ends. `allow_opaque` plays an agent whose tools run where no gate can
    see them.
    """
    evalset = as_evalset(cases)
    if type(concurrency) is not int or concurrency < 1:
        raise BadInput(f"concurrency={concurrency!r}; give 1 or more.")
    if not allow_unfenced:
        check_fence()
    if isinstance(agent, str):
        agent = await load_agent(agent)
    backend = None if agent is None else backend_for(agent)
    if backend is not None:
        check_opaque(backend, allow_opaque)
    stage = _BatchRun(backend, allow_tools, allow_opaque, on_complete)
    gate, before = asyncio.Semaphore(concurrency), len(strays())
    async with watched(stage.notes.append), asyncio.TaskGroup() as group:
        tasks = [
            group.create_task(stage.play(with_user_model(case, user_model), gate))
            for case in evalset
        ]
    faults = refusals_since(before)
    return Batch([task.result() for task in tasks], (*stage.notes, *faults), tuple(faults))


class _BatchRun:
    """One batch under way."""

    def __init__(
        self,
        agent: Any,
        allow_tools: Collection[Any],
        allow_opaque: bool,
        on_complete: OnSimulated | None,
    ) -> None:
        self._agent = agent
        self._allow_tools = allow_tools
        self._allow_opaque = allow_opaque
        self._on_complete = on_complete
        self.notes: list[str] = []

    async def play(self, case: Case, gate: asyncio.Semaphore) -> Simulation:
        async with gate:
            done = await self._simulated(case)
        if self._on_complete is not None:
            try:
                self._on_complete(done)
            except Exception as error:  # noqa: BLE001 - somebody else's code, kept from the results
                self.notes.append(f"on_complete raised {error!r} after case {case.id!r}")
        return done

    async def _simulated(self, case: Case) -> Simulation:
        try:
            ledger = await simulate(
                case,
                self._agent,
                allow_tools=self._allow_tools,
                allow_unfenced=True,
                allow_opaque=self._allow_opaque,
            )
        except Exception as error:  # noqa: BLE001 - a case that cannot be played is its own outcome
            return Simulation(case_id=case.id, error=f"{type(error).__name__}: {error}")
        return simulation_of(ledger, case)
