"""The keys in clients' requests: they are redacted by value from then on.

Frameworks keep the keys of their models private. Wherever a key was kept, it is in the headers or
the address of a request before an answer can repeat it. A client in which it is not known where to look is
left as it is: this refuses nothing, it only remembers keys.
"""

import functools
import sys
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Any, Final

from greenroom.ledger.redaction import keep_sent
from greenroom.simulation.fence.scope import fenced

Call = Callable[..., object]
Look = Callable[..., None]

_seams: Final[set[Call]] = set()


def install() -> None:
    """Put the seams in, in each client that is loaded; once in each."""
    for module, kind, names, look in _PLACES:
        owner = getattr(sys.modules.get(module), kind, None)
        name = next((name for name in names if name in vars(owner or object)), None)
        real = None if name is None else vars(owner)[name]
        if name is not None and callable(real) and real not in _seams:
            seam = _seam(real, look)
            _seams.add(seam)
            setattr(owner, name, seam)


def _seam(real: Call, look: Look) -> Call:
    @functools.wraps(real)
    def seam(*args: object, **given: object) -> object:
        if fenced():
            with suppress(Exception):  # no request may fail because it was looked at
                look(*args, **given)
        return real(*args, **given)

    return seam


def _look_at_request(_client: object, request: Any, *_: object, **__: object) -> None:
    keep_sent(_texts(request.headers.items()), str(request.url))


def _look_at_itself(request: object, *_: object, **__: object) -> None:
    _look_at_request(None, request)


def _look_at_header(_connection: object, header: object, *values: object) -> None:
    keep_sent(_texts((header, value) for value in values))


def _look_at_line(
    _connection: object, _method: object, url: object, *_: object, **__: object
) -> None:
    keep_sent((), _text(url))


def _texts(pairs: Iterable[tuple[object, object]]) -> list[tuple[str, str]]:
    return [(_text(name), _text(value)) for name, value in pairs]


def _text(value: object) -> str:
    return value.decode("latin-1") if isinstance(value, bytes) else str(value)


# The innermost place, behind redirects and whatever adds the key; the public one if that is gone.
_SENDING: Final = ("_send_single_request", "send")
_PLACES: Final[tuple[tuple[str, str, tuple[str, ...], Look], ...]] = (
    *(
        (module, kind, _SENDING, _look_at_request)
        for module in ("httpx", "httpx2")
        for kind in ("Client", "AsyncClient")
    ),
    # Of the standard library, and so of requests, urllib3 and botocore.
    ("http.client", "HTTPConnection", ("putheader",), _look_at_header),
    ("http.client", "HTTPConnection", ("putrequest",), _look_at_line),
    ("aiohttp", "ClientRequest", ("send", "_send"), _look_at_itself),
)
