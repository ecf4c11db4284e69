"""What was asked for on the command line, and which cases that means."""

import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from greenroom.apps.cli.exits import loading
from greenroom.cases import Case, EvalSet
from greenroom.errors import BadInput
from greenroom.reports.console import Detail
from greenroom.suite.gathering import Gathered, gather, gather_beside, load_mocks, load_model
from greenroom.suite.references import load_module, split_reference
from greenroom.world.answers import AnswerCache

Say = Callable[[str], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
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
    trials: int | None = None
    concurrency: int = 4
    fail_fast: bool = False
    mocks: str = ""
    allow_tools: Sequence[str] = ()
    min_pass_rate: float = 1.0
    max_errors: int = 0
    baseline: str = ""
    formats: Sequence[str] = ()
    output: str = ""
    save_failures: str = ""
    allow_opaque: bool = False
    suggest_mocks: bool = False
    no_cache: bool = False
    verbose: bool = False
    quiet: bool = False
    as_json: bool = False
    first: Sequence[str] = ()
    """The cases to be played before all others."""
    leave_report: str = ""
    """Where a program that started this one looks for the report."""

    @property
    def agents(self) -> list[str]:
        """The agent, and the variants to be seen beside it."""
        return list(dict.fromkeys((self.agent, *self.variants)))

    @property
    def detail(self) -> Detail:
        """How much to show."""
        return "little" if self.quiet else "all" if self.verbose else "usual"

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
            "config": self.config or None,
            "mocks": mocks,
            "allow_tools": self.allow_tools,
            "concurrency": self.concurrency,
            "fail_fast": self.fail_fast,
            "keep_ledgers": self.keeps_ledgers,
            "allow_opaque": self.allow_opaque,
            # What a judge has answered once is not paid for twice.
            "cache": None if self.no_cache else AnswerCache(),
        }

    def played_by(self) -> Any:
        """The model that plays the agent in place of its own, or None."""
        with loading(self.model, self.verbose):
            return load_model(self.model) if self.model else None

    def same_words(self, agent: str, *cases: str) -> list[str]:
        """The command that plays other cases in the same way."""
        named = {"--config": self.config, "--model": self.model, "--mocks": self.mocks}
        many = {"--allow-tool": self.allow_tools}
        return ["greenroom", "eval", "run", agent, *cases, *_options(named, many)]

    def words(self) -> list[str]:
        """All of it as one would type it after `eval run`, but for where reports go."""
        named = {
            "--limit": self.limit,
            "--sample": self.sample,
            "--seed": self.seed,
            "--trials": self.trials,
            "--max-concurrency": self.concurrency,
        }
        flags = {
            "--fail-fast": self.fail_fast,
            "--allow-opaque": self.allow_opaque,
            "--no-cache": self.no_cache,
            "--verbose": self.verbose,
        }
        _, _, _, *same = self.same_words(self.agent, *([self.cases] if self.cases else []))
        shown = [flag for flag, is_set in flags.items() if is_set]
        return [*same, *_options(named, {"--filter": self.filters}), *shown]


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
    gathered: Gathered = field(repr=False)

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
        return order.same_words(agent, reference, "--filter", f"id:{known}")

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


def _told(found: Gathered) -> list[str]:
    lines = [f"{name}: no eval set, passed by" for name in found.passed_by]
    for source in found.sources:
        if source.is_data:
            count = "1 case" if len(source.evalset) == 1 else f"{len(source.evalset)} cases"
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
