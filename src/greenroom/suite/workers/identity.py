"""Whether a worker has found the same agent, cases and metrics as its parent."""

from collections.abc import Iterable
from typing import Any

from greenroom.backends.backend import Backend
from greenroom.cases.case import Case
from greenroom.cases.parts import Metric
from greenroom.suite.identity import case_digest


def identity_of(
    backend: Backend | None, cases: Iterable[Case], metrics: Iterable[Metric]
) -> dict[str, Any]:
    """What two processes must have in common before one plays for the other."""
    return {
        "agent": "" if backend is None else backend.digest,
        "cases": {case.id: case_digest(case) for case in cases},
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
