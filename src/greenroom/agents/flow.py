"""Flow: how agents and steps are put together. Every expression is immutable."""

import functools
import inspect
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, overload

from greenroom.agents.places import Places, declared_places
from greenroom.agents.signature import function_name, wanted_names
from greenroom.errors import BadAgent
from greenroom.ledger.query import check_query

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*\Z")
_RESERVED = ("seq", "par", "loop", "route")

Decider = str | Mapping[str, Any] | Callable[..., Any]


def checked_name(name: object, what: str, reserved: tuple[str, ...] = _RESERVED) -> str:
    """A name that can stand in a path."""
    if not isinstance(name, str) or not _NAME.match(name):
        raise BadAgent(
            f"{what} is named {name!r}; use letters, digits, _ and -, beginning with a letter."
        )
    if name in reserved:
        raise BadAgent(f"{what} is named {name!r}, which paths use themselves; choose another.")
    return name


class Flow:
    """Anything that can be put in sequence (`a >> b`) or side by side (`a | b`)."""

    __slots__ = ()

    def __rshift__(self, other: object) -> "Sequence":
        return Sequence((*_parts(self, Sequence), *_parts(as_flow(other), Sequence)))

    def __rrshift__(self, other: object) -> "Sequence":
        return as_flow(other) >> self

    def __or__(self, other: object) -> "Parallel":
        return Parallel((*_parts(self, Parallel), *_parts(as_flow(other), Parallel)))

    def __ror__(self, other: object) -> "Parallel":
        return as_flow(other) | self


def _parts(flow: Flow, kind: "type[Sequence | Parallel]") -> tuple[Flow, ...]:
    return flow.parts if isinstance(flow, kind) else (flow,)


def as_flow(given: object) -> Flow:
    """A flow from a flow or a plain function, which becomes a step."""
    if isinstance(given, Flow):
        return given
    if callable(given):
        return step(given)
    raise BadAgent(f"{given!r} cannot be part of a flow; use an Agent, a step or a function.")


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Step(Flow):
    """Plain code as a node; it may read and change the state, and cannot pause."""

    name: str
    fn: Callable[..., Any]
    retries: int = 0
    writes: Places = ()
    wants: tuple[str, ...] = ()
    reads: Places = ()

    def __post_init__(self) -> None:
        for name in ("reads", "writes"):
            places = declared_places(getattr(self, name), f"{name}= of step {self.name!r}")
            object.__setattr__(self, name, places)

    def __repr__(self) -> str:
        return self.name

    def arguments(self, context: Any) -> dict[str, Any]:
        """What the function asked for by name."""
        return named_arguments(self.wants, context)


STEP_NAMES = ("ctx", "context", "input", "state")
DECIDER_NAMES = ("ctx", "context", "input", "output", "state")


def named_arguments(names: tuple[str, ...], context: Any) -> dict[str, Any]:
    """Values for the parameters a step or decider asked for."""
    return {n: context if n in ("ctx", "context") else getattr(context, n) for n in names}


@overload
def step(fn: Callable[..., Any], /) -> Step: ...
@overload
def step(
    fn: Callable[..., Any],
    /,
    *,
    name: str = "",
    retries: int = 0,
    reads: Places = (),
    writes: Places = (),
) -> Step: ...
@overload
def step(
    *, name: str = "", retries: int = 0, reads: Places = (), writes: Places = ()
) -> Callable[[Callable[..., Any]], Step]: ...
def step(
    fn: Callable[..., Any] | None = None,
    /,
    *,
    name: str = "",
    retries: int = 0,
    reads: Places = (),
    writes: Places = (),
) -> Step | Callable[[Callable[..., Any]], Step]:
    """Make a function a step. It may ask for `ctx`, `input` and `state`; what it returns goes on.

    `retries` tries a failing step again. `writes` puts its output into the state: whole at one place,
    or of a mapping each part at the place that ends in its name; a place that the step has changed
    itself is left as it is, and so are all where a step with `state` or `ctx` returns nothing.
    `reads` are the places that it looks at.
    """
    if fn is None:
        return functools.partial(step, name=name, retries=retries, reads=reads, writes=writes)
    called = name or function_name(fn).strip("<>")
    wants = wanted_names(fn, STEP_NAMES, "step")
    return Step(checked_name(called, "a step"), fn, retries, writes, wants, reads)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Sequence(Flow):
    """One after another; each part's output is the next one's input."""

    parts: tuple[Flow, ...]

    def __repr__(self) -> str:
        return " >> ".join(_inside(part, (Parallel,)) for part in self.parts)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Parallel(Flow):
    """Side by side on the same input; the state merges in this order when all are done."""

    parts: tuple[Flow, ...]

    def __repr__(self) -> str:
        return " | ".join(_inside(part, (Sequence,)) for part in self.parts)


def _inside(part: Flow, kinds: tuple[type[Flow], ...]) -> str:
    return f"({part!r})" if isinstance(part, kinds) else repr(part)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Loop(Flow):
    """Again and again until it is to stop; with `awaits_input` each round waits for the user."""

    body: Flow
    until: Decider | None = None
    awaits_input: bool = False
    max_rounds: int | None = None
    wants: tuple[str, ...] = ()

    def __repr__(self) -> str:
        options = [f"until={_describe(self.until)}"] if self.until is not None else []
        if self.awaits_input:
            options.append("awaits_input=True")
        if self.max_rounds is not None:
            options.append(f"max_rounds={self.max_rounds}")
        return f"loop({', '.join([repr(self.body), *options])})"


def loop(
    *body: object,
    until: Decider | None = None,
    awaits_input: bool = False,
    max_rounds: int | None = None,
) -> Loop:
    """Repeat `body` until `until` holds: a function, or a query such as {"session": {"done": True}}.

    With `awaits_input=True` every round but the first waits for the user's next message, and the
    conversation is over when the loop ends. Without `until` it ends after `max_rounds`; with it,
    more rounds than `max_rounds` (100 unless it awaits input) are an error.
    """
    if not body:
        raise BadAgent("loop() has nothing to repeat; give it an agent, a step or a flow.")
    if until is None and not awaits_input and max_rounds is None:
        raise BadAgent(
            "loop(...) would never end; give until=..., awaits_input=True or max_rounds."
        )
    parts = [as_flow(part) for part in body]
    whole = parts[0] if len(parts) == 1 else Sequence(tuple(parts))
    return Loop(whole, until, awaits_input, max_rounds, _decider(until, "until"))


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Route(Flow):
    """One of several, chosen by the state or by a function."""

    on: Decider
    branches: Mapping[str, Flow]
    otherwise: str = ""
    wants: tuple[str, ...] = field(default=())

    def __repr__(self) -> str:
        named = [f"{key}={flow!r}" for key, flow in self.branches.items()]
        return f"route({', '.join([_describe(self.on), *named])})"


def route(on: str | Callable[..., Any], /, **branches: object) -> Route:
    """Go one way of several: `route("session.kind", billing=a, refund=b, otherwise=c)`.

    `on` is a dotted place in the state or a function that returns a branch's name.
    """
    if not branches:
        raise BadAgent("route(...) has no branches; give them by name: route(on, billing=agent).")
    flows = {checked_name(key, "a branch"): as_flow(flow) for key, flow in branches.items()}
    otherwise = "otherwise" if "otherwise" in flows else ""
    return Route(on, MappingProxyType(flows), otherwise, _decider(on, "route"))


def _decider(given: Decider | None, what: str) -> tuple[str, ...]:
    if isinstance(given, Mapping):
        check_query(given, what)
        return ()
    if given is None or isinstance(given, str):
        return ()
    if inspect.iscoroutinefunction(given):
        # Left alone it would count as true, because every object does.
        raise BadAgent(f"{what} {function_name(given)!r} is async; decide with a plain function.")
    return wanted_names(given, DECIDER_NAMES, what)


def _describe(given: Decider | None) -> str:
    if callable(given):
        return function_name(given)
    return repr(dict(given) if isinstance(given, Mapping) else given)
