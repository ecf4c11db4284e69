"""What was asked for on the command line, and which cases that means."""

import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from greenroom.apps.cli.exits import loading
from greenroom.apps.cli.report_files import Say
from greenroom.apps.cli.report_output import Showing
from greenroom.cases import Case, EvalSet
from greenroom.errors import BadInput
from greenroom.results import Report
from greenroom.results.comparison import THRESHOLD, Comparison, compare
from greenroom.results.gate import FailOn, Gate
from greenroom.results.text import number_of
from greenroom.store import Store
from greenroom.store.store import as_store
from greenroom.suite.budget import Budget, UnknownPrices
from greenroom.suite.imports import is_import_allowed
from greenroom.suite.references import load_module, split_reference
from greenroom.suite.sources import CaseSource, gather, gather_beside, load_mocks, load_model
from greenroom.suite.workers import Workers
from greenroom.world.answers import AnswerCache


@dataclass(frozen=True, slots=True, kw_only=True)
class Order(Showing):
    """An evaluation as it was asked for."""

    agent: str
    cases: str = ""
    variants: Sequence[str] = ()
    config: str = ""
    filters: Sequence[str] = ()
    limit: int | None = None
    sample: int | None = None
    seed: int = 0
    model: str = ""
    trials: int | Literal["auto"] | None = None
    concurrency: int | None = None
    """How many trials are under way at once, if anybody said."""
    workers: int | None = None
    fail_fast: bool = False
    mocks: str = ""
    allow_tools: Sequence[str] = ()
    min_pass_rate: float | None = None
    """None: all of them, or as many as in the baseline."""
    confident: bool = False
    max_errors: int = 0
    fail_on: Sequence[FailOn] = ()
    baselines: Sequence[str] = ()
    confirm: int | None = None
    """How often suspects are played again at most; 0 for not at all, None for as often as is usual."""
    threshold: float = THRESHOLD
    gate_tags: Sequence[str] = ()
    budget: float | None = None
    unknown_prices: UnknownPrices | None = None
    store: str = ""
    no_store: bool = False
    resume: str | None = None
    """The run to go on with; empty for the latest, None for a new one."""
    accept_changes: bool = False
    retry_errors: bool = False
    save_failures: str = ""
    allow_opaque: bool = False
    suggest_mocks: bool = False
    no_cache: bool = False
    first: Sequence[str] = ()
    """The cases to be played before all others."""
    leave_report: str = ""
    """Where a program that started this one looks for the report."""

    @property
    def agents(self) -> list[str]:
        """The agent, and the variants to be seen beside it."""
        return list(dict.fromkeys((self.agent, *self.variants)))

    @property
    def keeps_ledgers(self) -> bool:
        """Whether anybody will look at what was said."""
        return not self.quiet or bool(self.formats or self.output)

    def settings(self) -> dict[str, Any]:
        """What `evaluate` is told, but for agent and cases."""
        with loading(self.mocks, self.verbose):
            mocks: Mapping[str, Any] = load_mocks(self.mocks) if self.mocks else {}
        return {
            "trials": self.trials,
            "min_pass_rate": self.minimum,
            "config": self.config or None,
            "mocks": mocks,
            "allow_tools": self.allow_tools,
            **({"concurrency": self.concurrency} if self.concurrency else {}),
            "fail_fast": self.fail_fast,
            "keep_ledgers": self.keeps_ledgers,
            "allow_opaque": self.allow_opaque,
            # What a judge has answered once is not paid for twice.
            "cache": None if self.no_cache else AnswerCache(),
            # Only a store that was asked for must be there.
            "store": False if self.no_store else self.store or None,
            "resume": False if self.resume is None else self.resume or True,
            "accept_changes": self.accept_changes,
            "retry_errors": self.retry_errors,
        }

    def money(self, earlier: Iterable[Report]) -> Budget | None:
        """What may be spent, less what other agents of this order have taken."""
        if self.budget is None:
            return None
        budget = Budget(self.budget, self.unknown_prices or "refuse")
        paid = (result for report in earlier for result in (*report.results, *report.confirmed))
        for number, result in enumerate(paid):
            budget.settle(-1 - number, result)
        return budget

    @property
    def gate(self) -> Gate:
        """What the report must reach."""
        return Gate(
            min_pass_rate=self.min_pass_rate,
            confident=self.confident,
            fail_on=("regression", *self.fail_on),
            max_errors=self.max_errors,
            threshold=self.threshold,
            tags=self.gate_tags,
        )

    @property
    def minimum(self) -> float:
        """The pass rate that is asked for where nothing else is."""
        return 1.0 if self.min_pass_rate is None else self.min_pass_rate

    def compared(self, baseline: Report, report: Report) -> Comparison:
        """A report beside the baseline, by what this order counts as worse."""
        return compare(baseline, report, self.threshold, tags=self.gate_tags)

    @property
    def keeping(self) -> Store | None:
        """Where the run is written down, if anywhere."""
        return None if self.no_store else as_store(self.store)

    def played_by(self) -> Any:
        """The model that plays the agent in place of its own, or None."""
        with loading(self.model, self.verbose):
            return load_model(self.model) if self.model else None

    def hands(self, agent: str) -> Workers | None:
        """The processes that play this agent, and where they find it and its cases."""
        if self.workers is None:
            return None
        return Workers(
            count=self.workers,
            agent=agent,
            model=self.model,
            cases=self.cases,
            beside="" if self.cases else self.agent,
            configs=not self.config,
            mocks=self.mocks,
        )

    def same_words(self, agent: str, *cases: str) -> list[str]:
        """The command that plays other cases in the same way."""
        named = {"--config": self.config, "--model": self.model, "--mocks": self.mocks}
        many = {"--allow-tool": self.allow_tools}
        return ["greenroom", "eval", "run", agent, *cases, *_options(named, many)]

    def words(self, agent: str = "") -> list[str]:
        """All of it as one would type it after `eval run`, but for where reports go."""
        named = {
            "--limit": self.limit,
            "--sample": self.sample,
            "--seed": self.seed,
            "--trials": self.trials,
            "--max-concurrency": self.concurrency,
            "--workers": self.workers,
        }
        flags = {
            "--fail-fast": self.fail_fast,
            "--allow-opaque": self.allow_opaque,
            "--allow-import-network": is_import_allowed(),
            "--no-cache": self.no_cache,
            "--verbose": self.verbose,
        }
        _, _, _, *same = self.same_words(agent or self.agent, *([self.cases] if self.cases else []))
        shown = [flag for flag, is_set in flags.items() if is_set]
        return [*same, *_options(named, {"--filter": self.filters}), *shown]

    def resumed_by(self, agent: str, run_id: str = "", budget: str = "") -> str:
        """The command that goes on with a run of this order, or with its latest one.

        `budget` is said in place of the one that was given.
        """
        given = "" if self.budget is None else f"{self.budget:.12g}"
        named = {
            "--min-pass-rate": _number(self.min_pass_rate),
            "--max-errors": self.max_errors,
            "--confirm": "off" if self.confirm == 0 else self.confirm,
            "--threshold": None if self.threshold == THRESHOLD else _number(self.threshold),
            "--budget": budget or given,
            "--unknown-prices": self.unknown_prices,
            "--output": self.output,
            "--save-failures": self.save_failures,
            "--store": self.store,
        }
        many = {"--fail-on": self.fail_on, "--format": self.formats}
        many |= {"--baseline": self.baselines, "--gate-tag": self.gate_tags}
        flags = ["--confident"] if self.confident else []
        resumed = ["--resume", run_id] if run_id else ["--resume"]
        words = [*self.words(agent), *_options(named, many), *flags, *resumed]
        return shlex.join(["greenroom", "eval", "run", *words])


def _number(value: float | None) -> str | None:
    """A number as one would type it."""
    return None if value is None else f"{value:.12g}"


def _options(named: Mapping[str, str | int | None], many: Mapping[str, Sequence[str]]) -> list[str]:
    words = [word for name, value in named.items() if value for word in (name, str(value))]
    return [
        *words,
        *(word for name, each in many.items() for value in each for word in (name, value)),
    ]


@dataclass(frozen=True, slots=True)
class Chosen:
    """The cases to be played, and where they are from."""

    evalset: EvalSet
    gathered: CaseSource = field(repr=False)

    def __len__(self) -> int:
        return len(self.evalset)

    def rerun_commands(self, order: Order, agent: str) -> dict[str, str]:
        """How to play each case alone."""
        names = self._names()
        return {
            case.id: shlex.join(self._alone(case, order, agent, names)) for case in self.evalset
        }

    def _alone(self, case: Case, order: Order, agent: str, names: Mapping[int, str]) -> list[str]:
        if id(case) in names:
            return order.same_words(agent, names[id(case)])
        reference, known = self.gathered.origins[case.id]
        # Without a word about cases, those of the agent's own file are meant.
        named = [] if not order.cases and reference == agent else [reference]
        return order.same_words(agent, *named, "--filter", f"id:{known}")

    def _names(self) -> dict[int, str]:
        """How cases are called that have a name in their module."""
        found: dict[int, str] = {}
        for source in self.gathered.sources:
            file, _ = split_reference(source.reference)
            if source.is_data:
                continue
            try:
                named = list(vars(load_module(file)).items())
            except BadInput:
                continue
            found |= {id(v): f"{file}:{name}" for name, v in named if isinstance(v, Case)}
        return found


def chosen(order: Order, say: Say) -> Chosen:
    """The cases that an order means; `say` hears what they were taken for and what was left out."""
    with loading(order.cases or order.agent, order.verbose):
        configs = not order.config
        found = (
            gather(order.cases, configs=configs)
            if order.cases
            else gather_beside(order.agent, configs=configs)
        )
    for line in _told(found):
        say(line)
    evalset = _first(_fewer(found.evalset, order, say), order.first)
    return Chosen(evalset, found)


def _told(found: CaseSource) -> list[str]:
    lines = [f"{name}: no eval set, passed by" for name in found.passed_by]
    for source in found.sources:
        if source.is_data:
            count = number_of(len(source.evalset), "case")
            judged = f", judged by {source.config} too" if source.config else ""
            shape = source.evalset.shape
            lines.append(f"{source.reference}: {count}, taken for the shape {shape}{judged}")
    return lines


def _fewer(evalset: EvalSet, order: Order, say: Say) -> EvalSet:
    total = len(evalset)
    if order.filters:
        evalset = evalset.filter(*order.filters)
        say(f"filtered to {len(evalset)}/{total}")
    if order.sample is not None:
        evalset = evalset.sample(order.sample, seed=order.seed)
        say(f"sampled {len(evalset)}/{total} with seed {order.seed}")
    if order.limit is not None:
        evalset = evalset.limit(order.limit)
        say(f"limited to {len(evalset)}/{total}")
    return evalset


def _first(evalset: EvalSet, ids: Sequence[str]) -> EvalSet:
    """The set with these cases before all others."""
    if not ids:
        return evalset
    return replace(evalset, cases=sorted(evalset, key=lambda case: case.id not in ids))
