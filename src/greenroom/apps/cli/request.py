"""The evaluation that the command line asks for, and the cases it selects."""

import hashlib
import shlex
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, fields, replace
from glob import escape
from pathlib import Path
from typing import Any, Literal, Self

import click

from greenroom.apps.cli.eval_commands import eval_run
from greenroom.apps.cli.report_output import Say, Showing
from greenroom.cases import Case, EvalSet
from greenroom.cases.files.load import lines_of_cases, read_evalset
from greenroom.errors import BadInput
from greenroom.results import Report
from greenroom.results.comparisons.comparison import THRESHOLD, Comparison, compare
from greenroom.results.gate import FailOn, Gate
from greenroom.results.report import CasePlace
from greenroom.results.words import number_of
from greenroom.store import Store
from greenroom.store.store import as_store
from greenroom.suite.budget import Budget, UnknownPrices
from greenroom.suite.inputs.import_rules import is_import_allowed
from greenroom.suite.inputs.references import load_module, split_reference
from greenroom.suite.inputs.sources import (
    CaseSource,
    check_not_empty,
    gather,
    gather_beside,
    load_mocks,
)
from greenroom.suite.options import OPTIONS
from greenroom.suite.workers import Workers
from greenroom.world.answers import AnswerCache


@dataclass(frozen=True, slots=True, kw_only=True)
class Order(Showing):
    """An evaluation as it was asked for."""

    agent: str
    cases: str = ""
    variants: Sequence[str] = ()
    filters: Sequence[str] = ()
    limit: int | None = None
    sample: int | None = None
    shard: str | None = None
    """Which part of how many; parts are as equal as possible, and no case is in two of them."""
    seed: int = 0
    confident: bool = False
    max_errors: int = 0
    fail_on: Sequence[FailOn] = ()
    baselines: Sequence[str] = ()
    threshold: float = THRESHOLD
    gate_tags: Sequence[str] = ()
    no_store: bool = False
    save_failures: str = ""
    suggest_mocks: bool = False
    dry_run: bool = False
    learnt: Sequence[str] = ()
    """The runs that a dry run learns from; none for the latest one like it."""
    no_cache: bool = False
    first: Sequence[str] = ()
    """The cases to run before all others."""
    leave_report: str = ""
    """Where a program that started this one looks for the report."""

    # Options of `evaluate` that the command line uses too
    config: str = ""
    mocks: str = ""
    model: str = ""
    trials: int | Literal["auto"] | None = None
    min_pass_rate: float | None = None
    """None: all of them, or as many as in the baseline."""
    confirm: int | None = None
    workers: int | None = None
    concurrency: int | None = None
    budget: float | None = None
    unknown_prices: UnknownPrices | None = None
    store: str = ""
    resume: str | None = None
    """The run to resume; empty for the latest, None for a new one."""

    passed_on: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """The other options of `evaluate`, by name."""
    typed: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """All that the command was given, as printed commands repeat it."""

    @classmethod
    def of(cls, typed: Mapping[str, object]) -> Self:
        """The order that the parameters of `eval run` or `eval watch` describe."""
        own = {one.name for one in fields(cls)}
        others = {name: value for name, value in typed.items() if name not in own}
        passed_on = {name: value for name, value in others.items() if value not in (None, "")}
        known: Any = {name: value for name, value in typed.items() if name in own}
        return cls(**known, passed_on=passed_on, typed=typed)

    @property
    def agents(self) -> list[str]:
        """The agent, and those to compare with it."""
        return list(dict.fromkeys((self.agent, *self.variants)))

    @property
    def keeps_ledgers(self) -> bool:
        """Whether the conversations are needed afterwards."""
        return not self.quiet or bool(self.formats or self.output)

    def settings(self) -> dict[str, Any]:
        """The options of `evaluate`, except those that differ from agent to agent."""
        mocks: Mapping[str, Any] = load_mocks(self.mocks) if self.mocks else {}
        return {
            **self.passed_on,
            "trials": self.trials,
            **({"min_pass_rate": self.minimum} if self.trials == "auto" else {}),
            "config": self.config or None,
            "mocks": mocks,
            "model": self.model or None,
            **({"concurrency": self.concurrency} if self.concurrency else {}),
            "keep_ledgers": self.keeps_ledgers,
            # The answers of judges are cached, so that none is paid for twice.
            "cache": None if self.no_cache else AnswerCache(),
            # Only a store that was asked for must be there.
            "store": False if self.no_store else self.store or None,
            "resume": False if self.resume is None else self.resume or True,
            **({"shard": self.shard} if self.is_shared else {}),
        }

    @property
    def is_shared(self) -> bool:
        """Whether several commands each run a part of one shared run."""
        return bool(self.shard and self.passed_on.get("resume_or_new"))

    def money(self, earlier: Iterable[Report]) -> Budget | None:
        """What may be spent, less what other agents of this order have cost."""
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

    def against(self, agent: str, baseline: Report | None) -> dict[str, Any]:
        """The options that compare an agent with the baseline, which belongs to the first agent."""
        if baseline is None or agent != self.agent:
            return {}
        return {"baseline": baseline, "confirm": self.confirm}

    def compared(self, baseline: Report, report: Report) -> Comparison:
        """A report compared with the baseline, by this order's definition of worse."""
        return compare(baseline, report, self.threshold, tags=self.gate_tags)

    @property
    def keeping(self) -> Store | None:
        """Where the run is recorded, if anywhere."""
        return None if self.no_store else as_store(self.store)

    def workers_for(self, agent: str) -> Workers | None:
        """The processes that run this agent, and where they find it and its cases."""
        is_closed_in = self.passed_on.get("fence", "process") != "process"
        if self.workers is None and not is_closed_in and "on" not in self.passed_on:
            return None
        return Workers(
            count=self.workers,
            agent=agent,
            cases=self.cases,
            beside="" if self.cases else self.agent,
            configs=not self.config,
            mocks=self.mocks,
        )

    def rerun_words(self, agent: str, *cases: str, only: str = "") -> list[str]:
        """The command that runs other cases in the same way, or one of them, and records them in the same store."""
        options = {name for name, option in OPTIONS.items() if option.per_trial}
        repeated = retyped(eval_run, self.typed, {*options, "store", "no_store"})
        # A filter would otherwise match whatever an id with a * in it matches.
        chosen = ["--filter", f"id:{escape(only)}"] if only else []
        return ["greenroom", "eval", "run", *map(_not_a_flag, (agent, *cases)), *chosen, *repeated]

    def words(self, agent: str = "", **instead: object) -> list[str]:
        """The whole order as it would be typed after `eval run`; `instead` overrides values."""
        cases = [self.cases] if self.cases else []
        given = {**self.typed, **instead}
        kept = {name: value for name, value in given.items() if name not in _NOT_REPEATED}
        named = map(_not_a_flag, (agent or self.agent, *cases))
        return [*named, *retyped(eval_run, kept)]

    def resume_command(self, agent: str, run_id: str = "", **instead: object) -> str:
        """The command that resumes a run of this order, or its latest one."""
        resumed = ["--resume", run_id] if run_id else ["--resume"]
        if self.passed_on.get("resume_or_new"):
            resumed = []  # the same command resumes it
        return shlex.join(["greenroom", "eval", "run", *self.words(agent, **instead), *resumed])

    def retry_command(self, agent: str, run_id: str) -> str:
        """The command that runs the errors of a run again, which may be finished: a name would begin another."""
        words = self.words(agent, resume_or_new=None)
        return shlex.join(
            ["greenroom", "eval", "run", *words, "--resume", run_id, "--retry-errors"]
        )


def _whole(evalset: EvalSet) -> str:
    """What a set is a part of, so that parts of different selections are not taken for a whole."""
    drawn = hashlib.sha256(repr(evalset.ids).encode()).hexdigest()[:8]
    return f"of {number_of(len(evalset), 'case')}, {drawn}"


def _not_a_flag(path: str) -> str:
    """A path as it can be typed before options, whatever it begins with."""
    return f"./{path}" if path.startswith("-") else path


_NOT_REPEATED = {
    "variants",
    "resume",
    "accept_changes",
    "retry_errors",
    "suggest_mocks",
    "dry_run",
    "learnt",
    "quiet",
    "as_json",
    "first",
    "leave_report",
}


def retyped(
    command: click.Command, typed: Mapping[str, Any], only: Collection[str] | None = None
) -> list[str]:
    """The options that a command was given, as they would be typed again.

    The address of a store is repeated without its password.
    """
    words: list[str] = []
    if "://" in str(typed.get("store")):
        typed = {**typed, "store": Store(typed["store"]).address}
    for parameter in command.params:
        name = parameter.name or ""
        value = typed.get(name)
        if not isinstance(parameter, click.Option) or (only is not None and name not in only):
            continue
        if value is None or value is False or value in ("", (), parameter.default):
            continue
        flag = next(word for word in parameter.opts if word.startswith("--"))
        if value is True:
            words.append(flag)
        else:
            each = value if parameter.multiple else (value,)
            for one in each:
                words += [
                    flag,
                    repr(one).removesuffix(".0") if isinstance(one, float) else str(one),
                ]
    return [*words, "--allow-import-network"] if is_import_allowed() else words


@dataclass(frozen=True, slots=True)
class Chosen:
    """The cases to run, and where they are from."""

    evalset: EvalSet
    gathered: CaseSource = field(repr=False)

    def __len__(self) -> int:
        return len(self.evalset)

    def rerun_commands(self, order: Order, agent: str) -> dict[str, str]:
        """How to run each case alone."""
        # The names of cases in their modules. A set that adds to how its cases run is needed with them.
        names: dict[int, str] = {}
        for source in self.gathered.sources:
            file, _ = split_reference(source.reference)
            evalset = source.evalset
            if source.is_data or evalset.metrics or evalset.usual or evalset.trials > 1:
                continue
            try:
                named = list(vars(load_module(file)).items())
            except BadInput:
                continue
            own = {id(case) for case in evalset}
            names |= {id(v): f"{file}:{name}" for name, v in named if id(v) in own}
        return {
            case.id: shlex.join(self._alone(case, order, agent, names)) for case in self.evalset
        }

    def _alone(self, case: Case, order: Order, agent: str, names: Mapping[int, str]) -> list[str]:
        if id(case) in names:
            return order.rerun_words(agent, names[id(case)])
        reference, known = self.gathered.origins[case.id]
        # Without CASES, those in the agent's own file are meant.
        if not order.cases and split_reference(reference)[0] == split_reference(agent)[0]:
            return order.rerun_words(agent, only=case.id)
        only = case.id if reference == order.cases else known
        return order.rerun_words(agent, reference, only=only)

    def places(self) -> dict[str, CasePlace]:
        """Where each case is from, for reports that point there."""
        lines: dict[tuple[str, str], int] = {}
        homes: dict[str, str] = {}
        for source in self.gathered.sources:
            homes[source.reference] = source.evalset.id
            if source.is_data:
                with suppress(BadInput):  # a part of a file, which is named by its cases' ids
                    whole = read_evalset(source.reference)
                    found = lines_of_cases(Path(source.reference), len(whole))
                    lines |= {
                        (source.reference, c): n for c, n in zip(whole.ids, found, strict=True)
                    }
        return {
            case.id: CasePlace(homes[origin[0]], split_reference(origin[0])[0], lines.get(origin))
            for case in self.evalset
            if (origin := self.gathered.origins.get(case.id)) is not None
        }


def chosen(order: Order, say: Say) -> Chosen:
    """The cases that an order means; `say` is given their formats, and what was left out."""
    configs = not order.config
    found = (
        gather(order.cases, configs=configs)
        if order.cases
        else gather_beside(order.agent, configs=configs)
    )
    for name in found.passed_by:
        say(f"{name}: not an eval set, skipped")
    for source in found.sources:
        if source.is_data:
            count = number_of(len(source.evalset), "case")
            judged = f", judged by {source.config} too" if source.config else ""
            say(f"{source.reference}: {count}, format: {source.evalset.shape}{judged}")
    check_not_empty(found.evalset, order.cases or order.agent)
    evalset = _fewer(found.evalset, order, say)
    if order.first:
        first = sorted(evalset, key=lambda case: case.id not in order.first)
        evalset = replace(evalset, cases=first)
    return Chosen(evalset, found)


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
    if order.shard:
        part, parts = map(int, order.shard.split("/"))
        kept = [case for n, case in enumerate(evalset) if n % parts == part - 1]
        if not kept:
            raise BadInput(
                f"--shard {part}/{parts} has no case: there are {len(evalset)}. Use fewer parts."
            )
        say(f"shard {part} of {parts}: {len(kept)}/{len(evalset)}")
        if not order.is_shared:
            evalset = replace(evalset, cases=kept, part=f"{part} of {parts} ({_whole(evalset)})")
    return evalset
