"""The address of a store on a server: what libpq needs to connect, and what may be shown of it."""

import re
from urllib.parse import parse_qsl, unquote, urlencode, urlsplit

from msgspec import Struct

from greenroom.errors import BadInput
from greenroom.ledger.redaction import keep_secret

SCHEMA = "greenroom"
_NAME = re.compile(r"[a-z_][a-z0-9_]{0,62}")
_SECRET = ("password", "sslpassword")
_OURS = ("schema", "patience")


class Address(Struct, frozen=True, kw_only=True):
    """The parts of a store's address."""

    shown: str
    """The address without its password: what messages, plans and commands may say."""
    conninfo: str
    """What libpq takes; it may hold a password."""
    password: str
    schema: str = SCHEMA
    """The schema of the database in which the tables are."""
    patience: float = 30.0


def read_address(given: str) -> Address:
    """The parts of `postgresql://user@host:port/database?schema=team&patience=60`.

    `schema` and `patience` are Greenroom's; whatever else follows the question mark is for libpq.
    """
    parts = urlsplit(given)
    user, at, host = parts.netloc.rpartition("@")
    name, _, password = user.partition(":")
    asked = parse_qsl(parts.query, keep_blank_values=True)
    secret = [unquote(password), *(value for key, value in asked if key in _SECRET)]
    for value in filter(None, secret):
        keep_secret("password of the store", value)
    ours = {key: value for key, value in asked if key in _OURS}
    kept = [(key, value) for key, value in asked if key not in _OURS]
    harmless = [(key, value) for key, value in asked if key not in _SECRET]
    shown = _url(parts.scheme, f"{name}{at}{host}", parts.path, harmless)
    schema = ours.get("schema", SCHEMA)
    if not _NAME.fullmatch(schema):
        raise BadInput(
            f"{shown}: {schema!r} is not the name of a schema; use small letters, digits and _."
        )
    try:
        patience = float(ours.get("patience", 30.0))
    except ValueError:
        patience = -1.0
    if not 0 <= patience <= 86_400:
        raise BadInput(f"{shown}: patience= is a number of seconds, such as patience=60.")
    return Address(
        shown=shown,
        conninfo=_url(parts.scheme, parts.netloc, parts.path, kept),
        password=next(filter(None, secret), ""),
        schema=schema,
        patience=patience,
    )


def _url(scheme: str, netloc: str, path: str, asked: list[tuple[str, str]]) -> str:
    # urllib leaves the slashes out where there is no host, and libpq needs them.
    return f"{scheme}://{netloc}{path}" + (f"?{urlencode(asked)}" if asked else "")
