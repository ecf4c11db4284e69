"""Names of tools, of their arguments and of scopes that look misspelt, found before the first case runs."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from greenroom.backends.backend import Backend, ToolFacts
from greenroom.backends.registry import backend_for
from greenroom.cases.case import Case
from greenroom.cases.checks import scope_problems, turns_with_places
from greenroom.cases.evalset import EvalSet
from greenroom.cases.parts import MetricLike
from greenroom.cases.problems import Problem, at
from greenroom.errors import BadCase, BadInput
from greenroom.ledger.choices import near
from greenroom.ledger.messages import ToolCall
from greenroom.simulation.mock_names import brings_agents, has_no_others, name_problems
from greenroom.simulation.trial_context import target_of
from greenroom.suite.checks.agent_names import agent_problems, run_problems
from greenroom.suite.checks.built_in import built_in

_ALIKE = 0.8
_SHOWN = 20
_ABOUT_CALLS = ("called", "forbidden_calls", "tool_trajectory_avg_score", "tool_name_match")
_HANDOVERS = ("transfer_to_", "transfer_")
"""Frameworks make up the names of such calls, one for each agent."""


def check_tool_names(
    backend: Backend | None,
    cases: EvalSet,
    allowed: Collection[object] = (),
    approved: Collection[str] = (),
    metrics: Iterable[MetricLike] = (),
) -> list[str]:
    """Refuse cases with names that no tool of their agents can have; notes on names in doubt.

    `allowed` are the tools that the run lets act, `approved` those that wait for an approval. The
    `metrics` of the run may be about tools of some of its agents only.
    """
    found = [
        (case, problem)
        for case, runs in _with_agents(backend, cases)
        for problem in name_problems_of(case, runs, allowed, approved)
    ]
    lines = _lines(found) if found else []
    lines += [str(problem) for problem in _of_the_run(metrics, backend, cases, allowed)]
    pairs = list(_with_agents(backend, cases)) if metrics else []
    lines += [str(problem) for problem in run_problems(metrics, pairs, allowed)]
    if approved:
        lines += [str(one) for one in _approvals(approved, backend, cases, allowed)]
    if lines:
        more = [f"and {len(lines) - _SHOWN} more"] if len(lines) > _SHOWN else []
        raise BadCase("\n".join([*lines[:_SHOWN], *more]))
    doubts = (problem for case in cases for problem in scope_problems(case, f"case {case.id!r}"))
    notes = [f"{one.where}: {one.message}. {one.fix}" for one in doubts]
    notes += _forbidden_in_vain(metrics, backend, cases, allowed)
    if allowed:
        notes += _allowed_in_vain(allowed, backend, cases)
    return list(dict.fromkeys(notes))


def _lines(found: Iterable[tuple[Case, Problem]]) -> list[str]:
    """The problems, each with its place in the file of its case."""
    from greenroom.cases.files.load import in_files  # most runs have no such problem

    return [
        f"{file}: {problem}" if file else str(replace(problem, where=""))
        for file, problem in in_files(found)
    ]


def name_problems_of(
    case: Case,
    runs: Backend,
    allowed: Collection[object] = (),
    approved: Collection[str] = (),
) -> Iterator[Problem]:
    """The problems of the tools and agents that a case names, each at its place in the case."""
    yield from tool_problems(case, runs, allowed, approved)
    yield from agent_problems(case, runs, allowed)


def tool_problems(
    case: Case,
    runs: Backend,
    allowed: Collection[object] = (),
    approved: Collection[str] = (),
) -> Iterator[Problem]:
    """The problems of the tools that a case names and of their arguments, each at its place in the case.

    `runs` is the agent that it is about. An agent whose tools are known only while it runs is not
    checked.
    """
    try:
        runs = target_of(case, getattr(runs, "sample", runs))
        tools = runs.tools
    except BadInput as error:
        yield Problem("target", str(error).rstrip("."))
        return
    if tools is None:
        return
    may_act = (*case.allow_tools, *allowed)
    yield from name_problems(case, runs, may_act, approved)
    expects = f"case {case.id!r} expects a call"
    for turn, place in turns_with_places(case, ""):
        for index, wanted in enumerate((turn.expect.tools if turn.expect else None) or ()):
            name = wanted if isinstance(wanted, str) else wanted.tool
            if name not in tools:
                here = at(place, "expect", "tools", index)
                if not brings_agents(case, may_act, tools):
                    yield from _misspelt(case, expects, name, here, tools)
            elif isinstance(wanted, ToolCall) and not _is_harvested(case):
                keys = "expect", "tools", index, "args"
                yield from _unknown_arguments(expects, name, wanted.args, tools[name], place, *keys)
    if not case.metrics or brings_agents(case, may_act, tools):
        return
    for index, metric in enumerate(case.metrics):
        counts = f"case {case.id!r} has a metric that counts calls"
        yield from _misspelt_in(metric, case, counts, at("metrics", index), tools)


def _is_harvested(case: Case) -> bool:
    """Whether a case was made from a recorded session, so that what it expects has happened once."""
    return "harvested_from" in case.metadata


def _misspelt_in(
    metric: MetricLike, case: Case, counts: str, where: str, tools: Mapping[str, Any]
) -> Iterator[Problem]:
    """A metric about calls of a tool which the agent has under a similar name, or with arguments it lacks.

    It would find none, whatever the agent does; and one that forbids them would always pass.
    """
    asked = _calls_in(metric)
    others = {name: facts for name, facts in tools.items() if name not in asked}
    for name, args in asked.items():
        if name not in tools:
            yield from _misspelt(case, counts, name, where, others)
        else:
            yield from _unknown_arguments(counts, name, args, tools[name], where)


def _calls_in(metric: MetricLike) -> dict[str, list[str]]:
    """The tools that a metric names, but no patterns, each with the arguments that it looks at."""
    found = built_in(metric, _ABOUT_CALLS)
    return {} if found is None else found.tools_named()


def _of_the_run(
    metrics: Iterable[MetricLike],
    backend: Backend | None,
    cases: EvalSet,
    allowed: Collection[object],
) -> Iterator[Problem]:
    """The problems of a run's metrics: those about tools that no case's agent has."""
    for metric in metrics:
        found: list[Problem] = []
        for case, runs in _with_agents(backend, cases) if _calls_in(metric) else ():
            tools = getattr(runs, "sample", runs).tools
            if tools is None or brings_agents(case, (*case.allow_tools, *allowed), tools):
                break
            wrong = list(_misspelt_in(metric, case, "a metric of the run counts calls", "", tools))
            if not wrong:
                break
            found = found or wrong
        else:
            yield from found


def _approvals(
    approved: Collection[str],
    backend: Backend | None,
    cases: EvalSet,
    allowed: Collection[object],
) -> Iterator[Problem]:
    """Tools that would wait for an approval, but that no case's agent has: nothing would ever be asked."""
    offered, is_all = _offered(backend, cases, allowed)
    for name in sorted(set(approved).difference(offered)):
        found = near(name, offered, alike=_ALIKE)
        if found or is_all:
            meant = f"Did you mean {found[0]!r}? " if found else ""
            yield Problem(
                "",
                f"tool_approval({name!r}) names no tool of the agents, so it would never ask",
                f"{meant}They offer {sorted(offered)}.",
            )


def _allowed_in_vain(
    allowed: Collection[object], backend: Backend | None, cases: EvalSet
) -> Iterator[str]:
    """Notes on tools that the run lets act, but that no case's agent has.

    They are not refused, because runs of several agents may share the option.
    """
    offered, is_all = _offered(backend, cases, allowed)
    for name in allowed:
        if is_all and isinstance(name, str) and name not in offered:
            yield f"allow_tools names {name!r}, but the agents offer {sorted(offered)}"


def _forbidden_in_vain(
    metrics: Iterable[MetricLike],
    backend: Backend | None,
    cases: EvalSet,
    allowed: Collection[object],
) -> Iterator[str]:
    """Notes on patterns of forbidden tools that fit no tool of any case's agent: a misspelt one forbids nothing.

    They are not refused, because a guard may be for tools that an agent gets later.
    """
    listed = [*metrics, *(one for case in cases for one in case.metrics)]
    found = [built_in(one, ("forbidden_calls",)) for one in listed]
    # Of no tools at all, only a metric with patterns has some that fit none.
    guards = {one.name: one for one in found if one is not None and one.idle_patterns(())}
    offered, is_all = _offered(backend, cases, allowed) if guards else ({}, False)
    for name, guard in guards.items():
        if is_all and (idle := guard.idle_patterns(offered)):
            which = ", ".join(map(repr, idle))
            yield f"{name}: no tool of the agents fits {which}; they offer {sorted(offered)}"


def _offered(
    backend: Backend | None, cases: EvalSet, allowed: Collection[object]
) -> tuple[dict[str, None], bool]:
    """The tools of all cases' agents, and whether there can be no others."""
    offered, is_all = dict[str, None](), True
    for case, runs in _with_agents(backend, cases):
        agent = getattr(runs, "sample", runs)
        tools = agent.tools
        if tools is None or brings_agents(case, (*case.allow_tools, *allowed), tools):
            return {}, False
        offered |= dict.fromkeys(tools)
        is_all = is_all and has_no_others(case, agent, tools)
    return offered, is_all


def _with_agents(backend: Backend | None, cases: EvalSet) -> Iterator[tuple[Case, Backend]]:
    """The cases, each with the agent that it is about; those that have none say so when they run."""
    for case in cases:
        runs = backend if case.agent is None else backend_for(case.agent)
        if runs is not None:
            yield case, runs


def _misspelt(
    case: Case, says: str, name: str, where: str, tools: Mapping[str, object]
) -> Iterator[Problem]:
    """A tool that a case speaks of, and that the agent has under a similar name.

    A name that resembles no other may be a tool that the agent does not have yet, so a trial that expects
    it fails as usual, and says that the agent has no such tool.
    """
    # An agent inside a tool or a step may have a tool of a similar name: a case that says what it
    # answers knows of it, and whether that is misspelt is looked at with the names of mocks.
    named = {*case.mocks, *(one for one in case.allow_tools if isinstance(one, str))}
    found = near(name, tools, alike=_ALIKE)
    if found and name not in named and not name.startswith(_HANDOVERS):
        yield Problem(
            where,
            f"{says} of {name!r}, but the agent has no tool of that name",
            f"Did you mean {found[0]!r}? It offers {sorted(tools)}.",
        )


def _unknown_arguments(
    says: str, tool: str, args: Iterable[str], facts: ToolFacts, where: str, *keys: str | int
) -> Iterator[Problem]:
    """Arguments that no call of the tool can have."""
    for name in () if facts.takes_more else args:
        if name not in facts.parameters:
            found = near(name, facts.parameters)
            meant = f"Did you mean {found[0]!r}? " if found else ""
            takes = ", ".join(facts.parameters) or "no arguments"
            yield Problem(
                at(where, *keys, name) if where or keys else "",
                f"{says} of {tool!r} with {name!r}, but it has no such argument",
                f"{meant}It takes {takes}.",
            )
