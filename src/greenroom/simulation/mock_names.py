"""Names of mocks, allowed tools and tools the user answers that no tool has.

A misspelt one would leave the tool without a mock, or its wait without an answer.

A name is checked before the trial if the agent's tools are all known. An agent inside a tool, a step or
a callback has its own tools, which are only seen while it works; names that may be theirs are checked
when the trial is over.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from greenroom.agents.flow import Flow, Step
from greenroom.agents.tools import Tool
from greenroom.backends.backend import Backend, ToolFacts
from greenroom.backends.native import NativeBackend
from greenroom.cases.case import Case
from greenroom.cases.mocks import Fault, Live, Simulated, answers_in
from greenroom.cases.problems import Problem, at
from greenroom.cases.users import UserAgents
from greenroom.errors import BadCase
from greenroom.ledger.choices import near
from greenroom.ledger.events import ModelCalled, ToolBlocked, ToolCalled, YieldOpened
from greenroom.ledger.ledger import Ledger
from greenroom.ledger.plain import JSON_TYPES
from greenroom.simulation.tool_identity import is_the_tool

_ALIKE = 0.75
_OF_THE_RUN = ""
"""The place of what a case does not say itself."""


def check_names(
    case: Case, backend: Backend, allowed: Collection[object], approved: Collection[str] = ()
) -> None:
    """Refuse all names that no tool can have.

    `approved` are tools that wait for an approval, though they do not say so themselves.
    """
    wrong = list(name_problems(case, backend, allowed, approved))
    if wrong:
        raise BadCase("\n".join(str(replace(problem, where="")) for problem in wrong))


def name_problems(
    case: Case, backend: Backend, allowed: Collection[object], approved: Collection[str] = ()
) -> Iterator[Problem]:
    """The problems of the tool names in a case, each at its place in the case.

    A name that no tool has is wrong where nothing brings more tools. Steps, mocks and users that are
    functions, and the callbacks of a framework's agent could, but hardly ever do: in such a case a name is
    wrong only if it is close to a tool's. The same holds for tools that the run allows, since it may allow those
    of several agents. Where bodies of tools run, or the user is an agent, names are checked after the trial.
    """
    offered = backend.tools
    if offered is None:
        return
    if _names_others(case, allowed, offered) and not brings_agents(case, allowed, offered):
        is_all = has_no_others(case, backend, offered)
        for place, name, given in _named(case, allowed):
            is_wrong = is_all and place != _OF_THE_RUN
            if name not in offered and (is_wrong or _is_misspelt(name, offered, case.mocks)):
                yield _unknown(case, place, name, given, "the agent offers", offered)
    yield from _other_tools(case, offered)
    for name in answered_by_user(case) if isinstance(backend, NativeBackend) else ():
        if name in offered and not offered[name].yields and name not in approved:
            yield Problem(
                at("user.tools", name),
                f"the user of case {case.id!r} answers tool {name!r}, but it never waits for an answer",
                "Declare it with tool(yields=True), or mock it.",
            )


def _other_tools(case: Case, offered: Mapping[str, ToolFacts]) -> Iterator[Problem]:
    """Mocks that are the function of another tool: its body would run, though nobody named it."""
    for name, mock in case.mocks.items():
        for answer in () if type(mock) in JSON_TYPES else answers_in([mock]):
            if not callable(answer):
                continue
            tools = [tool for tool, facts in offered.items() if is_the_tool(answer, facts.origin)]
            if tools and name not in tools:
                yield Problem(
                    at("mocks", name),
                    f"case {case.id!r} mocks tool {name!r} by the tool {tools[0]!r}",
                    f"Pass {name!r} itself, or a function that answers for it.",
                )


def has_no_others(case: Case, backend: Backend, offered: Collection[str]) -> bool:
    """Whether the agent has no tools but those offered: no code of the case runs that could bring more."""
    return isinstance(backend, NativeBackend) and not any(
        (
            *(isinstance(node.flow, Step) for node in backend.graph.nodes()),
            *map(callable, _roles(case)),
            *(name in offered for name in _functions(case)),
        )
    )


def check_names_after(
    case: Case, backend: Backend, allowed: Collection[object], ledger: Ledger
) -> None:
    """Refuse a name that was seen nowhere in a finished trial, once all code that could bring tools has run."""
    offered = backend.tools
    if not _names_others(case, allowed, offered or ()):
        return
    names = [named for named in _named(case, allowed) if named[1] not in (offered or ())]
    seen = {*(offered or ()), *_seen(ledger)}
    called = {event.tool for event in ledger.of(ToolCalled, ToolBlocked, voice=None)}
    has_all_run = offered is not None and called.issuperset(_bringing(case, allowed))
    wrong = [
        str(_unknown(case, "", name, given, "the trial showed", seen))
        for _, name, given in names
        if name not in seen and (has_all_run or _is_misspelt(name, seen, case.mocks))
    ]
    if wrong:
        raise BadCase("\n".join(wrong))


def _names_others(case: Case, allowed: Collection[object], offered: Collection[str]) -> bool:
    """Whether a case or run names tools that are not among these; nearly all name none."""
    for named in (*case.mocks, *answered_by_user(case), *allowed):
        if isinstance(named, str) and named not in offered:
            return True
    return False


def _named(case: Case, allowed: Collection[object]) -> Iterator[tuple[str, str, str]]:
    """The places where a case or run names tools, the names, and how they are given."""
    for name in case.mocks:
        yield at("mocks", name), name, f"case {case.id!r} mocks tool {name!r}"
    for name in answered_by_user(case):
        yield (
            at("user.tools", name),
            name,
            f"the user of case {case.id!r} answers tool {name!r}",
        )
    for index, name in enumerate(allowed):
        if isinstance(name, str):
            given = f"allow_tools names {name!r} for case {case.id!r}"
            is_cases = index < len(case.allow_tools)  # a case's own come first
            yield at("allow_tools", index) if is_cases else _OF_THE_RUN, name, given


def answered_by_user(case: Case) -> Collection[str]:
    """The tools whose waits the user of a case answers by name."""
    return case.user.tools if isinstance(case.user, UserAgents) else ()


def _roles(case: Case) -> Sequence[object]:
    return case.user.roles if isinstance(case.user, UserAgents) else (case.user,)


def brings_agents(case: Case, allowed: Collection[object], offered: Collection[str]) -> bool:
    """Whether code runs in this trial that is likely to bring an agent with its own tools."""
    if any(isinstance(role, Flow) for role in _roles(case)):
        return True
    return any(name in offered for name in _bodies(case, allowed))


def _bringing(case: Case, allowed: Collection[object]) -> set[str]:
    """Tools whose answer may be code that runs: named bodies, and mocks that are functions."""
    return {*_functions(case), *_bodies(case, allowed)} - {""}


def _functions(case: Case) -> Iterator[str]:
    for name, mock in case.mocks.items():
        if type(mock) not in JSON_TYPES and not isinstance(mock, Fault | Live | Simulated | Tool):
            yield name


def _bodies(case: Case, allowed: Collection[object]) -> Iterator[str]:
    yield from (name for name, mock in case.mocks.items() if isinstance(mock, Live | Tool))
    for one in allowed:
        tool = one.tool if isinstance(one, Live) else one
        named = getattr(tool, "__name__", "") or getattr(tool, "name", "")
        yield tool if isinstance(tool, str) else named


def _is_misspelt(name: str, known: Iterable[str], mocks: Collection[str]) -> bool:
    bare = [tool for tool in known if tool not in mocks]
    return bool(near(name, bare, alike=_ALIKE))


def _seen(ledger: Ledger) -> Iterator[str]:
    """The tools that were shown to a model, called, or waited for, on either side."""
    for event in ledger.of(ModelCalled, voice=None):
        yield from event.tools
    for event in ledger.of(ToolCalled, ToolBlocked, voice=None):
        yield event.tool
    for wait in ledger.of(YieldOpened, voice=None):
        if wait.tool:  # a wait for a message has none
            yield wait.tool


def _unknown(
    case: Case, place: str, name: str, given: str, where: str, tools: Iterable[str]
) -> Problem:
    listed = sorted(tools)
    found = near(name, listed, alike=_ALIKE)
    meant = f"Did you mean {found[0]!r}? " if found else ""
    return Problem(
        place,
        f"{given}, but {where} {listed}",
        f"{meant}Rename it, or add the tool to the agent of case {case.id!r}.",
    )
