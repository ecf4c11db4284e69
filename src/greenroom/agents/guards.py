"""Flows that guard a part: fallbacks, time limits, and taps that only look."""

from math import isfinite
from typing import Any

from greenroom.agents.deciders import hearing_names
from greenroom.agents.flow import Fallback, Flow, OnePart, Step, as_flow, checked_name
from greenroom.agents.places import Places
from greenroom.agents.signature import function_name
from greenroom.errors import BadAgent
from greenroom.ledger.functions import ByName


def fallback(*parts: object) -> Fallback:
    """Try one after another until one does not fail: `fallback(a, b)` is `a // b`.

    The next one begins with the same input when an agent, a step or a model fails. What a failed one
    did to the state stays. A refused tool, a broken mock or a wrong expression fails no part: it ends
    the case.
    """
    if not parts:
        raise BadAgent("fallback() has nothing to try; give it agents, steps or flows.")
    flows = [as_flow(part) for part in parts]
    return Fallback(
        tuple(one for f in flows for one in (f.parts if isinstance(f, Fallback) else (f,)))
    )


class Timeout(OnePart, frozen=True, eq=False):
    """A part that fails when it has worked for the given number of seconds."""

    seconds: float

    @property
    def segment(self) -> str:
        """`within/clerk` is the agent `clerk` with a time limit."""
        return "within"

    def facts(self) -> dict[str, Any]:
        """How long it may work."""
        return {"seconds": self.seconds}

    def __repr__(self) -> str:
        return f"timeout({self.body!r}, {self.seconds:g})"


def timeout(body: object, seconds: float) -> Timeout:
    """Stop `body` when it has worked for the given number of seconds; it has failed then.

    The time that the user takes to answer does not count, nor does the time between an interruption and
    the resumption. `timeout(a, 20) // b` continues with `b`.
    """
    if type(seconds) not in (int, float) or not isfinite(seconds) or seconds <= 0:
        raise BadAgent(f"timeout(..., {seconds!r}) needs a number of seconds above 0.")
    return Timeout(as_flow(body), float(seconds))


def tap(fn: ByName, *, name: str = "", reads: Places = ()) -> Step:
    """A step that looks and changes nothing: its output is its input.

    It may ask for `ctx`, `input` or `chunks`, and `state`. An exception in it becomes a note in the ledger,
    not a failure; changing the state is an error.
    """
    if isinstance(fn, Flow) or not callable(fn):
        raise BadAgent(f"tap(...) needs a function, but got {fn!r}.")
    called = checked_name(name or function_name(fn).strip("<>"), "a tap")
    wants = hearing_names(fn, "tap")
    return Step(called, fn, wants=wants, reads=reads, passes=True)
