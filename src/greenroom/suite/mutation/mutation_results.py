"""The results of mutants: which were killed by which cases, and the cases that notice nothing."""

from collections.abc import Mapping, Sequence
from math import fsum
from typing import Any, Literal

from msgspec import Struct, field, structs

from greenroom.agents.costs.tables import aligned
from greenroom.errors import ScriptExhausted
from greenroom.ledger.events import ModelFailed
from greenroom.ledger.money import money
from greenroom.ledger.safe_text import on_one_line
from greenroom.results.report import Report
from greenroom.results.result import CaseResult
from greenroom.results.words import listed, number_of
from greenroom.suite.mutation.mutants import Mutant

End = Literal["killed", "survived", "not played", "unfinished"]
"""`not played`: the agent cannot be changed in that way; `unfinished`: it was interrupted, and could run later."""
_COLUMNS = 3


class MutationEstimate(Struct, frozen=True):
    """How many trials the mutants will need and what they will cost, estimated from the agent's own run."""

    mutants: int
    trials: int
    usd: float | None
    """What they will cost; None if a price is unknown."""

    @classmethod
    def of(cls, mutants: Sequence[Mutant], real: Report) -> "MutationEstimate":
        """Every trial once for each mutant: users and judges cost what they did, models only where they are asked."""
        due = [one for one in mutants if one.cases and not one.cannot and not one.missed]
        costs: list[float | None] = []
        for mutant in due:
            ids = {case.id for case in mutant.cases}
            for result in real.results:
                if result.case_id in ids:
                    prices = result.prices if mutant.asks else result.prices[1:]
                    costs.append(None if None in prices else fsum(price or 0.0 for price in prices))
        known = [cost for cost in costs if cost is not None]
        usd = fsum(known) if len(known) == len(costs) else None
        return cls(len(due), len(costs), usd)

    def __str__(self) -> str:
        cost = "at an unknown price" if self.usd is None else f"about ${money(self.usd, 4)}"
        cost = "at no cost" if self.usd == 0 else cost
        return f"{number_of(self.mutants, 'mutant')}, {number_of(self.trials, 'trial')}, {cost}"


class MutantResult(Struct, frozen=True, kw_only=True):
    """The result of one mutant."""

    name: str
    about: str
    """In what way it is worse."""
    end: End = "not played"
    killed_by: tuple[str, ...] = ()
    """The cases that the agent passes and this mutant fails, by a measurement."""
    passed: tuple[str, ...] = ()
    """The cases that this mutant passes."""
    metrics: tuple[str, ...] = ()
    """The metrics that noticed it."""
    unmeasured: tuple[str, ...] = ()
    """The cases that broke or were left out, and so show nothing about it."""
    why: str = ""
    """Why it was not run, or survived without being run."""
    run: str = ""
    """The id of its run."""
    spent: float | None = 0.0
    does_nothing: bool = False

    def concluded(self, end: End, why: str) -> "MutantResult":
        """This result with an end that needed no run."""
        return structs.replace(self, end=end, why=why)

    def judged(
        self, by_case: Mapping[str, Sequence[CaseResult]], passing: frozenset[str], report: Report
    ) -> "MutantResult":
        """This result with the end that the mutant's run has shown."""
        measured = {
            case_id: [result for result in results if is_measured(result)]
            for case_id, results in by_case.items()
        }
        killers = [
            case_id
            for case_id, results in measured.items()
            if results and case_id in passing and not any(result.passed for result in results)
        ]
        metrics = {
            name: None
            for case_id in killers
            for result in measured[case_id]
            for name, score in result.measured.items()
            if not score.passed
        }
        is_played = any(results for case_id, results in measured.items() if case_id in passing)
        is_cut = any(map(_was_cut, (one for c in passing for one in by_case.get(c, ()))))
        problems = [] if passing else ["the agent passes no case"]
        problems += [result.error.headline for result in report.errors if result.error is not None]
        problems += [note for result in report.results for note in result.notes]
        why = problems[0] if problems else "none of its trials has a verdict"
        return structs.replace(
            self,
            end=_end(bool(killers), is_played, is_cut),
            why="" if killers or (is_played and not is_cut) else on_one_line(why),
            killed_by=tuple(killers),
            passed=tuple(c for c, found in measured.items() if any(one.passed for one in found)),
            metrics=tuple(metrics),
            unmeasured=tuple(case_id for case_id, found in measured.items() if not found),
            run=report.id,
            spent=report.spent,
        )


def _end(is_killed: bool, is_played: bool, is_cut: bool) -> End:
    if is_killed:
        return "killed"
    # What was left out might have noticed it.
    return "unfinished" if is_cut else "survived" if is_played else "not played"


def _was_cut(result: CaseResult) -> bool:
    """Whether a trial was left out, or broke because a model could not be asked."""
    if result.status == "skipped":
        return True
    if result.error is None or result.error.type == ScriptExhausted.__name__:
        return False
    ledger = result.ledger_or_none
    return ledger is not None and bool(ledger.of(ModelFailed))


def is_measured(result: CaseResult) -> bool:
    """Whether a trial has a verdict that rests on a measurement, or on the user's last turn.

    A trial that timed out says more about the machine than about the agent.
    """
    if result.status == "terminated":
        return result.error is None and result.ended == "max_turns"
    return result.status in ("passed", "failed")


class MutationScore(Struct, frozen=True, kw_only=True):
    """How well an eval set distinguishes an agent from worse ones. `str(score)` is a table."""

    evalset: str
    mutants: tuple[MutantResult, ...]
    trivial: Mapping[str, tuple[str, ...]]
    """Cases that a mutant which does nothing passes, with the names of those mutants."""
    impossible: tuple[str, ...] = ()
    """Cases that the agent never passed in its own run: perhaps no agent can."""
    unsteady: tuple[str, ...] = ()
    """Cases that the agent passes only in some trials; they kill no mutant."""
    broken: Mapping[str, str] = field(default_factory=dict[str, str])
    """Cases without a verdict on the agent itself, and what broke."""
    idle: tuple[str, ...] = ()
    """Cases that the agent passes and that kill no mutant."""
    idle_metrics: tuple[str, ...] = ()
    """Metrics that measured the agent, and that no mutant failed."""
    notes: tuple[str, ...] = ()
    run: str = ""
    """The id of the agent's own run."""

    @classmethod
    def of(
        cls, evalset: str, real: Report, mutants: Sequence[MutantResult], notes: Sequence[str]
    ) -> "MutationScore":
        """The score of all mutants, compared with the agent's own run."""
        trials: dict[str, list[CaseResult]] = {}
        for result in real.results:
            trials.setdefault(result.case_id, []).append(result)
        steady = [c for c, found in trials.items() if all(one.passed for one in found)]
        broken: dict[str, str] = {}
        for case_id, found in trials.items():
            if not any(is_measured(one) for one in found):
                error = next((one.error for one in found if one.error is not None), None)
                broken[case_id] = error.headline if error else found[0].status
        never = [c for c, found in trials.items() if not any(one.passed for one in found)]
        trivial = {
            case_id: tuple(
                one.name for one in mutants if one.does_nothing and case_id in one.passed
            )
            for case_id in trials
        }
        killers = {case_id for one in mutants for case_id in one.killed_by}
        fooled = {case_id for one in mutants for case_id in one.passed}
        noticed = {name for one in mutants for name in one.metrics}
        measuring = {name: None for c in steady for one in trials[c] for name in one.measured}
        return cls(
            evalset=evalset,
            mutants=tuple(mutants),
            trivial={case_id: names for case_id, names in trivial.items() if names},
            impossible=tuple(case_id for case_id in never if case_id not in broken),
            unsteady=tuple(c for c in trials if c not in {*steady, *never}),
            broken=broken,
            idle=tuple(case_id for case_id in steady if case_id in fooled - killers),
            idle_metrics=tuple(name for name in measuring if fooled and name not in noticed),
            notes=tuple(notes),
            run=real.id,
        )

    @property
    def killed(self) -> tuple[MutantResult, ...]:
        """The mutants that at least one case noticed."""
        return tuple(one for one in self.mutants if one.end == "killed")

    @property
    def survived(self) -> tuple[MutantResult, ...]:
        """The mutants that no case noticed."""
        return tuple(one for one in self.mutants if one.end == "survived")

    @property
    def unfinished(self) -> tuple[MutantResult, ...]:
        """The mutants without a verdict, because of a budget, a signal or a model that could not be asked."""
        return tuple(one for one in self.mutants if one.end == "unfinished")

    @property
    def played(self) -> int:
        """How many mutants count."""
        return len(self.killed) + len(self.survived)

    @property
    def score(self) -> float | None:
        """The share of killed mutants among those that count; None if there are none."""
        return len(self.killed) / self.played if self.played else None

    def data(self) -> dict[str, Any]:
        """All of it as JSON."""
        return {
            "evalset": self.evalset,
            "run": self.run,
            "score": self.score,
            "killed": len(self.killed),
            "played": self.played,
            "mutants": [structs.asdict(one) for one in self.mutants],
            "trivial": {case_id: list(names) for case_id, names in self.trivial.items()},
            "impossible": list(self.impossible),
            "unsteady": list(self.unsteady),
            "broken": dict(self.broken),
            "idle": list(self.idle),
            "idle_metrics": list(self.idle_metrics),
            "notes": list(self.notes),
        }

    def __str__(self) -> str:
        rows = [["mutant", "", "killed by"]]
        rows += [[one.name, one.end, one.why or listed(one.killed_by)] for one in self.mutants]
        lines = aligned(rows, _COLUMNS)
        lines += [f"survived: {one.name} ({on_one_line(one.about)})" for one in self.survived]
        lines += self._cases()
        if self.idle_metrics:
            lines.append(f"metrics that no mutant fails: {listed(self.idle_metrics)}")
        lines += [f"note: {note}" for note in self.notes]
        return "\n".join([*lines, self.summary])

    def _cases(self) -> list[str]:
        lines = [
            f"trivial: {case_id} (passed by an agent that does nothing: {', '.join(names)})"
            for case_id, names in self.trivial.items()
        ]
        lines += [
            f"impossible: {case_id} (only suspected: the agent itself never passes it)"
            for case_id in self.impossible
        ]
        for why in dict.fromkeys(self.broken.values()):
            cases = [case_id for case_id, other in self.broken.items() if other == why]
            lines.append(f"broken: {listed(cases)} ({on_one_line(why)})")
        if self.unsteady:
            lines.append(f"passed only in some trials: {listed(self.unsteady)}")
        if self.idle:
            lines.append(f"kill no mutant: {listed(self.idle)}")
        return lines

    @property
    def summary(self) -> str:
        """The score with its counts, in one line."""
        cut = len(self.unfinished)
        left = len(self.mutants) - self.played - cut
        apart = f"; {left} could not be run" if left else ""
        apart += f"; {cut} unfinished" if cut else ""
        if self.score is None:
            return f"no mutation score: no mutant has a verdict{apart}"
        share = f"{len(self.killed)} of {number_of(self.played, 'mutant')} killed"
        return f"mutation score {self.score:.2f}: {share}{apart}"
