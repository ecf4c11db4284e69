"""Estimates of runs: shown before a run begins, and then acted on once."""

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import sqrt
from statistics import fmean, pstdev
from time import monotonic

from greenroom.apps.web.children import check_model, command_line
from greenroom.apps.web.runs_page import evalset_of
from greenroom.apps.web.sets_page import SetFiles, cases_in, code_in, evalset_in
from greenroom.errors import BadInput
from greenroom.ledger.plain import Json, is_array
from greenroom.ledger.text_files import text_of
from greenroom.reports.page.shapes import Estimated
from greenroom.store import Store

_GOOD_FOR = 600.0
"""Seconds for which a run may be started from its estimate."""
_MOST_TRIALS = 1_000
_LEARNT_FROM = 5
"""How many of the latest runs of a set say what a trial costs."""
_Z90 = 1.2816


@dataclass(frozen=True, slots=True)
class Planned:
    """A command that was shown with its estimate, and may be started once."""

    argv: Sequence[str]
    queue: str
    made: float


@dataclass(slots=True)
class Plans:
    """The estimates that were shown, and whose runs are not started yet."""

    store: Store
    agents: Sequence[str]
    budget: float
    _shown: dict[str, Planned] = field(default_factory=dict[str, Planned])

    def plan(self, asked: Mapping[str, Json], sets: SetFiles) -> Estimated:
        """The estimate of a run, and the command that starts it."""
        wish = _Wish(asked, self)
        file = sets.file(wish.set_id).path
        text = text_of(file)
        known = [case.id for case in cases_in(file, text)]
        chosen = wish.cases(known)
        argv = wish.argv(chosen, str(file), len(known))
        found = self._learnt(evalset_in(file, text))
        trials = len(chosen) * wish.trials
        prices = [cost for cost in found.costs if cost is not None]
        is_priced = bool(prices) and len(prices) == len(found.costs)
        cost = fmean(prices) * trials if is_priced else None
        spread = _Z90 * pstdev(prices) * sqrt(trials) if is_priced else 0.0
        plan_id = secrets.token_urlsafe(12)
        self._shown[plan_id] = Planned(argv, wish.set_id, monotonic())
        return Estimated(
            plan=plan_id,
            command=command_line(argv),
            cases=len(chosen),
            trials=trials,
            cost=cost,
            cost_high=None if cost is None else cost + spread,
            seconds=found.seconds * trials if found.seconds else None,
            based_on=len(found.costs),
            warnings=list(_warnings(found, cost, wish.budget)),
            code=code_in(file, text),
        )

    def take(self, plan_id: str) -> Planned:
        """The command of an estimate; each estimate can be used once, and expires."""
        planned = self._shown.pop(plan_id, None)
        if planned is None:
            raise BadInput("this estimate was used already, or never given. Ask for it again.")
        if monotonic() - planned.made > _GOOD_FOR:
            raise BadInput("this estimate is older than ten minutes. Ask for it again.")
        return planned

    def _learnt(self, evalset: str) -> "_Learnt":
        """Cost and time of recent trials of this set."""
        found = _Learnt()
        runs = [run for run in self.store.runs() if run.done and evalset_of(run) == evalset]
        for run in runs[:_LEARNT_FROM]:
            found.seconds = found.seconds or run.seconds / run.done
            found.costs += [cost for _, cost in self.store.costs(run.id)]
        return found


@dataclass(slots=True)
class _Learnt:
    costs: list[float | None] = field(default_factory=list[float | None])
    seconds: float = 0.0


def _warnings(found: _Learnt, cost: float | None, budget: float) -> list[str]:
    if not found.costs:
        return ["No earlier run of this set says what it costs."]
    if cost is None:
        return ["The price of a model is unknown, so the cost is as well."]
    if cost > budget:
        return ["It will probably stop early: the budget is smaller than the estimate."]
    return []


class _Wish:
    """A request for a run, checked."""

    def __init__(self, asked: Mapping[str, Json], plans: Plans) -> None:
        agent, self.set_id = asked.get("agent"), str(asked.get("set") or "")
        if type(agent) is not int or not 0 <= agent < len(plans.agents):
            raise BadInput(f"agent {agent!r} was not given when the server was started.")
        self.agent = plans.agents[agent]
        self.trials = _number(asked, "trials", 1, _MOST_TRIALS)
        self.model = str(asked.get("model") or "")
        check_model(self.model)
        budget: object = asked.get("budget", plans.budget)
        if not isinstance(budget, int | float) or not 0 <= budget <= plans.budget:
            raise BadInput(
                f"budget {budget!r} should be from 0 to {plans.budget:g} USD, the most that this server "
                f"may spend on one action. `greenroom web --budget USD` raises it."
            )
        self.budget = float(budget)
        self.baseline = str(asked.get("baseline") or "")
        if self.baseline:
            self.baseline = plans.store.run(self.baseline).id
        given = asked.get("cases") or []
        if not is_array(given) or not all(isinstance(one, str) for one in given):
            raise BadInput("cases should be a list of ids.")
        self._cases = [str(one) for one in given]
        self._store = plans.store

    def cases(self, known: Sequence[str]) -> list[str]:
        """The ids that were asked for: all, or some."""
        missing = [one for one in self._cases if one not in known]
        if missing:
            raise BadInput(f"the set has no case {missing[0]!r}. Reload the page.")
        return self._cases or list(known)

    def argv(self, chosen: Sequence[str], file: str, total: int) -> list[str]:
        """The command."""
        listed = file if len(chosen) == total else f"{file}:{','.join(chosen)}"
        argv = ["eval", "run", self.agent, listed, "--trials", str(self.trials)]
        argv += ["--budget", f"{self.budget:g}"]
        if self.model:
            argv += ["--model", self.model]
        if self.baseline:
            argv += ["--baseline", self.baseline]
        return [*argv, "--store", self._store.address]


def _number(asked: Mapping[str, Json], name: str, usual: int, most: int) -> int:
    found = asked.get(name, usual)
    if type(found) is not int or not 1 <= found <= most:
        raise BadInput(f"{name} {found!r} should be a whole number from 1 to {most:,}.")
    return found
