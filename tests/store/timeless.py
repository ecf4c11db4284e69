"""A report without its times and the marks of its run: what two runs of one set must agree on."""

import re
from typing import Any

from greenroom import Report
from greenroom.results.data import report_data

_OF_ONE_RUN = frozenset({"at", "seconds", "case_seconds", "id"})
_ADDRESS = re.compile(r" at 0x[0-9a-f]+>")
"""Where an object lay in the memory of one process."""


def timeless(report: Report) -> Any:
    """Everything a report says but for when it happened, how long it took, and in which run."""
    return _without(report_data(report))


def _without(data: Any) -> Any:
    match data:
        case dict():
            return {key: _without(item) for key, item in data.items() if key not in _OF_ONE_RUN}
        case list():
            return [_without(item) for item in data]
        case str():
            return _ADDRESS.sub(">", data)
        case _:
            return data
