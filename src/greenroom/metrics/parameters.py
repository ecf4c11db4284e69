"""The table of everything a metric may ask for, by the names of its parameters.

    case                  the Case that was run
    ledger                the Ledger of the trial
    world                 where a model can be asked (`await world.call_model(...)`)
    response              the agent's last words; also actual_response, final_response, output
    responses             the agent's answers to the user, in order
    messages              the conversation; also conversation, history
    tool_calls            the tool calls in order, each with its result (CallRecord);
                          also trajectory, tool_trajectory
    steps                 nodes, tools, messages and decisions in order (Step)
    events                the events of the agent's voice
    expected_tool_calls   the calls the case expects, as it wrote them;
                          also expected, expected_trajectory
    reference             the response the case expects; also expected_response; beside `response`,
                          the one that the same turn expects
    context               the case's metadata; also metadata
    state                 the final state by scope; also final_state
    usage                 the tokens of the agent's models
    cost                  what they cost in USD
    seconds               how long the trial took; also duration
    turns                 how many times the user spoke
    memory                what the agent kept in mind, in numbers (MemoryUse)
    scores                what was measured of this trial before, by the name of the metric
    note                  a function: `note("chunks", 3)` adds a detail to the score
    logger                a logger that names the case and the metric
    cancel                the run's cancellation token; `cancel.reason` is set once it must stop
    result                all of the above as attributes (`result.cost`), None where it is missing;
                          also ctx

A parameter without a default is filled; a name that is not in this table is refused when the metric
is defined. What the case lacks (reference, expected_tool_calls) makes the metric not applicable; what
the trial lacks (response, usage, cost) leaves it unmeasured. A parameter annotated `X | None` is None
instead.

A parameter with a default is your own option and is left alone, even if its name is in the
table (`seconds=3.0`), with one exception: if the default is None or the annotation allows None, it is
filled, and the default replaces what is missing.
"""

import inspect
import logging
import re
from collections.abc import Callable, Mapping, MutableMapping
from contextlib import suppress
from contextvars import ContextVar
from functools import lru_cache, partial
from types import NoneType, UnionType
from typing import Any, Protocol, Union, get_args, get_origin, get_type_hints

from msgspec import Struct, field
from msgspec.structs import replace

from greenroom.cases.case import Case
from greenroom.cases.copies import own_copy
from greenroom.cases.scores import Outcome
from greenroom.errors import BadMetric
from greenroom.ledger import questions
from greenroom.ledger.choices import near
from greenroom.ledger.ledger import Ledger
from greenroom.ledger.memory import memory_use
from greenroom.ledger.plain import plain
from greenroom.ledger.trajectory import trajectory
from greenroom.metrics.facts import (
    Missing,
    expected_calls,
    known_cost,
    known_seconds,
    known_usage,
    or_none,
    reference,
    reference_of_last_words,
    seen_calls,
    spoken,
)
from greenroom.metrics.needs import (
    CALLS,
    EVERYTHING,
    MODELS,
    NOTHING,
    STATE,
    TIMES,
    USER,
    WORDS,
    Needs,
    unseen_facts,
    without,
)
from greenroom.world.call_context import ContextSetting
from greenroom.world.world import World


class CancelToken(Protocol):
    """The token that stops a run; a metric only checks whether it was stopped."""

    @property
    def reason(self) -> str:
        """Why the run must stop; empty while it continues."""
        ...


class _NeverCancelled(Struct, frozen=True):
    reason: str = ""


class Surroundings(Struct, frozen=True):
    """What a metric may know about the measurement itself: the run's token, and earlier scores."""

    cancel: CancelToken = _NeverCancelled()
    scores: Mapping[str, Outcome] = {}


_NOTHING_KNOWN = Surroundings()
_SURROUNDINGS: ContextVar[Surroundings] = ContextVar(
    "greenroom_surroundings",
    default=_NOTHING_KNOWN,
)


def surrounded(
    cancel: CancelToken | None, scores: Mapping[str, Outcome]
) -> "ContextSetting[Surroundings]":
    """Make these available to the metrics that are measured inside this context."""
    return ContextSetting(_SURROUNDINGS, Surroundings(cancel or _NeverCancelled(), scores))


class _MetricLogger(logging.LoggerAdapter[logging.Logger]):
    """A logger that begins each line with the case and the metric."""

    def process(
        self, msg: object, kwargs: MutableMapping[str, object]
    ) -> tuple[str, MutableMapping[str, object]]:
        """The line, with the case and the metric in front."""
        where = self.extra or {}
        return f"case {where['case']!r}, metric {where['metric']!r}: {msg}", kwargs


_LOG = logging.getLogger("greenroom.metrics")


class Run(Struct, frozen=True):
    """A finished trial as a metric sees it; every name of the table is an attribute.

    What a metric changes in a case, or in earlier scores, is a copy.
    """

    rehearsed: Case
    ledger: Ledger
    world: World
    metric: str = ""
    around: Surroundings = field(default_factory=_SURROUNDINGS.get)
    noted: list[str] = field(default_factory=list)

    def note(self, name: str, value: object = None) -> None:
        """Add a detail to the score."""
        self.noted.append(name if value is None else f"{name}: {value}")

    def __getattr__(self, name: str) -> Any:
        read = KNOWN.get(name)
        if read is None:
            raise AttributeError(f"a trial has no {name!r}; it has {_nearest(name)}")
        return or_none(read(self))


Read = Callable[[Run], object]

_FACTS: dict[str, Read] = {
    "case": lambda run: own_copy(run.rehearsed),
    "ledger": lambda run: run.ledger,
    "world": lambda run: run.world,
    "response": lambda run: spoken(run.ledger),
    "responses": lambda run: questions.responses(run.ledger),
    "messages": lambda run: questions.messages(run.ledger),
    "tool_calls": lambda run: seen_calls(run.ledger),
    "steps": lambda run: trajectory(run.ledger),
    "events": lambda run: [event for event in run.ledger if event.voice == "agent"],
    "expected_tool_calls": lambda run: own_copy(expected_calls(run.rehearsed)),
    "reference": lambda run: reference(run.rehearsed),
    "context": lambda run: plain(run.rehearsed.metadata),
    "state": lambda run: questions.state(run.ledger),
    "usage": lambda run: known_usage(run.ledger),
    "cost": lambda run: known_cost(run.ledger),
    "seconds": lambda run: known_seconds(run.ledger),
    "turns": lambda run: questions.turns(run.ledger),
    "memory": lambda run: memory_use(run.ledger),
    "scores": lambda run: own_copy(run.around.scores),
    "note": lambda run: run.note,
    "logger": lambda run: _MetricLogger(_LOG, {"case": run.rehearsed.id, "metric": run.metric}),
    "cancel": lambda run: run.around.cancel,
    "result": lambda run: run,
}

_ALIASES = {
    "actual_response": "response",
    "final_response": "response",
    "output": "response",
    "conversation": "messages",
    "history": "messages",
    "trajectory": "tool_calls",
    "tool_trajectory": "tool_calls",
    "expected": "expected_tool_calls",
    "expected_trajectory": "expected_tool_calls",
    "expected_response": "reference",
    "metadata": "context",
    "duration": "seconds",
    "final_state": "state",
    "ctx": "result",
}

_NEEDS: Mapping[str, Needs] = {
    **dict.fromkeys(("ledger", "steps", "events", "result", "memory"), EVERYTHING),
    **dict.fromkeys(("response", "responses"), WORDS),
    "messages": WORDS | USER,
    "tool_calls": CALLS,
    "state": STATE,
    **dict.fromkeys(("usage", "cost"), MODELS),
    "seconds": TIMES,
}
"""What a metric that asks for this needs to have been recorded; the other names need nothing."""

KNOWN: dict[str, Read] = {
    **_FACTS,
    **{alias: _FACTS[name] for alias, name in _ALIASES.items()},
}


class WantedValue(Struct, frozen=True):
    """A parameter to be filled from the table."""

    name: str
    read: Read
    optional: bool
    default: object = None
    needs: Needs = NOTHING


WantedParameters = tuple[WantedValue, ...]


def filled(
    wants: WantedParameters, run: Run, *, declared: bool = False
) -> dict[str, object] | Missing:
    """The arguments for one trial, or the outcome that says which of them is missing and why.

    A metric that asks for the whole ledger needs everything, unless its needs are `declared`.
    """
    given: dict[str, object] = {}
    unseen = unseen_facts(run.ledger)
    for want in wants:
        missing = unseen & want.needs if unseen else NOTHING
        if want.needs == EVERYTHING and declared:
            missing = NOTHING
        value = without(missing) if missing else want.read(run)
        if isinstance(value, Missing):
            if not want.optional:
                return value
            value = want.default
        given[want.name] = value
    return given


# Reading a signature costs more than measuring, and a plain function may be given for every case.
@lru_cache(maxsize=512)
def wants_of(function: Callable[..., object], what: str) -> WantedParameters:
    """The parameters of `function` that the table fills; BadMetric for one that it cannot fill."""
    try:
        parameters = inspect.signature(function).parameters
    except (TypeError, ValueError) as error:
        raise BadMetric(f"metric {what!r} has no readable signature: {error}.") from error
    inner = function.func if isinstance(function, partial) else function
    hints: Mapping[str, object] = {}
    with suppress(Exception):  # annotations are user code, and may name what does not exist
        hints = get_type_hints(inspect.unwrap(inner))
    wants = (_wanted(p, hints.get(p.name, p.annotation), what) for p in parameters.values())
    found = tuple(want for want in wants if want is not None)
    if "response" not in {_ALIASES.get(want.name, want.name) for want in found}:
        return found
    return tuple(replace(w, read=_paired) if w.read is _FACTS["reference"] else w for w in found)


def _paired(run: Run) -> object:
    """The reference of the turn in which the response is that the function gets as well."""
    return reference_of_last_words(run.rehearsed, run.ledger)


def _wanted(parameter: inspect.Parameter, hint: object, what: str) -> WantedValue | None:
    name, default = parameter.name, parameter.default
    if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
        raise BadMetric(
            f"metric {what!r} takes {parameter}, which cannot be filled by name. "
            f"Use names from this list: {_nearest('')}."
        )
    optional = _allows_none(hint) or default is None
    if default is not parameter.empty and not (optional and name in KNOWN):
        return None
    if name not in KNOWN:
        raise BadMetric(
            f"metric {what!r} asks for {name!r}, which is not known. Use one of: {_nearest(name)}. "
            f"Rename it, or give it a default to make it an option."
        )
    if parameter.kind is parameter.POSITIONAL_ONLY:
        raise BadMetric(f"metric {what!r} takes {name!r} by position only; remove the `/`.")
    usual = None if default is parameter.empty else default
    needs = _NEEDS.get(_ALIASES.get(name, name), NOTHING)
    return WantedValue(name, KNOWN[name], optional, usual, needs)


def _allows_none(hint: object) -> bool:
    if isinstance(hint, str):
        # An annotation that could not be evaluated is still readable.
        return re.search(r"\bNone\b|\bOptional\[", hint) is not None
    if get_origin(hint) in (Union, UnionType):
        return NoneType in get_args(hint)
    return hint is NoneType


def _nearest(name: str) -> str:
    found = near(name, KNOWN, 3)
    return ", ".join([*found, *sorted(known for known in KNOWN if known not in found)])
