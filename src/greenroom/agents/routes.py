"""Loops and routes: flow that decides how it continues."""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from msgspec import Struct, structs

from greenroom.agents.deciders import Decider, checked_decider, decider_facts, describe_decider
from greenroom.agents.flow import Flow, OnePart, Sequence, as_flow, checked_name
from greenroom.errors import BadAgent
from greenroom.ledger.functions import Anything


class Loop(OnePart, frozen=True, eq=False):
    """Repeats its body until it should stop; with `awaits_input` each round waits for the user."""

    until: Decider | None = None
    awaits_input: bool = False
    max_rounds: int | None = None
    wants: tuple[str, ...] = ()

    @property
    def segment(self) -> str:
        """`loop#1` is its first round."""
        return "loop"

    def joint(self, key: str) -> str:  # noqa: ARG002 - it has one part
        """The same for every round."""
        return "#"

    def facts(self) -> dict[str, Any]:
        """When it ends."""
        return {
            "until": decider_facts(self.until),
            "awaits_input": self.awaits_input,
            "max_rounds": self.max_rounds,
        }

    def code(self) -> dict[str, Callable[..., Any]]:
        """The function that says when it ends, if it is a function."""
        return {"until": self.until} if callable(self.until) else {}

    def __repr__(self) -> str:
        options = [f"until={describe_decider(self.until)}"] if self.until is not None else []
        if self.awaits_input:
            options.append("awaits_input=True")
        if self.max_rounds is not None:
            options.append(f"max_rounds={self.max_rounds}")
        return f"loop({', '.join([repr(self.body), *options])})"


def loop(
    *body: Anything,
    until: Anything = None,
    awaits_input: bool = False,
    max_rounds: int | None = None,
) -> Loop:
    """Repeat `body` until `until` holds: a function, or a query such as {"session": {"done": True}}.

    In a query the fields of a schema may be used for their places: {Order.done: True}. A place alone
    holds when its value is true.

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
    decider, wants = checked_decider(until, "until")
    return Loop(whole, decider, awaits_input, max_rounds, wants)


class Route(Flow, Struct, frozen=True, eq=False):
    """One of several, chosen by the state or by a function."""

    on: Decider
    branches: Mapping[str, Flow]
    otherwise: str = ""
    wants: tuple[str, ...] = ()

    @property
    def segment(self) -> str:
        """`route.billing` leads to the branch `billing`."""
        return "route"

    def children(self) -> Mapping[str, Flow]:
        """The branches."""
        return self.branches

    def with_children(self, children: Mapping[str, Flow]) -> "Route":
        """This choice among other branches."""
        return structs.replace(self, branches=MappingProxyType(dict(children)))

    def facts(self) -> dict[str, Any]:
        """The place or function that decides."""
        return {"on": decider_facts(self.on)}

    def code(self) -> dict[str, Callable[..., Any]]:
        """The function that chooses, if it is a function."""
        return {"on": self.on} if callable(self.on) else {}

    def __repr__(self) -> str:
        named = [f"{key}={flow!r}" for key, flow in self.branches.items()]
        return f"route({', '.join([describe_decider(self.on), *named])})"


def route(on: Anything, /, **branches: Anything) -> Route:
    """Take one of several branches: `route("session.kind", billing=a, refund=b, otherwise=c)`.

    `on` is a place in the state (a string or a field of a schema) or a function that returns a
    branch's name.
    """
    if not branches:
        raise BadAgent("route(...) has no branches; give them by name: route(on, billing=agent).")
    flows = {checked_name(key, "a branch"): as_flow(flow) for key, flow in branches.items()}
    otherwise = "otherwise" if "otherwise" in flows else ""
    decider, wants = checked_decider(on, "route")
    if decider is None:
        raise BadAgent(
            "route(None, ...) has nothing to decide by; name a place or give a function."
        )
    return Route(decider, MappingProxyType(flows), otherwise, wants)
