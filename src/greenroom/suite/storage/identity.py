"""Digests by which a resumed run, or a worker process, notices that something is different."""

import re
from collections.abc import Iterable, Mapping
from contextvars import ContextVar
from dataclasses import fields
from functools import partial
from hashlib import blake2b
from typing import Any, Final, cast

from greenroom.backends.backend import Backend
from greenroom.cases.case import Case
from greenroom.cases.data import case_data, metric_data
from greenroom.cases.evalset import EvalSet
from greenroom.cases.parts import Metric
from greenroom.errors import BadInput
from greenroom.ledger.codec import json_of
from greenroom.ledger.identity import code_identity
from greenroom.ledger.plain import Json, without_addresses
from greenroom.results.result import UNKNOWN_CODE
from greenroom.store.runs import Plan
from greenroom.suite.settings import Settings

GIVEN_AS: Final = ContextVar[str]("greenroom_agent_given_as", default="")
"""The reference by which an agent was found, if it is passed as an object."""


def plan_of(
    evalset: EvalSet, agent: object, backend: Backend | None, metrics: Iterable[Metric]
) -> Plan:
    """The plan of a run: its set, agent, cases and metrics, by digests."""
    return Plan(
        name=evalset.name or evalset.id,
        evalset_id=evalset.id,
        agent=agent if isinstance(agent, str) else str(getattr(agent, "name", "") or ""),
        digest="" if backend is None else backend.digest,
        metrics=metric_digests(metrics),
        cases=len(evalset),
        trials=evalset.trials,
        reference=agent if isinstance(agent, str) else GIVEN_AS.get(),
    )


def case_digest(case: Case) -> str:
    """Changes with the case, its mocks and what measures it."""
    return case_identity(case)[0]


def case_identity(case: Case) -> tuple[str, bool]:
    """The digest of a case, and whether it covers all of its code: not if some cannot be read."""
    try:
        text = json_of(case_data(case), repr)
    except BadInput:
        # A case that cannot be written as data does not run either, and says why itself.
        return "unknown", False
    return _digest_of(text), UNKNOWN_CODE.encode() not in text


def set_digest(cases: Iterable[tuple[str, bool]]) -> str:
    """Changes with any of these identities, whatever their order; empty where one is not certain."""
    found = sorted(cases)
    return data_digest([digest for digest, _ in found]) if all(known for _, known in found) else ""


def metric_digest(metric: Metric) -> str:
    """Changes with what a metric is made of: its options, its prompt, its model's name, its code."""
    return data_digest(metric_data(metric))


def metric_digests(metrics: Iterable[Metric]) -> dict[str, str]:
    """The digest of each metric of a run, by its name."""
    return {metric.name: metric_digest(metric) for metric in metrics}


def around_digests(settings: Settings) -> dict[str, str]:
    """The digest of all that may change what happens or what is found: middleware, plug-ins and hooks.

    What only looks, such as a writer of spans, is not among them.
    """
    parts = [("hook", name, part) for name, part in settings.hooks.replacing]
    if settings.middleware is not None:
        from greenroom.world.middleware.names import name_of  # most runs have none
        from greenroom.world.middleware.protocol import ACTING, hook_of

        for one in settings.middleware.members:
            if any(hook_of(one, hook) for hook in ACTING):
                parts.append(("middleware", name_of(one), one))
    found: dict[str, str] = {}
    for kind, name, part in parts:
        shown = f"{kind} {name!r}"
        while shown in found:
            shown = f"{shown}'"
        found[shown] = data_digest(_part_data(part))
    return found


def _part_data(part: object) -> Json:
    """The code of a part, and its options where they cannot change while it works."""
    if isinstance(part, partial):
        return {"code": _text(cast("object", part)), "options": {}}
    own = type(part).__module__.startswith("greenroom.")
    given = vars(part).items() if own or _is_frozen(part) else ()
    options = {name: _option(value) for name, value in given}
    return {"code": code_identity(part), "options": options}


def _option(value: object) -> Json:
    """An option as text; None if it may be something that the part remembers."""
    if isinstance(value, str | int | float | bool | tuple | re.Pattern):
        return _text(cast("object", value))
    if isinstance(value, frozenset):
        return [*sorted(map(_text, cast("frozenset[object]", value)))]
    if isinstance(value, Mapping):
        inner = cast("Mapping[object, object]", value)
        rules = all(isinstance(rule, str | re.Pattern) for rule in inner.values())
        return _text(inner) if rules and inner else None
    return _text(value) if callable(value) else None


def _text(value: object) -> str:
    """A value as Python would write it, but the same in every process, with the identity of its code."""
    match value:
        case tuple():
            items = cast("tuple[object, ...]", value)
            name = "" if type(items) is tuple else type(items).__name__
            return f"{name}({_texts(items)}{',' * (len(items) == 1)})"
        case list():
            return f"[{_texts(cast('list[object]', value))}]"
        case set() | frozenset():
            name = "" if isinstance(value, set) else "frozenset"
            return f"{name}{{{', '.join(sorted(map(_text, cast('set[object]', value))))}}}"
        case Mapping():
            inner = cast("Mapping[object, object]", value)
            return f"{{{', '.join(f'{_text(k)}: {_text(v)}' for k, v in inner.items())}}}"
        case partial():
            return _partial_text(cast("partial[object]", value))
        case _ if _is_frozen(value) and not isinstance(value, type):
            held = {one.name: getattr(value, one.name, None) for one in fields(cast("Any", value))}
            return f"{code_identity(value)}{_text(held)}"
        case _:
            return code_identity(value) if callable(value) else repr(value)


def _texts(values: Iterable[object]) -> str:
    return ", ".join(map(_text, values))


def _partial_text(given: "partial[object]") -> str:
    """The function of a partial and what it is given; `partial` itself says nothing."""
    return f"partial({_text(given.func)}, {_text(given.args)}, {_text(given.keywords)})"


def _is_frozen(value: object) -> bool:
    """Whether it is a dataclass that cannot be changed, or one of its objects."""
    return getattr(getattr(value, "__dataclass_params__", None), "frozen", False)


def data_digest(data: object) -> str:
    """Changes whenever this JSON does."""
    return _digest_of(json_of(data, repr))


def _digest_of(text: bytes) -> str:
    if b" at 0x" in text:
        text = without_addresses(text.decode()).encode()
    return blake2b(text, digest_size=12).hexdigest()


def identity_of(
    backend: Backend | None, cases: Iterable[Case], metrics: Iterable[Metric]
) -> dict[str, Json]:
    """The digests that two processes must share before one runs trials for the other."""
    return {
        "agent": "" if backend is None else backend.digest,
        "cases": {case.id: case_digest(case) for case in cases},
        "metrics": [metric.name for metric in metrics],
    }


def difference(here: dict[str, Any], there: dict[str, Any]) -> str:
    """How a worker's digests differ from its parent's, in words; "" if they do not."""
    if here["agent"] != there["agent"]:
        return f"another agent ({there['agent'] or 'none'}, here {here['agent'] or 'none'})"
    for case_id, digest in here["cases"].items():
        found = there["cases"].get(case_id)
        if found != digest:
            return f"no case {case_id!r}" if found is None else f"another case {case_id!r}"
    if here["metrics"] != there["metrics"]:
        return f"the metrics {there['metrics']}, here {here['metrics']}"
    return ""
