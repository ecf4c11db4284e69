"""Expected tools and scopes that look misspelt, found before the first case runs."""

from collections.abc import Collection, Iterator
from difflib import get_close_matches

from greenroom.backends.backend import Backend
from greenroom.backends.registry import backend_for
from greenroom.cases.case import Case
from greenroom.cases.checks import scope_problems
from greenroom.cases.evalset import EvalSet
from greenroom.errors import BadCase
from greenroom.simulation.mock_names import unknown_names

_ALIKE = 0.8
_HANDOVERS = ("transfer_to_", "transfer_")
"""Frameworks make up the names of such calls, one for each agent."""


def check_expected(backend: Backend | None, cases: EvalSet) -> list[str]:
    """Refuse expected calls of tools that the agent has under a similar name; notes on other doubts.

    A tool with a name like no other may be one that the agent is still to get, so a run that expects
    it fails as usual, and says that the agent has no such tool.
    """
    misspelt: list[str] = []
    others: list[str] = []
    notes: dict[str, None] = {}
    for case in cases:
        runs_it = backend if case.agent is None else backend_for(case.agent)
        offered = None if runs_it is None else runs_it.tools
        if offered is not None:
            misspelt += _misspelt_tools(offered, case)
            others += unknown_names(case, offered, case.allow_tools)
        for problem in scope_problems(case, f"case {case.id!r}"):
            notes[f"{problem.where}: {problem.message}. {problem.fix}"] = None
    if misspelt:  # alone, misspelt mocks are errors of their cases
        raise BadCase("\n".join([*misspelt, *others]))
    return list(notes)


def _misspelt_tools(offered: Collection[str], case: Case) -> Iterator[str]:
    # An agent inside a tool or a step may have a tool of a similar name: a case that says what it
    # answers knows of it, and whether that is misspelt is looked at with the names of mocks.
    named = {*case.mocks, *(name for name in case.allow_tools if isinstance(name, str))}
    for name in dict.fromkeys(_expected(case)):
        if name in named:
            continue
        near = get_close_matches(name, offered, 1, _ALIKE)
        if near and name not in offered and not name.startswith(_HANDOVERS):
            yield (
                f"case {case.id!r} expects a call of {name!r}, but the agent has no tool of that name. "
                f"Did you mean {near[0]!r}? It offers {sorted(offered)}."
            )


def _expected(case: Case) -> Iterator[str]:
    for turn in case.script:
        for wanted in (turn.expect.tools if turn.expect else None) or ():
            yield wanted if isinstance(wanted, str) else wanted.tool
