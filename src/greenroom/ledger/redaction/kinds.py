"""What counts as a secret: keys of a known look, and environment variables with a telling name.

A secret is also recognised in disguise: anywhere inside base64, URL-encoded,
escaped for JSON, Python or HTML, and shortened.
"""

import json
import re
from base64 import b64encode
from binascii import a2b_base64
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache, lru_cache
from urllib.parse import quote, quote_plus

from msgspec import Struct

from greenroom.ledger.redaction.patterns import LOOKS, NAMED, PERHAPS_SECRET_FIELD, SECRET_FIELD

SHORTEST = 8
"""Shorter values of telling variables are words, not secrets."""
SHORTEST_NAMED = 4
"""The shortest value of a variable that the user named."""

_TELLING = (
    r"(?i)(?:KEY|TOKEN|SECRET|PASSWORD|PASSWD|PASSPHRASE|PASSCODE|CREDENTIALS?|CONN(?:ECTION)?_?STR(?:ING)?)$"
    r"|_(?:PASS|PWD|PAT|DSN|CREDS|COOKIE|JWT|SAS|AUTH|WEBHOOK(?:_URL)?)$|^(?:PAT|DSN|JWT)$"
)
_URL_PASSWORD = re.compile(r"://[^\s/:@]*:([^\s/]+)@")
_LONG_LINE = 16


class Kind(Struct, frozen=True, omit_defaults=True):
    """A kind of secret: its name, hint words (a text with the secret has at least one), and its pattern.

    What the group `keep` matches stays; the rest of a match gives way to the mark.
    """

    name: str
    hints: tuple[str, ...]
    look: re.Pattern[str]
    by_name: bool = False
    """Whether it is known by the word before it only, one that `TELLING_WORD` finds."""


@lru_cache(maxsize=4096)
def telling(name: str) -> bool:
    """Whether an environment variable has a name like one that holds a secret."""
    return re.search(_TELLING, name) is not None


@cache
def well_known() -> tuple[Kind, ...]:
    """Secrets that show what they are by their look."""
    return tuple(_kind(*kind) for kind in LOOKS) + tuple(_kind(*kind, True) for kind in NAMED)


def _kind(name: str, hints: str, look: str, by_name: bool = False) -> Kind:
    return Kind(name, tuple(hints.split("|")), re.compile(look), by_name)


_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


@lru_cache(maxsize=4096)
def is_secret_field(name: str) -> bool:
    """Whether the value under this name is a secret."""
    return re.fullmatch(SECRET_FIELD, _CAMEL.sub("~", name.rpartition(".")[2])) is not None


@lru_cache(maxsize=4096)
def may_be_secret_field(name: str) -> bool:
    """Whether the value under this name is a secret if it looks like one."""
    return re.fullmatch(PERHAPS_SECRET_FIELD, _CAMEL.sub("~", name.rpartition(".")[2])) is not None


def announces(name: str) -> bool:
    """Whether the value under this name is a secret, or may be one."""
    return is_secret_field(name) or may_be_secret_field(name)


SHORTEST_CODED = 24
CODED = re.compile(rf"[A-Za-z0-9+/_-]{{{SHORTEST_CODED},}}={{0,2}}")
"""What may be base64, of either alphabet, long enough to hide a secret."""

QUOTED = re.compile(r"[\w.~+/=:@%-]{9,}")
"""What may be a part of a URL, in which any letter may be written as a number."""

_HEX = re.compile(r"[0-9a-fA-F]+")
_STANDARD = str.maketrans("-_", "+/")
_BEGINNING = 4096
_NUMBER = re.compile(rb"%([0-9a-fA-F]{2})")
# Every well-known secret has a word of at least this length, made of these letters.
_READABLE = re.compile(r"[ -~]{3,}")


def is_hinted(kind: Kind, text: str) -> bool:
    """Whether the text holds a word that all secrets of this kind have."""
    return any(hint in text for hint in kind.hints)


def found_in(text: str, kinds: Iterable[Kind]) -> Kind | None:
    """The first of these kinds of which the text holds a secret."""
    return next((one for one in kinds if is_hinted(one, text) and one.look.search(text)), None)


def kinds_in(texts: Iterable[str], kinds: tuple[Kind, ...]) -> tuple[Kind, ...]:
    """Those of the kinds of which one of the texts holds a secret; most texts are not words at all."""
    found: set[Kind] = set()
    for text in texts:
        telling = "\n".join(_READABLE.findall(text))
        found.update(
            kind
            for kind in kinds
            if is_hinted(kind, telling if kind in well_known() else text) and kind.look.search(text)
        )
    return tuple(kind for kind in kinds if kind in found)


def unquoted(text: str) -> str:
    """A part of a URL with its letters that are written as numbers."""
    parts = _NUMBER.split(text.encode(errors="surrogatepass"))
    parts[1::2] = map(bytes.fromhex, map(bytes.decode, parts[1::2]))
    return b"".join(parts).decode(errors="replace")


def readings(coded: str, before: int = 3) -> Iterator[str]:
    """What a run of base64 may decode to: up to this many letters `before` it may only look like base64."""
    if _HEX.fullmatch(coded):
        return  # an id or a digest: base64 hardly ever looks like one
    letters = coded.rstrip("=").translate(_STANDARD)
    for skipped in range(before + 1):
        # From the fifth letter on it says the same as from the first, but for how it begins.
        rest = letters[skipped:] if skipped < 4 else letters[skipped : skipped + _BEGINNING]
        yield a2b_base64(_whole(rest)).decode("latin-1")


def readings_of(runs: Sequence[str]) -> Iterator[str]:
    """What runs of base64 may say, all of them together: line by line from the first letter of each,
    then from the second, and so on, as `readings` has them one by one."""
    coded = [run.rstrip("=").translate(_STANDARD) for run in runs if not _HEX.fullmatch(run)]
    for skipped in range(4):
        plain = b"\n".join([a2b_base64(_whole(one[skipped:])) for one in coded])
        yield plain.decode("latin-1")


def _whole(letters: str) -> str:
    """As many letters as say something, filled up to fours."""
    left = len(letters) % 4
    if not left:
        return letters
    return letters[:-1] if left == 1 else letters + "=" * (4 - left)


def kept_secrets(
    environment: Mapping[str, str], named: Iterable[str] = ()
) -> Iterator[tuple[str, str]]:
    """The secrets of an environment, each with its variable's name; `named` ones are secret too."""
    wanted = set(named)
    for name, value in environment.items():
        shortest = SHORTEST_NAMED if name in wanted else SHORTEST
        if (name in wanted or telling(name)) and len(value.strip()) >= shortest:
            yield name, value.strip()
        # This is asked all the time: a look for what must be there costs a tenth of the pattern.
        for password in _URL_PASSWORD.findall(value) if "://" in value else ():
            if len(password) >= SHORTEST:
                yield name, password


@lru_cache(maxsize=1024)
def kind_of(name: str, value: str) -> Kind:
    """The kind of secret for exactly this value, in all its disguises."""
    forms = {form for form in _forms(value) if len(form) >= SHORTEST_NAMED}
    whole = sorted(forms, key=lambda form: (-len(form), form))
    heads = list(dict.fromkeys(map(_head, whole)))
    # A text may have been shortened inside a secret: its first part still reveals it, up to the end of a word.
    looks = [*map(re.escape, whole), *(f"{re.escape(head)}[^\\s\"'<>,;]*" for head in heads)]
    return Kind(re.sub(r"[^\w.-]", "_", name), tuple(heads), re.compile("|".join(looks)))


def _forms(value: str) -> Iterator[str]:
    from html import escape

    yield value
    yield from (line for line in value.splitlines() if len(line) >= _LONG_LINE)
    for ascii_only in (True, False):
        yield json.dumps(value, ensure_ascii=ascii_only)[1:-1]
    yield repr(value)[1:-1]
    yield escape(value)
    data = value.encode(errors="surrogatepass")
    for quoted in (quote(data), quote(data, safe=""), quote_plus(data)):
        yield quoted
        yield re.sub(r"%[0-9A-F]{2}", lambda found: found[0].lower(), quoted)
    yield from _in_base64(data)


def _in_base64(data: bytes) -> Iterator[str]:
    """The base64 of the secret at any offset, without the characters that depend on its neighbours."""
    for before, shared in ((0, 0), (1, 2), (2, 3)):
        coded = b64encode(b"\0" * before + data).decode()
        core = coded[shared : (before + len(data)) * 8 // 6]
        yield core
        yield core.replace("+", "-").replace("/", "_")


def _head(form: str) -> str:
    return form[: max(12, len(form) * 3 // 5)]
