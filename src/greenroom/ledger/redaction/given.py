"""Secrets that this process was given: headers of agents, keys of models.

They are redacted by their value, wherever it turns up and whatever it looks like.
"""

import re
from base64 import b64decode
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from typing import Any, cast
from urllib.parse import parse_qsl, urlsplit

from greenroom.ledger.redaction.kinds import SHORTEST, SHORTEST_NAMED, announces
from greenroom.ledger.redaction.patterns import DENSE

_given: dict[str, str] = {}
"""The name of each such value."""


def given_secrets() -> list[tuple[str, str]]:
    """Each name with its value."""
    return [(name, value) for value, name in tuple(_given.items())]


def keep_secret(name: str, value: str) -> None:
    """From now on, redact this value wherever this process shows it."""
    value = value.strip()
    # A short word or number would be found everywhere.
    is_mixed = not value.isalpha() and not value.isdecimal()
    if len(value) >= SHORTEST or (len(value) >= SHORTEST_NAMED and is_mixed):
        _given.setdefault(value, name)


def keep_headers(headers: Mapping[str, str]) -> None:
    """Redact the values sent as headers, except those that describe the request."""
    for name, value in headers.items():
        if not isinstance(value, str):  # pyright: ignore[reportUnnecessaryIsInstance]
            continue
        shortest = SHORTEST_NAMED if announces(name) else SHORTEST
        # "Bearer x" is a secret as a whole and in what follows the scheme; so is each cookie.
        for part in (value, *re.split(_HEADER_PARTS, value)):
            if re.fullmatch(_HARMLESS_HEADERS, name) is None and len(part.strip()) >= shortest:
                keep_secret(name, part)


def keep_sent(headers: Iterable[tuple[str, str]], url: str = "") -> None:
    """Redact what a client's request sends under names of secrets.

    A client sends much that is not a secret, so here only the name counts; and what is created anew for each
    request gives no access.
    """
    for name, value in headers:
        if _is_sent_as_secret(name, value):
            for part in _sent_parts(name, value):
                _keep_few(name, part)
    if "?" not in url and "@" not in url:
        return
    with suppress(ValueError):  # not a URL
        parts = urlsplit(url)
        _keep_few("url_password", parts.password or "")
        for name, value in parse_qsl(parts.query):
            if _is_sent_as_secret(name, value) and not re.search(_SIGNATURE, name):
                _keep_few(name, value)


def _is_sent_as_secret(name: str, value: str) -> bool:
    if announces(name):
        return True
    return bool(re.fullmatch(_KEY_OF_SOMETHING, name) and re.fullmatch(DENSE, value))


def _sent_parts(name: str, value: str) -> Iterator[str]:
    """The secrets in a header: what follows the scheme, the password of two, each cookie."""
    if "cookie" in name.lower():
        yield from (part.partition("=")[2] for part in value.split(";"))
        return
    scheme, _, rest = value.strip().partition(" ")
    if not rest or not name.lower().endswith(("authorization", "auth")):
        yield value
    elif re.fullmatch(_SIGNED, scheme) is None:
        yield rest
        if scheme.lower() == "basic":
            with suppress(ValueError):
                pair = b64decode(rest + "==").decode(errors="replace")
                yield pair.partition(":")[2] or pair.rstrip(":")


def _keep_few(name: str, value: str) -> None:
    """Keep a value unless there are many under its name: those are created anew for each request."""
    before = len(_given)
    if _kept_of[name] < _MANY:
        keep_secret(name, value)
        _kept_of[name] += len(_given) - before


def keep_fields(name: str, value: object) -> None:
    """Redact the strings in JSON that are under names of secrets."""
    if isinstance(value, Mapping):
        for key, item in cast("Mapping[str, Any]", value).items():
            keep_fields(str(key), item)
    elif isinstance(value, str) and announces(name) and "{{" not in value:
        keep_secret(name, value)


_LEADING = ("client", "provider", "wrapped", "bound", "model")
"""Parts of the names of attributes that lead to a model's key."""
_DEEP = 4


def keep_keys(model: object) -> None:
    """Redact the keys that a framework's model was given, found in its attributes.

    What a request sends is remembered when it is sent; this covers what is shown before the first one.
    It never fails, whatever the model is.
    """
    try:
        _look_into(model, _DEEP)
    except Exception:  # noqa: BLE001 - objects of others may do anything when they are looked at
        return


def _look_into(thing: object, deep: int) -> None:
    # Only stored attributes: reading a property could run code.
    own: dict[str, Any] = getattr(thing, "__dict__", None) or {}
    private: dict[str, Any] = getattr(thing, "__pydantic_private__", None) or {}
    for name, held in (*own.items(), *private.items()):
        if held is None or isinstance(held, int | float | list):
            continue
        is_wrapped = hasattr(cast("type[Any]", type(held)), "get_secret_value")
        value = held.get_secret_value() if is_wrapped else held
        if isinstance(value, str):
            if announces(name):
                keep_secret(name, value)
        elif isinstance(value, Mapping):
            if "headers" in name:
                pairs = cast("Mapping[object, object]", value).items()
                keep_sent([(k, v) for k, v in pairs if isinstance(k, str) and isinstance(v, str)])
        elif deep and any(word in name for word in _LEADING):
            _look_into(value, deep - 1)


_HARMLESS_HEADERS = (
    r"(?i)accept.*|content-.*|user-agent|host|connection|cache-control|pragma|origin|referer|te|date"
    r"|expect|range|via|upgrade|.*-version|x-request-id|x-correlation-id|traceparent|tracestate"
)
_HEADER_PARTS = r"[\s;]+(?:[^\s=;]*=)?"

_MANY = 100
_kept_of: Counter[str] = Counter()
_KEY_OF_SOMETHING = r"(?i)(?!.*(?:idempot|cache|websocket|partition|routing|surrogate|public|sort))(?:.*[-_.])?(?:key|auth)"
_SIGNED = r"(?i)digest|oauth|hawk|signature|negotiate|ntlm|aws4.*"
_SIGNATURE = r"(?i)sig(?:nature)?$"
