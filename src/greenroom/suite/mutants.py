"""Cases put to the test: agents that are broken on purpose have to fail some of them."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Unpack

from msgspec import Struct
from msgspec.structs import replace

from greenroom.agents.flow import Flow
from greenroom.agents.graph import compile_flow
from greenroom.ledger.messages import ToolCall
from greenroom.ledger.plain import Json
from greenroom.ledger.snapshots import Facts, as_facts, parts_of
from greenroom.models.model import ModelReply, ModelRequest
from greenroom.models.scripted import Scripted
from greenroom.results.report import Report
from greenroom.suite.evaluation import evaluate
from greenroom.suite.options import Options
from greenroom.suite.plan import Cases
from greenroom.suite.references import load_agent
from greenroom.world.middleware.protocol import Ask, Middleware
from greenroom.world.middleware.stack import MiddlewareStack

_SENTENCE = re.compile(r"(?<=[.!?])\s+|\n+")
_EXAMPLES: Mapping[str, Json] = {
    "integer": 1,
    "number": 1.0,
    "boolean": True,
    "array": [],
    "object": {},
}


class Mutation(Struct, frozen=True):
    """What cases have noticed of agents that were broken on purpose.

    `mutants` names for each of them the cases that passed with the agent itself and no longer do. `impossible`
    cases do not pass with the agent itself; `trivial` ones pass whatever it answers.
    """

    mutants: Mapping[str, tuple[str, ...]]
    impossible: tuple[str, ...]
    trivial: tuple[str, ...]

    @property
    def survivors(self) -> list[str]:
        """The mutants that no case noticed."""
        return [name for name, noticed in self.mutants.items() if not noticed]

    @property
    def score(self) -> float:
        """The share of mutants that were noticed."""
        return 1 - len(self.survivors) / len(self.mutants)

    def __str__(self) -> str:
        lines = [
            f"{len(self.mutants) - len(self.survivors)} of {len(self.mutants)} mutants noticed"
        ]
        lines += [f"not noticed: {name}" for name in self.survivors]
        lines += [f"passes whatever is answered: {case}" for case in self.trivial]
        lines += [f"does not pass with the agent itself: {case}" for case in self.impossible]
        return "\n".join(lines)


async def mutation(agent: Any, cases: Cases, **options: Unpack[Options]) -> Mutation:
    """Evaluate broken versions of `agent` on the same cases, and say which of them no case notices.

    One says nothing, one refuses, one calls every tool first: these run with every agent whose model can be
    replaced. Of Greenroom's own agents there is also one without each tool and one without each sentence of the
    instructions, which ask the agent's own models. Takes the options of `evaluate`; nothing is stored unless
    `store` is given.
    """
    options.setdefault("store", False)
    agent = await load_agent(agent) if isinstance(agent, str) else agent
    good = _passed(await evaluate(agent, cases, **options))
    stack = MiddlewareStack.of(options.get("middleware", ()))
    around: Sequence[Any] = () if stack is None else stack.members
    kept = {case for case, passed in good.items() if passed}
    mutants: dict[str, tuple[str, ...]] = {}
    trivial = kept
    for name, changes in _mutants(agent, around):
        told = _passed(await evaluate(agent, cases, **{**options, **changes}))
        mutants[name] = tuple(case for case in good if case in kept and not told[case])
        if "model" in changes:
            trivial = trivial - {*mutants[name]}
    impossible = tuple(case for case in good if case not in kept)
    return Mutation(mutants, impossible, tuple(case for case in good if case in trivial))


def _mutants(agent: Any, around: Sequence[Any]) -> Iterator[tuple[str, Options]]:
    """Each mutant by its name, as options of its evaluation."""
    for name, model in _MODELS.items():
        yield name, {"model": model}
    for name, censor in _censors(agent):
        yield name, {"middleware": [*around, censor]}


def _passed(report: Report) -> dict[str, bool]:
    """Whether every trial of each case passed."""
    found: dict[str, bool] = {}
    for result in report:
        found[result.case_id] = found.get(result.case_id, True) and result.passed
    return found


# Models that answer in place of the agent's own


def _eager(request: ModelRequest) -> ModelReply:
    calls = [ToolCall(tool.name, _example(tool.parameters)) for tool in request.tools]
    return ModelReply("" if calls else "Done.", tuple(calls))


def _example(schema: Mapping[str, Any]) -> dict[str, Json]:
    """Arguments that a tool may take."""
    fields, wanted = schema.get("properties", {}), schema.get("required", ())
    return {name: _EXAMPLES.get(str(fields.get(name, {}).get("type")), "x") for name in wanted}


_MODELS = {
    "says nothing": Scripted(then="…", name="mute"),
    "refuses": Scripted(then="I am sorry, I cannot help with that.", name="refusing"),
    "calls every tool": Scripted(_eager, then="Done.", name="eager"),
}


# What is taken away from questions to the agent's own models


class _Censor(Middleware):
    """Hides a tool, or a rule, from the agent's models."""

    name = "mutant"

    def __init__(self, tool: str = "", rule: str = "") -> None:
        self._tool, self._rule = tool, rule

    async def around_attempt(self, request: ModelRequest, ask: Ask) -> ModelReply:
        """Ask without it."""
        tools = [tool for tool in request.tools if tool.name != self._tool]
        told = request.instructions.replace(self._rule, "") if self._rule else request.instructions
        return await ask(replace(request, tools=tools, instructions=told))


def _censors(agent: Any) -> Iterator[tuple[str, _Censor]]:
    if not isinstance(agent, Flow):
        return
    graph = compile_flow(agent)
    for tool in graph.tools:
        yield f"without the tool {tool}", _Censor(tool=tool)
    for rule in dict.fromkeys(_rules(as_facts(graph.snapshot))):
        yield f"without the rule {rule!r}", _Censor(rule=rule)


def _rules(facts: Facts) -> Iterator[str]:
    if isinstance(told := facts.get("instructions"), str):
        yield from (rule for rule in _SENTENCE.split(told) if rule.strip())
    for part in parts_of(facts).values():
        yield from _rules(part)
