"""Whether a worker has found the same agent, cases and metrics as its parent."""

import json
import re
from collections.abc import Iterable
from hashlib import blake2b
from typing import Any

from greenroom.backends.backend import Backend
from greenroom.cases.case import Case
from greenroom.cases.data import case_data
from greenroom.cases.parts import Metric
from greenroom.errors import BadInput
from greenroom.ledger.plain import Json

_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")


def identity_of(
    backend: Backend | None, cases: Iterable[Case], metrics: Iterable[Metric]
) -> dict[str, Any]:
    """What two processes must have in common before one plays for the other."""
    return {
        "agent": "" if backend is None else backend.digest,
        "cases": {case.id: _digest(case) for case in cases},
        "metrics": [metric.name for metric in metrics],
    }


def difference(here: dict[str, Any], there: dict[str, Any]) -> str:
    """What a worker has found otherwise than its parent, in words; "" if nothing."""
    if here["agent"] != there["agent"]:
        return f"another agent ({there['agent'] or 'none'}, here {here['agent'] or 'none'})"
    for case_id, digest in here["cases"].items():
        found = there["cases"].get(case_id)
        if found != digest:
            return f"no case {case_id!r}" if found is None else f"another case {case_id!r}"
    if here["metrics"] != there["metrics"]:
        return f"the metrics {there['metrics']}, here {here['metrics']}"
    return ""


def _digest(case: Case) -> str:
    try:
        data: Json = case_data(case)
    except BadInput:
        return "unknown"  # it is not played either, and says why itself
    # Where an object lies in memory is no part of what it is.
    text = _ADDRESS.sub("", json.dumps(data, sort_keys=True, default=repr))
    return blake2b(text.encode(), digest_size=12).hexdigest()
