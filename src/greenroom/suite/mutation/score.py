"""Tests of the tests: whether worse agents fail an eval set, and which of its cases notice nothing."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any, Unpack, cast

from greenroom.backends.backend import Backend
from greenroom.cases.evalset import EvalSet
from greenroom.errors import BadInput
from greenroom.ledger.interactions import model_interactions
from greenroom.ledger.questions import tool_calls
from greenroom.results.report import Report
from greenroom.results.result import CaseResult
from greenroom.simulation.outside_trials import CalledApart
from greenroom.store.store import store_for_run
from greenroom.suite.budget import Budget
from greenroom.suite.cancel import Cancel
from greenroom.suite.evaluation import evaluate
from greenroom.suite.inputs.references import load_agent
from greenroom.suite.inputs.sources import as_evalset, as_model_given
from greenroom.suite.mutation.mutant_models import MUTANT
from greenroom.suite.mutation.mutants import MOST_RULES, Mutant, Original, mutants_of, rules_in
from greenroom.suite.mutation.mutation_results import (
    MutantResult,
    MutationEstimate,
    MutationScore,
    is_measured,
)
from greenroom.suite.options import OPTIONS, Options, check
from greenroom.suite.plan import Cases, load_backend

_NOT_TAKEN = {
    "workers": "mutants run in this process",
    "on": "mutants run in this process",
    "fence": "mutants run in this process",
    "fail_fast": "every case must run",
    "on_error": "every case must run",
    "min_pass_rate": "mutants are meant to fail",
    "baseline": "a run of mutants is compared with that of the agent",
    "resume": "give an earlier run of the agent as run=",
    "resume_or_new": "give an earlier run of the agent as run=",
    "shard": "every case must run",
    "record": "mutants ask what was never recorded",
    "replay": "mutants ask what was never recorded",
    "keep_ledgers": "the ledgers of the agent's own run are needed",
}


async def mutation_score(
    agent: Any,
    cases: Cases,
    *,
    run: Report | str | None = None,
    tools: bool = True,
    rules: bool = False,
    on_estimate: Callable[[MutationEstimate], object] | None = None,
    **options: Unpack[Options],
) -> MutationScore:
    """Run worse versions of `agent` on its cases, and see which of them the cases notice.

    Each mutant is the agent changed in one way: `mute`, `refusing`, `echo` and `over-eager` answer by
    themselves and cost nothing; with `tools` there is one `without` each tool, and with `rules` one without each
    sentence of the instructions, 12 at most: these ask the agent's model. A case kills a mutant if the agent
    passes it and the mutant fails it by a measurement; an error kills nothing.

    The agent itself runs first, unless `run` gives its run: a report, or the id of a run in the store. Then
    `on_estimate` is called with an estimate for the mutants. The options are those of `evaluate`, with one
    `budget` for all runs together. Neither the agent nor the cases are changed.
    """
    given = _options(options)
    evalset = as_evalset(cases)
    if isinstance(agent, str):
        agent = await load_agent(agent)
    real = await _real(agent, evalset, run, given)
    original = await _original(agent, evalset, real, given)
    mutants = mutants_of(original, tools=tools, rules=rules)
    notes = [
        *([real.unfinished] if real.unfinished else []),
        *(_on_rules(original) if rules else []),
    ]
    if on_estimate is not None:
        with CalledApart("on_estimate", "before the mutants ran"):
            on_estimate(MutationEstimate.of(mutants, real))
    cancel: Cancel | None = given["cancel"]
    played: list[MutantResult] = []
    for mutant in mutants:
        if cancel is not None and cancel.reason:
            left = MutantResult(name=mutant.name, about=mutant.about)
            played.append(left.concluded("unfinished", cancel.reason))
        else:
            played.append(await _play(mutant, evalset, original, given))
    return MutationScore.of(evalset.id, real, played, notes)


def _options(options: Options) -> dict[str, Any]:
    """The options for every run; BadInput names one that means nothing here."""
    given = cast("dict[str, Any]", {**options})
    for name, why in _NOT_TAKEN.items():
        if name in given and given[name] not in (None, OPTIONS[name].default):
            raise BadInput(f"{name}={given[name]!r} is not for mutants: {why}. Leave it out.")
        given.pop(name, None)
    if given.get("trials") == "auto":
        raise BadInput("trials='auto' is not for mutants; give a whole number.")
    check(cast("Options", given))
    unknown = given.pop("unknown_prices", None)
    if (budget := given.get("budget")) is not None and not isinstance(budget, Budget):
        given["budget"] = Budget(budget, unknown or "refuse")  # one for all runs
    if given.get("metrics") is not None:
        given["metrics"] = list(given["metrics"])
    return {"cancel": None, **given}


async def _real(
    agent: Any, evalset: EvalSet, run: Report | str | None, given: dict[str, Any]
) -> Report:
    """The run of the agent as it is."""
    if run is None:
        return await evaluate(agent, evalset, **given)
    if isinstance(run, str):
        run = store_for_run(given.get("store")).report(run)
    known = {result.case_id for result in run.results}
    lacking = [case_id for case_id in evalset.ids if case_id not in known]
    if lacking:
        raise BadInput(
            f"run {run.id or run.name!r} has no case {lacking[0]!r}, so nothing is known about it. Choose the "
            f"cases of that run, or leave run= out."
        )
    wanted = [result for result in run.results if result.case_id in evalset.ids]
    return replace(run, results=wanted)


async def _original(
    agent: Any, evalset: EvalSet, real: Report, given: Mapping[str, Any]
) -> Original:
    """The agent as it is, and what its own run has shown."""
    whole = await load_backend(agent, allow_opaque=True)
    backends = {
        case.id: whole if case.agent is None else await load_backend(case.agent, allow_opaque=True)
        for case in evalset
    }
    called: dict[str, set[str]] = {}
    rules: dict[str, None] = {}
    for result in real.results:
        if (ledger := result.ledger_or_none) is None:
            continue
        called.setdefault(result.case_id, set()).update(one.tool for one in tool_calls(ledger))
        told = {one.request.instructions for one in model_interactions(ledger) if one.request}
        found = (rule for text in sorted(told) for rule in rules_in(text))
        rules |= dict.fromkeys(_authors(found, backends[result.case_id]))
    passed = {result.case_id for result in real.results if result.passed}
    unsure = {result.case_id for result in real.results if not result.passed}
    known = {result.case_id for result in real.results if is_measured(result)}
    return Original(
        agent=agent,
        cases=tuple(evalset.cases),
        backends=backends,
        passing=frozenset(passed - unsure),
        broken=frozenset(evalset.ids) - known,
        called=called,
        rules=tuple(rules),
        model=as_model_given(given.get("model")),
        mocks=given.get("mocks") or {},
        allowed=tuple(given.get("allow_tools") or ()),
    )


def _authors(rules: Iterable[str], backend: Backend | None) -> Iterator[str]:
    """The rules without those that a framework adds by itself, as far as it shows what it was given."""
    shown = "" if backend is None or backend.name == "native" else str(backend.snapshot)
    for rule in rules:
        # The snapshot is shown by `str`, so the rule appears there as in its `repr`.
        if "'instructions': " not in shown or repr(rule)[1:-1] in shown:
            yield rule


def _on_rules(original: Original) -> list[str]:
    if not original.rules:
        return ["no rule was deleted: no instructions are known from the agent's own run"]
    left = len(original.rules) - MOST_RULES
    return (
        [f"only the first {MOST_RULES} rules were deleted; {left} more stayed"] if left > 0 else []
    )


async def _play(
    mutant: Mutant, evalset: EvalSet, original: Original, given: Mapping[str, object]
) -> MutantResult:
    """The result of one mutant."""
    base = MutantResult(name=mutant.name, about=mutant.about, does_nothing=mutant.does_nothing)
    if mutant.cannot:
        return base.concluded("not played", mutant.cannot)
    if mutant.missed:
        return base.concluded("survived", mutant.missed)
    if not mutant.cases:
        return base.concluded("not played", "the agent passes no case")
    # Its own set, so that a store never mistakes a run of it for one of the agent.
    ending = re.sub(r"\W+", "-", mutant.name)
    name = f"{evalset.name or evalset.id}, mutant: {mutant.name}"
    played = replace(evalset, id=f"{evalset.id}--{ending}", name=name, cases=mutant.cases)
    try:
        report = await _evaluated(mutant, played, given)
    except BadInput as error:
        return base.concluded("not played", str(error).splitlines()[0])
    by_case: dict[str, list[CaseResult]] = {}
    for result in report.results:
        # If no model of the mutant answered, what ran was the unchanged agent.
        if mutant.asks or MUTANT in result.models or result.status in ("error", "skipped"):
            by_case.setdefault(result.case_id, []).append(result)
    if not by_case:
        return base.concluded("not played", "the agent asks no model whose place it could take")
    return base.judged(by_case, original.passing, report)


async def _evaluated(mutant: Mutant, cases: EvalSet, given: Mapping[str, Any]) -> Report:
    """The mutant's run, with what is left of the budget."""
    # Whether a model could not be asked is in the ledger.
    options: Any = {**given, "keep_ledgers": mutant.asks}
    whole: Budget | None = given.get("budget")
    if whole is None or mutant.asks:
        return await evaluate(mutant.agent, cases, **options)
    # What the agent's models cost is no measure of a mutant that asks none of them.
    own = Budget(whole.limit, whole.unknown_prices, whole.spent)
    try:
        options["budget"] = own
        return await evaluate(mutant.agent, cases, **options)
    finally:
        whole.spent = own.spent
        whole.unpriced |= own.unpriced
