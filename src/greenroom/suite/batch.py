"""Many simulated conversations at once, and the figures over all of them."""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Sequence
from typing import TYPE_CHECKING, Any

from msgspec import Struct, field

from greenroom.cases.case import Case
from greenroom.simulation.conversation import simulate
from greenroom.simulation.fence import opening_for, strays
from greenroom.simulation.outside_trials import check_apart, outside_trials
from greenroom.simulation.summary import Simulation, simulation_of
from greenroom.simulation.trial_context import check_fence
from greenroom.simulation.user.users import with_user_model
from greenroom.suite.checks.tool_names import check_tool_names
from greenroom.suite.inputs.sources import as_evalset, as_middleware, as_model_given, as_resources
from greenroom.suite.options import CONCURRENCY, Options, check
from greenroom.suite.plan import Cases, load_backend
from greenroom.suite.watch import closed, leftovers, refusals_since, watched
from greenroom.world.resources import Factories

if TYPE_CHECKING:
    from greenroom.world.middleware.stack import MiddlewareStack

OnSimulated = Callable[[Simulation], None]


class Batch(Struct, frozen=True):
    """Simulations in the order of their cases. Those that broke are counted apart."""

    simulations: Sequence[Simulation]
    notes: Sequence[str] = field(default=())
    faults: Sequence[str] = field(default=())
    """Refusals that belong to no conversation."""

    @property
    def played(self) -> Sequence[Simulation]:
        """Those that did not break."""
        return [one for one in self.simulations if one.ended not in (None, "error")]

    @property
    def errors(self) -> Sequence[Simulation]:
        """Those that broke, or could not run at all."""
        return [one for one in self.simulations if one.ended in (None, "error")]

    @property
    def completed(self) -> float | None:
        """The share of conversations that ended by themselves, not at a limit."""
        return _mean([float(one.completed) for one in self.played])

    @property
    def mean_turns(self) -> float | None:
        """How many turns a conversation took on average."""
        return _mean([float(one.turns) for one in self.played])

    @property
    def goals_achieved(self) -> float | None:
        """The share of all goals that were shown to be reached."""
        goals = sum(len(one.goals) for one in self.played)
        reached = sum(len(one.goals_achieved) for one in self.played)
        return reached / goals if goals else None


def _mean(values: Sequence[float]) -> float | None:
    return sum(values) / len(values) if values else None


async def simulate_all(
    agent: Any,
    cases: Cases,
    *,
    user_model: object = None,
    concurrency: int = CONCURRENCY,
    allow_tools: Collection[object] = (),
    allow_unfenced: bool = False,
    allow_opaque: bool = False,
    resources: Factories | str | None = None,
    middleware: Collection[object] = (),
    on_complete: OnSimulated | None = None,
) -> Batch:
    """Simulate every case, at most `concurrency` at once, without measuring anything.

    `user_model` speaks for the simulated users who have no model of their own. `on_complete` is called
    with each conversation as it ends. `allow_opaque` accepts an agent whose tools run where no gate
    can see them. `resources` maps names to functions that open what real tools need; `middleware` wraps
    the agent's model and tool calls.
    """
    options: Options = {
        "concurrency": concurrency,
        "allow_tools": allow_tools,
        "resources": resources or {},
        "middleware": middleware,
        "allow_unfenced": allow_unfenced,
        "allow_opaque": allow_opaque,
    }
    check(options)
    if not allow_unfenced:
        check_fence()
    with outside_trials() as scope:
        try:
            with opening_for(processes=True):  # as a program may before it begins
                evalset = as_evalset(cases)
                factories, stack = as_resources(resources or {}), as_middleware(middleware)
            backend = await load_backend(agent, allow_opaque)
        finally:
            check_apart(scope, "before the first trial")
        approved = () if stack is None else stack.approved
        notes = check_tool_names(backend, evalset, allow_tools, approved)
        given = [with_user_model(case, user_model) for case in evalset]

        async def simulated(case: Case) -> Simulation:
            try:
                ledger = await simulate(
                    case,
                    backend,
                    allow_tools=allow_tools,
                    allow_unfenced=True,
                    allow_opaque=allow_opaque,
                    resources=factories,
                    middleware=stack or (),
                    model=as_model_given(case.model),
                )
            except Exception as error:  # noqa: BLE001 - a case that cannot run is its own outcome
                return Simulation(case_id=case.id, error=f"{type(error).__name__}: {error}")
            return simulation_of(ledger, case)

        return await _batch(given, simulated, concurrency, stack, on_complete, notes)


async def _batch(
    cases: Sequence[Case],
    simulated: Callable[[Case], Awaitable[Simulation]],
    concurrency: int,
    stack: "MiddlewareStack | None",
    on_complete: OnSimulated | None,
    notes: list[str],
) -> Batch:
    slots, known_strays = asyncio.Semaphore(concurrency), len(strays())

    async def run(case: Case) -> Simulation:
        async with slots:
            done = await simulated(case)
        if on_complete is not None:
            try:
                with opening_for(processes=True):
                    on_complete(done)
            except Exception as error:  # noqa: BLE001 - the caller's code, kept from the results
                notes.append(f"on_complete raised {error!r} after case {case.id!r}")
        return done

    async with watched(notes.append), asyncio.TaskGroup() as group:
        tasks = [group.create_task(run(case)) for case in cases]
    if stack is not None:
        notes += await closed(stack)
    faults = refusals_since(known_strays)
    notes += leftovers()
    return Batch([task.result() for task in tasks], (*notes, *faults), tuple(faults))
