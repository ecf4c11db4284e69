"""Contracts before the first model call: every case's agent, checked with the case's own starting state."""

import inspect
from collections.abc import Hashable, Iterator, Mapping
from typing import Any, Literal
from weakref import WeakKeyDictionary

from greenroom.agents.contracts import Given, check
from greenroom.agents.contracts.access import changes_by_result
from greenroom.agents.contracts.registry import has_registered_checks
from greenroom.agents.contracts.schemas import fields_in, misfits
from greenroom.agents.graph import Graph
from greenroom.backends.backend import Backend
from greenroom.backends.native import NativeBackend
from greenroom.backends.registry import backend_for
from greenroom.cases.case import Case
from greenroom.cases.evalset import EvalSet
from greenroom.cases.mocks import NOTHING, ByArgs, Fault, InTurn, Live, has_execute
from greenroom.cases.users import Lines, SimulatedUser
from greenroom.errors import BadAgent
from greenroom.ledger.changes import WithStateChange
from greenroom.ledger.plain import JSON_TYPES

Checking = Literal["warn", "error", "off"]
"""What errors lead to: a note in the report, the end of the run, or nothing."""
_FEW = 3
_KEPT = 1000
Checked = WeakKeyDictionary[Graph, dict[Hashable, list[str]]]
_checked = Checked()
"""The errors found in each graph, so that one that runs again and again, as in tests, is checked once."""


def check_cases(backend: Backend | None, cases: EvalSet, checking: Checking) -> list[str]:
    """A note for each error in the contracts of the cases' agents; BadAgent if errors should stop the run."""
    found: dict[str, list[str]] = {}
    # Other checks may be registered in this process by the next run.
    checked = Checked() if has_registered_checks() else _checked
    for case in cases:
        graph = _graph(backend, case)
        if graph is None:
            continue
        # What the script says and sends; every agent accepts plain text.
        sent = (one.modality for turn in case.script for one in turn.attachments)
        given = Given(case.state, tuple(_others(graph, case)), tuple(dict.fromkeys(sent)))
        wrong = tuple(place for place, _ in misfits(fields_in(graph), given))
        # Many cases start with different values under the same keys: one check serves them all.
        key = (given.places, given.others, given.modalities, wrong)
        known = checked.setdefault(graph, {})
        if key not in known:
            if len(known) == _KEPT:
                known.clear()
            known[key] = [str(issue) for issue in check(graph, given=given).errors]
        for issue in known[key]:
            found.setdefault(issue, []).append(case.id)
    lines = [f"{issue}{_in_cases(ids, len(cases))}" for issue, ids in found.items()]
    if lines and checking == "error":
        listed = "\n".join(f"  {line}" for line in lines)
        raise BadAgent(
            f"the agent does not keep its contracts, so no case was run:\n{listed}\n"
            f'Fix that, or run with check="warn" (--check warn).'
        )
    return [f"contracts: {line}" for line in lines]


def _graph(backend: Backend | None, case: Case) -> Graph | None:
    """The graph that a case runs, if its agent is Greenroom's own."""
    found = backend if case.agent is None else backend_for(case.agent)
    found = getattr(found, "sample", found)
    if not isinstance(found, NativeBackend):
        return None
    return found.part(case.target).graph if case.target else found.graph


def _others(graph: Graph, case: Case) -> Iterator[str]:
    """The mocks and users that may change the agent's state in this case."""
    for name, mock in case.mocks.items():
        tool = graph.tools.get(name)
        is_declared = tool is not None and (tool.reads or tool.writes)
        if not is_declared and _changes_state(mock):
            yield f"the mock of {name!r}"
    if case.bridge is not None:
        yield "the bridge"
    if not _is_plain(case.user):
        yield "the user"


def _changes_state(mock: object) -> bool:
    """Whether a mock may change the state: it is given the context, or its result asks for that."""
    match mock:
        case _ if type(mock) in JSON_TYPES:
            return False
        case InTurn():
            return any(map(_changes_state, mock.answers))
        case ByArgs():
            answers = [answer for _, answer in mock.answers]
            return any(map(_changes_state, [*answers, *([mock.otherwise] * mock.has_otherwise)]))
        case WithStateChange():
            return True
        case Fault():
            return mock.lost is not NOTHING and _changes_state(mock.lost)
        case Live():
            return False
        case _ if has_execute(mock):
            return True
        case _ if callable(mock):
            return changes_by_result(mock) or _asks_for_context(mock)
        case _:
            return False


def _asks_for_context(mock: Any) -> bool:
    try:
        names: Mapping[str, Any] = inspect.signature(mock).parameters
    except (TypeError, ValueError):
        return True
    return not {"ctx", "context"}.isdisjoint(names)


def _is_plain(user: object) -> bool:
    """Whether a user only talks."""
    if isinstance(user, Lines):
        is_data = not any(isinstance(line, WithStateChange) for line in user.lines)
        return is_data and _is_plain(user.then)
    return user is None or isinstance(user, SimulatedUser | str)


def _in_cases(ids: list[str], count: int) -> str:
    if len(ids) == count:
        return ""
    more = f" and {len(ids) - _FEW} more" if len(ids) > _FEW else ""
    word = "case" if len(ids) == 1 else "cases"
    return f" ({word} {', '.join(map(repr, ids[:_FEW]))}{more})"
