"""Names of mocks, allowed tools and tools the user answers that no tool has.

A misspelt one would leave the tool bare, or its wait without an answer.

A name is judged before the trial where the agent's tools are all there are. An agent inside a tool,
a step or a callback brings tools of its own, which only turn up while it works; names that may be
theirs are judged when the trial is over.
"""

from collections.abc import Collection, Iterable, Iterator
from difflib import get_close_matches
from typing import Any

from greenroom.agents.flow import Flow, Step
from greenroom.backends.backend import Backend
from greenroom.backends.native import NativeBackend
from greenroom.cases.case import Case
from greenroom.cases.mocks import Fault, Live
from greenroom.cases.users import UserAgents
from greenroom.errors import BadCase
from greenroom.ledger.events import ModelCalled, ToolBlocked, ToolCalled, YieldOpened
from greenroom.ledger.ledger import Ledger
from greenroom.ledger.plain import JSON_TYPES

_ALIKE = 0.75


def check_names(
    case: Case, backend: Backend, allowed: Collection[Any], approved: Collection[str] = ()
) -> None:
    """Refuse all names that can be no tool's: nothing brings more tools, or they are nearly one's.

    `approved` are tools that wait for an approval, though they do not say so themselves.
    """
    offered = backend.tools
    if offered is None:
        return
    wrong = list(unknown_names(case, offered, allowed, is_all=is_all(case, backend, allowed)))
    if wrong:
        raise BadCase("\n".join(wrong))
    for name in answered_by_user(case) if isinstance(backend, NativeBackend) else ():
        if name in offered and not offered[name].yields and name not in approved:
            raise BadCase(
                f"the user of case {case.id!r} answers tool {name!r}, but it never waits for an "
                f"answer. Declare it with tool(yields=True), or mock it."
            )


def unknown_names(
    case: Case, offered: Collection[str], allowed: Collection[Any], *, is_all: bool = False
) -> Iterator[str]:
    """What is wrong with each name that is nearly a tool's, or no tool's if these `is_all` there are."""
    for name, given in _named(case, allowed):
        if name not in offered and (is_all or _is_misspelt(name, offered, case.mocks)):
            yield _unknown(case, name, given, "the agent offers", offered)


def check_names_after(
    case: Case, backend: Backend, allowed: Collection[Any], ledger: Ledger
) -> None:
    """Refuse a name that turned up nowhere in a trial in which all that brings tools has run."""
    offered = backend.tools
    names = [named for named in _named(case, allowed) if named[0] not in (offered or ())]
    if not names:
        return
    seen = {*(offered or ()), *_seen(ledger)}
    called = {event.tool for event in ledger.of(ToolCalled, ToolBlocked, voice=None)}
    has_all_run = offered is not None and called.issuperset(_bringing(case, allowed))
    wrong = [
        _unknown(case, name, given, "the trial showed", seen)
        for name, given in names
        if name not in seen and (has_all_run or _is_misspelt(name, seen, case.mocks))
    ]
    if wrong:
        raise BadCase("\n".join(wrong))


def _named(case: Case, allowed: Collection[Any]) -> Iterator[tuple[str, str]]:
    """The names a case or run gives to tools, and how they are given."""
    for name in case.mocks:
        yield name, f"case {case.id!r} mocks tool {name!r}"
    for name in answered_by_user(case):
        yield name, f"the user of case {case.id!r} answers tool {name!r}"
    for name in allowed:
        if isinstance(name, str):
            yield name, f"allow_tools names {name!r} for case {case.id!r}"


def answered_by_user(case: Case) -> Collection[str]:
    """The tools whose waits the user of a case answers by name."""
    return case.user.tools if isinstance(case.user, UserAgents) else ()


def is_all(case: Case, backend: Backend, allowed: Collection[Any]) -> bool:
    """Whether no code runs in this trial that could bring an agent with tools of its own."""
    if not isinstance(backend, NativeBackend):
        return False
    roles = case.user.roles if isinstance(case.user, UserAgents) else (case.user,)
    if any(isinstance(role, Flow) or callable(role) for role in roles):
        return False
    if any(isinstance(node.flow, Step) for node in backend.graph.nodes()):
        return False
    return not _bringing(case, allowed)


def _bringing(case: Case, allowed: Collection[Any]) -> set[str]:
    """Tools whose answer may be code that runs: named bodies, and mocks that are functions."""
    mocked = {
        name
        for name, mock in case.mocks.items()
        if type(mock) not in JSON_TYPES and not isinstance(mock, Fault)
    }
    tools = [one.tool if isinstance(one, Live) else one for one in allowed]
    names = {tool if isinstance(tool, str) else getattr(tool, "__name__", "") for tool in tools}
    return mocked | (names - {""})


def _is_misspelt(name: str, known: Iterable[str], mocks: Collection[str]) -> bool:
    bare = [tool for tool in known if tool not in mocks]
    return bool(get_close_matches(name, bare, 1, _ALIKE))


def _seen(ledger: Ledger) -> Iterator[str]:
    """The tools that were shown to a model, called, or waited for, on either side."""
    for event in ledger.of(ModelCalled, voice=None):
        yield from event.tools
    for event in ledger.of(ToolCalled, ToolBlocked, voice=None):
        yield event.tool
    for wait in ledger.of(YieldOpened, voice=None):
        yield wait.tool


def _unknown(case: Case, name: str, given: str, where: str, tools: Iterable[str]) -> str:
    listed = sorted(tools)
    near = get_close_matches(name, listed, 1, _ALIKE)
    meant = f"Did you mean {near[0]!r}? " if near else ""
    return (
        f"{given}, but {where} {listed}. {meant}Rename it, or add the tool to the agent of case "
        f"{case.id!r}."
    )
