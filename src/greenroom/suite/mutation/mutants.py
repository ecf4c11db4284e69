"""Mutants: the agent under test, changed for the worse in one way, with the cases that it runs."""

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from typing import Any, cast

from msgspec import Struct

from greenroom.agents.agent import Agent
from greenroom.agents.graph import with_agents
from greenroom.backends.backend import Backend, ToolFacts
from greenroom.backends.native import NativeBackend
from greenroom.backends.registry import backend_for
from greenroom.cases.case import Case
from greenroom.cases.mocks import ByArgs, Live, fault
from greenroom.ledger.messages import ToolCall
from greenroom.ledger.plain import Json
from greenroom.ledger.query import has_operators
from greenroom.models.chooser import Chooser
from greenroom.models.model import Model
from greenroom.simulation.tool_identity import names_tool
from greenroom.suite.inputs.sources import as_model_given
from greenroom.suite.mock_suggestions import suggested_mock
from greenroom.suite.mutation.mutant_models import SAYS_NOTHING, LessenedModel, MutantModel

MOST_RULES = 12
"""How many rules are deleted at most, one by one: each costs a run."""
_IDLE: Mapping[str, tuple[str, str | None]] = {
    "mute": (f"says only “{SAYS_NOTHING}”, calls no tool", SAYS_NOTHING),
    "refusing": ("refuses politely, calls no tool", "I am sorry, but I cannot help with that."),
    "echo": ("repeats the user's words, calls no tool", None),
}
_NO_MODEL = "no model of the agent can be replaced: give the model that answers for it (model=)"


class Mutant(Struct, frozen=True, kw_only=True):
    """One way to be worse, and what is run to see whether the cases notice."""

    name: str
    about: str
    agent: Any = None
    cases: tuple[Case, ...] = ()
    does_nothing: bool = False
    asks: bool = False
    """Whether it asks the agent's own model, which costs what the agent costs."""
    cannot: str = ""
    """Why the agent cannot be changed in this way; empty if it can."""
    missed: str = ""
    """Why it survives without being run; empty if it must be run."""


class Original(Struct, frozen=True, kw_only=True):
    """The agent as it is, its cases, and what its own run has shown of them."""

    agent: Any
    cases: tuple[Case, ...]
    backends: Mapping[str, Backend | None]
    """The backend of each case."""
    passing: frozenset[str]
    """The cases that it passes, and that can therefore show a mutant to be worse."""
    broken: frozenset[str]
    """The cases that have no verdict on it, so that nothing is known of what they notice."""
    called: Mapping[str, Collection[str]]
    """The tools that were called, by case; a case whose ledger was not kept is not in it."""
    rules: tuple[str, ...] = ()
    """The sentences of its instructions, as far as requests to its models showed them."""
    model: Model | None = None
    """The model that replaces its own models."""
    mocks: Mapping[str, Any]
    allowed: tuple[Any, ...] = ()

    def tools(self, case: Case) -> Mapping[str, ToolFacts]:
        """The tools of the agent in this case, as far as they are known before it runs."""
        backend = self.backends[case.id]
        return {} if backend is None else backend.tools or {}


def mutants_of(original: Original, *, tools: bool, rules: bool) -> list[Mutant]:
    """Every mutant of an agent, in a fixed order; those that cannot be made say why."""
    found = [*_idle(original), _over_eager(original)]
    if tools:
        found += _without_tools(original)
    if rules:
        found += _without_rules(original)
    return found


# Mutants that answer by themselves


def _idle(original: Original) -> Iterator[Mutant]:
    for name, (about, words) in _IDLE.items():
        cases = (
            replace(case, model=MutantModel(words, frozenset(original.tools(case))))
            for case in original.cases
        )
        yield _answering(original, name, about, tuple(cases), does_nothing=True)


def _over_eager(original: Original) -> Mutant:
    name, about = "over-eager", "calls every tool it has once, then says “Done.”"
    cases = tuple(_eager(original, case) for case in original.cases if case.id in original.passing)
    if not any(original.tools(case) or case.mocks for case in original.cases):
        return Mutant(name=name, about=about, cannot="the agent has no tools that are known")
    return _answering(original, name, about, cases)


def _answering(
    original: Original,
    name: str,
    about: str,
    cases: tuple[Case, ...],
    *,
    does_nothing: bool = False,
) -> Mutant:
    seen = (backend for backend in original.backends.values() if backend is not None)
    unseen = [backend.name for backend in seen if backend.models == "opaque"]
    cannot = f"no gate sees the models of an agent run by {unseen[0]!r}" if unseen else ""
    return Mutant(
        name=name,
        about=about,
        agent=original.agent,
        cases=cases,
        does_nothing=does_nothing,
        cannot=cannot,
    )


def _eager(original: Original, case: Case) -> Case:
    """The case with a model that calls all tools, and mocks for those that have none.

    A tool that would run for real is not called: an agent may be trusted with it, a mutant may not.
    """
    tools, mocks = original.tools(case), {**original.mocks, **case.mocks}
    allowed = (*original.allowed, *case.allow_tools)
    added = {
        name: suggested_mock(facts)["value"]
        for name, facts in tools.items()
        if name not in mocks
        and not facts.yields
        and not any(names_tool(one, name, facts.origin) for one in allowed)
    }
    safe = [name for name in mocks if not _really_runs(mocks[name], tools.get(name))]
    expected = {
        wanted.tool: _fixed(wanted.args)
        for turn in case.script
        if turn.expect is not None
        for wanted in turn.expect.tools or ()
        if isinstance(wanted, ToolCall)
    }
    calls = {name: expected.get(name) or _meant(mocks.get(name)) for name in (*safe, *added)}
    model = MutantModel("Done.", frozenset(tools), calls)
    return replace(case, model=model, mocks={**added, **case.mocks})


def _really_runs(mock: object, facts: ToolFacts | None) -> bool:
    """Whether a mock may be the tool itself, which its author lets run."""
    if isinstance(mock, Live):
        return True
    is_code = callable(mock) or hasattr(mock, "name")
    return is_code and (facts is None or names_tool(mock, facts.name, facts.origin))


def _meant(mock: object) -> Mapping[str, Json]:
    """The arguments that a mock was written for."""
    return _fixed(mock.answers[0][0]) if isinstance(mock, ByArgs) and mock.answers else {}


def _fixed(args: Mapping[str, Any]) -> Mapping[str, Json]:
    """The arguments without those that are queries, such as `{"$gt": 5}` or a function."""

    def is_query(value: object) -> bool:
        return callable(value) or (isinstance(value, dict) and has_operators(cast(Any, value)))

    return {name: value for name, value in args.items() if not is_query(value)}


# Mutants that ask the agent's own model


def _without_tools(original: Original) -> Iterator[Mutant]:
    known = dict.fromkeys(name for case in original.cases for name in original.tools(case))
    for tool in known:
        # In a case that does not call the tool, the mutant does what the agent does; a difference would be chance.
        played = [
            case
            for case in original.cases
            if case.id in original.passing and tool in original.called.get(case.id, (tool,))
        ]
        agent, lessened = _lessened(original, played, tool=tool)
        # Where a framework asks its own model, the tool stays on offer, and every call of it fails.
        failing = fault(f"{tool} is not available")
        cases = [
            replace(case, mocks={**case.mocks, tool: failing}) if less is None else less
            for case, less in zip(played, lessened, strict=True)
        ]
        yield Mutant(
            name=f"without {tool}",
            about="every call of the tool fails" if None in lessened else "the tool is taken away",
            agent=agent,
            cases=tuple(cases),
            asks=True,
            cannot=_unknown(original, is_played=bool(played)),
            missed="" if played else "no case that the agent passes calls it",
        )


def _unknown(original: Original, *, is_played: bool) -> str:
    """Why it is not known whether cases would notice that a tool is missing; empty if it can be found out."""
    if not original.passing:
        return "the agent passes no case"
    if is_played or not original.broken:
        return ""
    return f"case {min(original.broken)!r}, which may call it, broke with the agent itself"


def _without_rules(original: Original) -> Iterator[Mutant]:
    passing = [case for case in original.cases if case.id in original.passing]
    for number, rule in enumerate(original.rules[:MOST_RULES], start=1):
        agent, lessened = _lessened(original, passing, rule=rule)
        cases = tuple(case for case in lessened if case is not None)
        yield Mutant(
            name=f"without rule {number}",
            about=f"the rule is deleted: {rule}",
            agent=agent,
            cases=cases,
            asks=True,
            cannot="" if cases else _NO_MODEL,
        )


def _lessened(
    original: Original, cases: Collection[Case], *, tool: str = "", rule: str = ""
) -> tuple[object, list[Case | None]]:
    """The agent and the cases with models that know less; None for a case where no model can be changed."""
    agent = _agent_without(original.agent, tool, rule)

    def less(case: Case) -> Case | None:
        if (answering := as_model_given(case.model) or original.model) is not None:
            return replace(case, model=LessenedModel(answering, tool=tool, rule=rule))
        if case.agent is None:
            return None if agent is None else case
        changed = _agent_without(case.agent, tool, rule)
        return None if changed is None else replace(case, agent=changed)

    return original.agent if agent is None else agent, [less(case) for case in cases]


def _agent_without(agent: object, tool: str, rule: str) -> object:
    """A copy of one of Greenroom's own agents whose models know less; None if that cannot be made."""
    backend = None if agent is None else backend_for(agent)
    if not isinstance(backend, NativeBackend):
        return None
    found: list[Agent] = []

    def lessened(one: Agent) -> Agent:
        found.append(one)
        model: Any = one.model
        return replace(one, model=LessenedModel(model, tool=tool, rule=rule))

    changed = with_agents(backend.graph.root.flow, lessened)
    # A choice of models looks at the run itself, so it cannot be wrapped.
    can = bool(found) and not any(isinstance(one.model, Chooser) for one in found)
    return changed if can else None


def rules_in(instructions: str) -> list[str]:
    """The sentences of instructions, unchanged; headings and bare marks do not count."""
    found: list[str] = []
    for line in instructions.splitlines():
        text = re.sub(r"^\s*(?:[-*•]|\d+[.)])\s+", "", line).strip()
        if text and not text.startswith("#"):
            found += [one for one in re.split(r"(?<=[.!?])\s+", text) if re.search(r"\w", one)]
    return found
