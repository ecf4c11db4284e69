"""What one trial of a case asks of models: as earlier trials have shown, else the certain minimum."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from msgspec import Struct, structs

from greenroom.agents.agent import Agent
from greenroom.agents.costs import Traffic, estimate
from greenroom.agents.costs.money import Amount
from greenroom.agents.costs.visits import least_calls
from greenroom.agents.flow import Flow
from greenroom.agents.graph import compile_flow
from greenroom.backends.backend import Backend
from greenroom.backends.native import NativeBackend
from greenroom.backends.registry import backend_for
from greenroom.cases.case import Case
from greenroom.cases.mocks import simulated_in
from greenroom.cases.users import Lines, SimulatedUser, UserAgents
from greenroom.metrics.judges.bench import Bench
from greenroom.metrics.scores import metrics_for
from greenroom.models.choice import Choice
from greenroom.models.model import Model, model_name
from greenroom.models.named import as_model
from greenroom.models.prices import price_of
from greenroom.results.report import Report
from greenroom.results.result import CaseResult
from greenroom.results.text import Spent, spending
from greenroom.store.runs import Run
from greenroom.suite.plan import Prepared

Role = Literal["agent", "user", "judge"]
ROLES: tuple[Role, ...] = ("agent", "user", "judge")
_WHOSE: Mapping[Role, str] = {"agent": "the agent", "user": "the users", "judge": "the judges"}


class Need(Struct, frozen=True, kw_only=True):
    """Calls, tokens and dollars; None is unknown. With `is_least` there may be more calls."""

    calls: float = 0.0
    is_least: bool = False
    tokens_in: float | None = 0.0
    tokens_out: float | None = 0.0
    cost: Amount = Amount()

    def times(self, count: int) -> "Need":
        """The need of `count` such trials."""
        return Need(
            calls=self.calls * count,
            is_least=self.is_least,
            tokens_in=None if self.tokens_in is None else self.tokens_in * count,
            tokens_out=None if self.tokens_out is None else self.tokens_out * count,
            cost=Amount(self.cost.at_least * count, self.cost.unknown),
        )

    def cells(self) -> list[str]:
        """A line of a table."""
        calls = f"at least {self.calls:,.0f}" if self.calls else "unknown"
        tokens = (self.tokens_in, self.tokens_out)
        return [
            calls if self.is_least else f"{self.calls:,.0f}",
            *("unknown" if number is None else f"{number:,.0f}" for number in tokens),
            str(self.cost),
        ]

    def data(self) -> dict[str, Any]:
        """As JSON."""
        return {
            "calls": None if self.is_least else self.calls,
            "calls_at_least": self.calls,
            "tokens_in": self.tokens_in,
            "tokens_out": self.tokens_out,
            **self.cost.data(),
        }


# As earlier trials have shown


@dataclass(frozen=True, slots=True)
class Earlier:
    """Trials of earlier runs, from which the needs of others are estimated."""

    results: Sequence[CaseResult]
    names: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    @classmethod
    def of(cls, given: Sequence[Report], ready: Prepared) -> "Earlier":
        """The trials of the given reports, or of the latest run in the store that is like this one."""
        reports, notes = list(given), list[str]()
        if not reports and (like := _latest_like(ready)) is not None:
            store, run = like
            reports = [store.report(run.id)]
            if run.plan.digest != ready.plan.digest:
                notes.append(
                    f"run {run.id} is of another agent, or of this one before it was changed"
                )
        ran = [result for report in reports for result in report if result.ended is not None]
        names = [report.id or report.name for report in reports] if ran else []
        return cls(ran, tuple(names), tuple(notes))

    def of_case(self, case: Case) -> Sequence[CaseResult]:
        """The trials of this case; of all cases if there are none."""
        return [result for result in self.results if result.case_id == case.id] or self.results


def _latest_like(ready: Prepared) -> "tuple[Any, Run] | None":
    """The latest recorded run of the same agent on the same set, else of either, and its store."""
    if ready.options["store"] is False:
        return None
    from greenroom.store.store import as_store  # SQLite is loaded only where it is used

    store, plan = as_store(ready.options["store"]), ready.plan
    runs = [] if store is None else [run for run in store.runs() if run.done]
    named = plan.name, plan.evalset_id
    same_set = [run for run in runs if (run.plan.name, run.plan.evalset_id) == named]
    for among, same in ((same_set, "digest"), (same_set, "agent"), (runs, "digest")):
        wanted = getattr(plan, same)
        found = next((run for run in among if wanted and getattr(run.plan, same) == wanted), None)
        if found is not None:
            return store, found
    return (store, same_set[0]) if same_set else None


def _as_seen(results: Sequence[CaseResult], role: Role, *, cached: bool) -> Need:
    """What one role needed in a trial, on average. Without a cache every answer is paid for again."""
    spent = [_spent(result, role) for result in results]
    calls = sum(sum(one.models.values()) for one in spent)
    kept = sum(n for one in spent for name, n in one.models.items() if name.endswith(" (cached)"))
    # Answers from a cache cost nothing then; now they cost what the others cost.
    paid, scale = calls - kept, 1 / len(results)
    if kept and not cached:
        scale *= calls / paid if paid else 0.0
    usages = [one.usage for one in spent]
    is_known = None not in usages and not (kept and not cached and not paid)
    unpriced = any(one.cost is None for one in spent) or (kept and not cached and not paid)
    return Need(
        calls=calls / len(results),
        tokens_in=scale * sum(one.input for one in usages if one) if is_known else None,
        tokens_out=scale * sum(one.output for one in usages if one) if is_known else None,
        cost=Amount(
            scale * sum(one.cost or 0.0 for one in spent),
            (f"the prices of {_WHOSE[role]}",) if unpriced else (),
        ),
    )


def _spent(result: CaseResult, role: Role) -> Spent:
    found = next((one for one in spending(result) if one.role == role), None)
    if found is not None:
        return found
    # It asked no model: its result says whether that is nothing or unknown.
    prefix = "" if role == "agent" else f"{role}_"
    return Spent(role, "", {}, getattr(result, f"{prefix}usage"), getattr(result, f"{prefix}cost"))


# As far as it is certain


def needs_of(case: Case, ready: Prepared, earlier: Earlier) -> dict[Role, Need]:
    """The need of a trial of this case, by role."""
    metrics = metrics_for(case, ready.settings.measuring.metrics).values()
    backend = ready.backend if case.agent is None else backend_for(case.agent)
    found: dict[Role, Need] = {}
    if not earlier.results:
        judges = [bench for metric in metrics for bench in _benches(metric)]
        votes = sum(1 if bench.early_stop else bench.samples for bench in judges)
        found["agent"] = _least_of_agent(case, backend)
        found["user"] = _least_of(_simulating(case), "user", 0)
        found["judge"] = _least_of([bench.model for bench in judges], "judge", votes)
        return found
    results, cached = earlier.of_case(case), ready.settings.measuring.cache is not None
    for role in ROLES:
        found[role] = _as_seen(results, role, cached=cached)
    flow = _flow_of(case, backend)
    if flow is not None and not _has_answered(flow, results):
        found["agent"] = _priced_anew(flow, results, found["agent"])
    return found


def _flow_of(case: Case, backend: Backend | None) -> Flow | None:
    """The flow that runs in a case; None if the agent is another framework's."""
    if not isinstance(backend, NativeBackend):
        return None
    graph = backend.graph
    return graph.part(case.target) if case.target else graph.root.flow


def _least_of_agent(case: Case, backend: Backend | None) -> Need:
    flow = _flow_of(case, backend)
    if flow is None:
        cost = Amount(unknown=(f"what {_WHOSE['agent']} asks models",))
        return Need(is_least=True, tokens_in=None, tokens_out=None, cost=cost)
    least = least_calls(compile_flow(flow).root) * max(1, len(case.script))
    return _least_of(list(_models_in(flow)), "agent", least)


def _least_of(models: Sequence[Model], role: Role, calls: int) -> Need:
    """The least that these models will be asked."""
    if not models:
        return Need()
    prices = {model_name(model): price_of(model) for model in models}
    if all(price is not None and not price.input + price.output for price in prices.values()):
        return Need(calls=calls, is_least=True, tokens_in=None, tokens_out=None)
    unpriced = [f"the price of {name}" for name, price in prices.items() if price is None]
    cost = Amount(unknown=(f"the tokens of {_WHOSE[role]}", *unpriced))
    return Need(calls=calls, is_least=True, tokens_in=None, tokens_out=None, cost=cost)


def _simulating(case: Case) -> list[Model]:
    """The models that speak for the user of a case, and those that answer for its tools."""
    tools = [as_model(world.model) for world in simulated_in(case.mocks.values())]
    return [*_models_of(case.user), *tools]


def _models_of(user: object) -> Iterator[Model]:
    """The models that speak for a user."""
    match user:
        case Lines():
            yield from _models_of(user.last)
        case UserAgents():
            for role in user.roles:
                yield from _models_of(role)
        case SimulatedUser(model=model) if model is not None:
            yield as_model(model)
        case Flow():
            yield from _models_in(user)
        case _:
            return


def _models_in(flow: Flow) -> Iterator[Model]:
    for node in compile_flow(flow).nodes():
        if isinstance(node.flow, Agent):
            model: Any = node.flow.model
            yield model


def _benches(metric: object) -> Iterable[Bench]:
    """The judges behind a metric."""
    judges: Sequence[object] = getattr(metric, "judges", ())
    found = [getattr(one, "bench", None) for one in (metric, *judges)]
    return [bench for bench in found if isinstance(bench, Bench)]


# Another model than in the earlier trials


def _has_answered(flow: Flow, results: Sequence[CaseResult]) -> bool:
    """Whether the agent's models are those that answered then; providers add to their names."""
    names: list[str] = []
    for model in _models_in(flow):
        choices = model.candidates if isinstance(model, Choice) else ()
        names += [each.name for each in choices] or [model_name(model)]
    answered = {name for result in results for name in result.models}
    return all(name.startswith(tuple(names)) for name in answered)


def _priced_anew(flow: Flow, results: Sequence[CaseResult], then: Need) -> Need:
    """The agent's needs with the calls and tokens of the earlier trials, and the prices of its models now."""
    ledgers = [ledger for result in results if (ledger := result.ledger_or_none) is not None]
    if not ledgers:
        return structs.replace(then, cost=Amount(unknown=("the prices of the agent",)))
    found = estimate(flow, Traffic.seen(ledgers))
    return Need(
        calls=found.calls,
        tokens_in=found.tokens_in,
        tokens_out=found.tokens_out,
        cost=found.cost,
    )
