"""The checks of an agent: those that packages offer by entry points, and those of this process."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, cast

from greenroom.agents.contracts.issues import SEVERITIES, Contracts, Issue
from greenroom.agents.contracts.schemas import checked_schema
from greenroom.agents.contracts.walk import Given
from greenroom.agents.flow import Flow, as_flow
from greenroom.agents.graph import Graph, compile_flow
from greenroom.errors import BadAgent, BadInput, BadPlugin
from greenroom.plugins import Plugins

Check = Callable[[Graph, Any, Given], Iterable[Issue]]
"""A function of a graph, a schema of its state or None, and what its runs begin with; yields issues."""


def _accept(found: object, _name: str) -> Check | None:
    return cast("Check", found) if callable(found) else None


CHECKS = Plugins(
    "greenroom.checks",
    "check",
    accept=_accept,
    wanted="a function of a graph, a schema and what a run begins with, which gives issues",
)
_registered: dict[str, Check] = {}


def register_check(name: str, check: Check) -> None:
    """Add a check in this process; it replaces an installed one of the same name."""
    if not callable(check):  # pyright: ignore[reportUnnecessaryComparison]
        raise BadInput(f"the check {name!r} is {check!r}; give a function that yields issues.")
    _registered[name] = check


def has_registered_checks() -> bool:
    """Whether this process has checks in addition to those that packages offer."""
    return bool(_registered)


def forget_check(name: str) -> None:
    """Remove a check that was registered in this process."""
    _registered.pop(name, None)


def check(agent: object, schema: object = None, given: object = None) -> Contracts:
    """Find the problems of an agent without asking a model.

    `given` is the state that a run begins with, by scope as in a case; `schema` a StateSchema that the
    whole state should fit. Agents of other frameworks cannot be checked.
    """
    graph, begun, schema = _graph(agent), _given(given), checked_schema(schema)
    found: dict[Issue, None] = {}
    for name in dict.fromkeys((*CHECKS.names(), *_registered)):
        one = _registered.get(name) or CHECKS.load(name)
        found |= dict.fromkeys(_issues(name, one(graph, schema, begun)))
    order = {node.id: number for number, node in enumerate(graph.nodes())}
    in_order = sorted(
        found, key=lambda one: (SEVERITIES.index(one.severity), order.get(one.node, -1))
    )
    return Contracts(tuple(in_order))


def _issues(name: str, found: object) -> list[Issue]:
    issues = list(cast("Iterable[object]", found)) if isinstance(found, Iterable) else [found]
    wrong = [one for one in issues if not isinstance(one, Issue)]
    if wrong:
        raise BadPlugin(f"the check {name!r} gave {wrong[0]!r}; let it yield Issue(...)s.")
    return cast("list[Issue]", issues)


def _graph(agent: object) -> Graph:
    if isinstance(agent, Graph):
        return agent
    if isinstance(agent, Flow):
        return compile_flow(agent)
    kind = f"{type(agent).__module__}.{type(agent).__qualname__}"
    if type(agent).__module__ == "builtins" and callable(agent):
        return compile_flow(as_flow(agent))
    raise BadAgent(
        f"an object of type {kind} cannot be checked; contracts are for Greenroom's own agents, "
        f"steps and flows."
    )


def _given(given: object) -> Given:
    if isinstance(given, Given):
        return given
    if given is None:
        return Given()
    if not isinstance(given, Mapping) or not all(
        isinstance(held, Mapping) for held in cast("Mapping[str, object]", given).values()
    ):
        raise BadInput(
            f'given={given!r} is not a state; give values by scope: {{"session": {{"order": 7}}}}.'
        )
    return Given(cast("Mapping[str, Mapping[str, Any]]", given))
