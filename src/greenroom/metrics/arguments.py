"""Compares the arguments of a call with the expected ones."""

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast, get_args

from msgspec import Struct

from greenroom.errors import BadMetric
from greenroom.ledger.arguments import ArgsMatch, args_match, value_fits
from greenroom.ledger.events import ToolCalled
from greenroom.ledger.messages import ToolCall
from greenroom.ledger.plain import Json, plain
from greenroom.ledger.query import MISSING, holds, value_at
from greenroom.metrics.builtin import checked_choice, checked_texts

WantedValue = ToolCall | str
"""A call with these arguments, or a tool's name when any arguments will do."""

ARGS_MATCHES: tuple[str, ...] = get_args(ArgsMatch)

ArgsRule = ArgsMatch | tuple[str, ...] | Callable[..., object]
"""For one tool: a way to match, the only arguments that count, or a predicate."""


class Arguments(Struct, frozen=True, kw_only=True):
    """How the arguments of calls are compared; rules for one tool take precedence over the general one."""

    match: ArgsMatch
    tools: Mapping[str, ArgsRule]
    ignored: tuple[str, ...]
    ignored_of: Mapping[str, tuple[str, ...]]
    tolerance: float

    @property
    def ignores_all(self) -> bool:
        """Whether no argument of any call is compared."""
        return all(rule == "ignore" for rule in (self.match, *self.tools.values()))

    def named(self) -> dict[str, list[str]]:
        """The only arguments that count, by tool; none for a tool with another rule.

        Arguments to ignore are not among them: a model may make up some that the tool does not have.
        """
        found: dict[str, list[str]] = {tool: [] for tool in self.ignored_of}
        for tool, rule in self.tools.items():
            dotted = cast("tuple[str, ...]", rule) if isinstance(rule, tuple) else ()
            found[tool] = [name.partition(".")[0] for name in dotted]
        return found

    def fit(self, wanted: WantedValue, made: ToolCalled) -> bool:
        """Whether the call is the expected one."""
        tool = wanted if isinstance(wanted, str) else wanted.tool
        if tool != made.tool:
            return False
        rule = self.tools.get(tool, self.match)
        if callable(rule):
            return _passes(rule, made, wanted)
        if isinstance(wanted, str) or rule == "ignore":
            return True
        if isinstance(rule, tuple):
            places = [(value_at(wanted.args, at), value_at(made.args, at)) for at in rule]
            return all(
                have is MISSING if want is MISSING else value_fits(want, have, self.tolerance)
                for want, have in places
            )
        given, args = wanted.args, made.args
        if ignored := (*self.ignored, *self.ignored_of.get(tool, ())):
            given, args = without(given, ignored), without(args, ignored)
        return args_match(given, args, rule, self.tolerance)


def _passes(predicate: Callable[..., object], made: ToolCalled, wanted: WantedValue) -> bool:
    """Whether a predicate accepts the call's arguments, alone or together with the expected ones."""
    args = cast("dict[str, Json]", plain(made.args))
    try:
        takes_both = len(inspect.signature(predicate).parameters) > 1
    except ValueError:
        takes_both = False  # some built-in types have no readable signature
    if not takes_both:
        return holds(predicate, args)
    given = {} if isinstance(wanted, str) else dict(wanted.args)
    return holds(lambda have: predicate(have, given), args)


def without(args: Mapping[str, Any], ignored: Sequence[str]) -> dict[str, Any]:
    """The arguments without those at the given dotted names."""
    kept = dict(args)
    for dotted in ignored:
        name, _, rest = dotted.partition(".")
        if dotted in kept:
            del kept[dotted]
        elif rest and isinstance(kept.get(name), Mapping):
            kept[name] = without(kept[name], (rest,))
    return kept


def arguments(
    factory: str,
    match: ArgsMatch,
    tools: object,
    ignored: Sequence[str] | Mapping[str, Sequence[str]],
    tolerance: float,
) -> Arguments:
    """How to compare arguments, from options given in code or a file; BadMetric if they are invalid."""
    checked_choice(match, ARGS_MATCHES, "args", factory)
    if tools is not None and not isinstance(tools, Mapping):
        raise BadMetric(f"{factory}(...) has tool_args={tools!r}; give a mapping by tool.")
    if type(tolerance) not in (int, float) or not 0 <= tolerance < float("inf"):
        raise BadMetric(f"{factory}(...) has tolerance={tolerance!r}; give a number, 0 or more.")
    by_tool = cast("Mapping[str, object]", tools or {})
    of_tools: Mapping[str, Sequence[str]] = ignored if isinstance(ignored, Mapping) else {}
    return Arguments(
        match=match,
        tools={tool: _rule(rule, tool, factory) for tool, rule in by_tool.items()},
        ignored=()
        if isinstance(ignored, Mapping)
        else checked_texts(ignored, "ignore_args", factory),
        ignored_of={
            tool: checked_texts(names, f"ignore_args[{tool!r}]", factory)
            for tool, names in of_tools.items()
        },
        tolerance=tolerance,
    )


def _rule(rule: object, tool: str, factory: str) -> ArgsRule:
    if callable(rule):
        return rule
    option = f"tool_args[{tool!r}]"
    if isinstance(rule, list | tuple):
        if not rule:
            raise BadMetric(
                f"{factory}(...) has {option}=[], so no argument counts; write 'ignore' for that."
            )
        return checked_texts(cast("list[object]", rule), option, factory)
    checked_choice(rule, ARGS_MATCHES, option, factory)
    return cast("ArgsMatch", rule)
