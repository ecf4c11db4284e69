"""Decides who is to blame when a trial did not pass, as far as its ledger shows.

Only rules that can be checked decide; anything else is undecided, never the agent's.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Literal, TypeGuard

from msgspec import Struct

from greenroom.cases.case import Case
from greenroom.cases.scores import Outcome, Score, Unmeasured
from greenroom.cases.users import person_of
from greenroom.ledger import questions
from greenroom.ledger.events import LIMITS, RunEnded, ToolBlocked, ToolFailed
from greenroom.ledger.ledger import Ledger
from greenroom.ledger.plain import Json, is_array, is_object
from greenroom.ledger.simulated import simulated_tools
from greenroom.results.endings import BROKE

Whom = Literal["agent", "user", "tool_mock", "expectation", "undecided"]

_QUALITY = "simulator_quality"


class Blame(Struct, frozen=True):
    """Who is to blame, and what shows it."""

    whom: Whom
    evidence: Sequence[str] = ()


def blame(case: Case, ledger: Ledger, scores: Mapping[str, Outcome]) -> Blame | None:
    """Who is to blame that this trial did not pass; None if nothing failed.

    Checked in this order: what broke, a user who broke character, an expectation that cannot be met, and a
    mock that failed. If `simulator_quality` did not check a simulated user, it is undecided.
    """
    end = questions.ended(ledger)
    if end is not None and end.reason == "error":
        return _of_error(end, ledger)
    spoiled: list[str] = []
    failed: list[str] = []
    for name, found in scores.items():
        if isinstance(found, Score):
            if not found.passed:
                failed.append(f"{name}: {found.reason}")
        elif _spoiled(found):
            spoiled.append(f"{name}: {found.why}")
    if spoiled:
        return Blame("user", spoiled)
    if end is not None and end.reason in LIMITS:
        failed.append(f"the trial was stopped at {end.reason}")
    if not failed:
        return None
    if impossible := _impossible(case, ledger):
        return Blame("expectation", impossible)
    if faults := _mock_failures(ledger):
        return Blame("tool_mock", faults)
    if tools := simulated_tools(ledger):
        answered = (
            f"a model answered for {', '.join(tools)}: check whether it answered as they would"
        )
        return Blame("undecided", [*failed, answered])
    if person_of(case.user) is None or _vouched(scores):
        return Blame("agent", failed)
    return Blame(
        "undecided", [*failed, "no metric checked the simulated user: add simulator_quality()"]
    )


def _spoiled(found: Outcome) -> TypeGuard[Unmeasured]:
    """Whether a metric itself found the user out of character, and does not only repeat that the trial broke."""
    if not isinstance(found, Unmeasured) or found.phase != "user_agent":
        return False
    return not found.why.startswith(BROKE)


def _of_error(end: RunEnded, ledger: Ledger) -> Blame:
    if end.phase == "user_agent":
        return Blame("user", [end.error])
    if end.error_type == "MockBroke" or ledger.of(ToolBlocked):
        return Blame("tool_mock", [end.error])
    return Blame("agent" if end.phase == "agent" else "undecided", [end.error])


def _impossible(case: Case, ledger: Ledger) -> list[str]:
    """Expected calls of tools that the agent does not have."""
    unheard = dict.fromkeys(_expected_tools(case))
    for end in ledger.index_of().results.values():
        if end.source != "refused":
            unheard.pop(end.tool, None)
    # A tool that answered exists, so for most trials the whole graph need not be searched.
    first = questions.started(ledger) if unheard else None
    lists = [] if first is None else list(_tool_lists(first.agent))
    if not lists:
        return []
    offered = sorted({name for tools in lists for name in tools})
    return [
        f"the case expects a call of {name!r}, but the agent offers {offered or 'no tools'}"
        for name in unheard
        if name not in offered
    ]


def _expected_tools(case: Case) -> Iterator[str]:
    for turn in case.script:
        for wanted in (turn.expect.tools if turn.expect else None) or ():
            yield wanted if isinstance(wanted, str) else wanted.tool


def _tool_lists(graph: Json) -> Iterator[list[str]]:
    """The names of the tools of every agent in a snapshot; empty if it lists none."""
    if is_array(graph):
        for part in graph:
            yield from _tool_lists(part)
    elif is_object(graph):
        for key, part in graph.items():
            if key == "tools" and is_array(part):
                yield [*_names(part)]
            else:
                yield from _tool_lists(part)


def _names(tools: Sequence[Json]) -> Iterator[str]:
    """The names of tools, which some frameworks group in toolsets."""
    for tool in tools:
        if is_array(tool):
            yield from _names(tool)
        else:
            yield str(tool.get("name") if is_object(tool) else tool)


def _mock_failures(ledger: Ledger) -> list[str]:
    return [
        f"the mock of {end.tool!r} failed: {end.error}"
        for end in ledger.index_of().results.values()
        if isinstance(end, ToolFailed) and end.source in ("mock", "simulated")
    ]


def _vouched(scores: Mapping[str, Outcome]) -> bool:
    """Whether a metric found the simulated user in character."""
    return any(
        isinstance(outcome, Score) and outcome.passed and _QUALITY in (name, outcome.name)
        for name, outcome in scores.items()
    )
