"""Secrets that this process was given by its authors: headers of agents, keys of models.

They are redacted by their value, wherever it turns up and whatever it looks like.
"""

import re
from collections.abc import Mapping
from typing import Any, cast

from greenroom.ledger.secrets import SHORTEST, SHORTEST_NAMED, announces

_given: dict[str, str] = {}
"""What each such value is called."""


def given_secrets() -> list[tuple[str, str]]:
    """Each of them with what it is called."""
    return [(name, value) for value, name in _given.items()]


def keep_secret(name: str, value: str) -> None:
    """Redact this value from now on, wherever in this process it turns up: it was given as a secret."""
    value = value.strip()
    if len(value) >= SHORTEST or (len(value) >= SHORTEST_NAMED and _is_mixed(value)):
        _given.setdefault(value, name)


def _is_mixed(value: str) -> bool:
    """Whether a short value is neither a word nor a number, which would be found everywhere."""
    return not value.isalpha() and not value.isdecimal()


def keep_headers(headers: Mapping[str, str]) -> None:
    """The same of what is sent as headers, but for those that only say what is spoken."""
    for name, value in headers.items():
        if not isinstance(value, str):  # pyright: ignore[reportUnnecessaryIsInstance]
            continue
        shortest = SHORTEST_NAMED if announces(name) else SHORTEST
        # "Bearer x" is a secret as a whole and in what follows the scheme; so is each cookie.
        for part in (value, *_HEADER_PARTS.split(value)):
            if _HARMLESS_HEADERS.fullmatch(name) is None and len(part.strip()) >= shortest:
                keep_secret(name, part)


def keep_fields(name: str, value: Any) -> None:
    """The same of the texts in JSON that stand under names of secrets."""
    if isinstance(value, Mapping):
        for key, item in cast("Mapping[str, Any]", value).items():
            keep_fields(str(key), item)
    elif isinstance(value, str) and announces(name) and "{{" not in value:
        keep_secret(name, value)


_HARMLESS_HEADERS = re.compile(
    r"(?i)accept.*|content-.*|user-agent|host|connection|cache-control|pragma|origin|referer|te|date"
    r"|expect|range|via|upgrade|.*-version|x-request-id|x-correlation-id|traceparent|tracestate"
)
_HEADER_PARTS = re.compile(r"[\s;]+(?:[^\s=;]*=)?")
