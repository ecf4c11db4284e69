"""Secrets kept out of what leaves the house: texts, JSON, whole ledgers and log records.

A secret gives way to `[redacted:NAME]`. Texts are redacted before they are encoded, so that no file
is broken by it, and what holds no secret is handed back as it is.
"""

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields, is_dataclass, replace
from functools import lru_cache
from hashlib import sha256
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

from greenroom.errors import BadFile
from greenroom.ledger.given import given_secrets
from greenroom.ledger.ledger import Ledger
from greenroom.ledger.looks import DENSE
from greenroom.ledger.secrets import (
    CODED,
    QUOTED,
    Kind,
    announces,
    found_in,
    is_hinted,
    is_secret_field,
    kept_secrets,
    kind_of,
    may_be_secret_field,
    readings,
    unquoted,
    well_known,
)

if TYPE_CHECKING:
    from logging import LogRecord

T = TypeVar("T")

MARK = "[redacted:"
_OURS = re.compile(r"\[redacted:[\w.-]+\]")
_SHORT = 64
_SAFE = frozenset((int, float, bool, type(None)))


class Redactor:
    """Replaces secrets: those of a known look, and these `values` by name, in any disguise."""

    def __init__(self, values: Iterable[tuple[str, str]] = ()) -> None:
        known = {value: name for name, value in values}
        # The author's own come first: their names say more.
        self.kinds: tuple[Kind, ...] = (
            *(kind_of(known[value], value) for value in sorted(known, key=len, reverse=True)),
            *well_known(),
        )

    @classmethod
    def of_environment(
        cls, environment: Mapping[str, str], named: Iterable[str] = ()
    ) -> "Redactor":
        """Knows the variables that are called like secrets, and those that are `named`."""
        return cls(kept_secrets(environment, named))

    def text(self, text: str) -> str:
        """`text` without secrets."""
        return _Pass(self.kinds, self._suspected(text)).text(text)

    def value(self, value: T) -> T:
        """JSON, or records made of it, without secrets; itself if it holds none."""
        texts, names = _survey(value)
        everything = "\n".join(texts)
        going = _Pass(self.kinds, self._suspected(everything))
        # What all texts together do not hold, none of them does.
        if not any(map(announces, names)) and not going.finds(everything):
            return value
        return going.value(value)

    def ledger(self, ledger: Ledger) -> Ledger:
        """The ledger without secrets, to be read rather than continued; itself if it holds none."""
        events = list(ledger)
        clean = self.value(events)
        return ledger if clean is events else Ledger(clean)

    def _suspected(self, text: str) -> tuple[Kind, ...]:
        return tuple(kind for kind in self.kinds if is_hinted(kind, text))


class _Pass:
    """One way through a text or a tree of texts, looking for the kinds that it may hold."""

    def __init__(self, kinds: tuple[Kind, ...], suspected: tuple[Kind, ...]) -> None:
        self.kinds = kinds
        self.suspected = suspected
        self._seen: dict[str, str] = {}

    def text(self, text: str) -> str:
        if len(text) > _SHORT:
            return self._clean(text)
        # The short ones come again and again: names, kinds, paths.
        if (clean := self._seen.get(text)) is None:
            clean = self._clean(text)
            clean = self._seen[text] = text if clean == text else clean
        return clean

    def finds(self, text: str) -> bool:
        """Whether `text` would be another without its secrets; who finds the first one is done."""
        if any(is_hinted(kind, text) and kind.look.search(text) for kind in self.suspected):
            return True
        if any(self._decoded(run) != run[0] for run in CODED.finditer(text)):
            return True
        return "%" in text and any(self._unquoted(run) != run[0] for run in QUOTED.finditer(text))

    def _clean(self, text: str) -> str:
        for kind in self.suspected:
            if is_hinted(kind, text):
                text = kind.look.sub(_marking(kind), text)
        if len(text) >= 24:
            text = CODED.sub(self._decoded, text)
        return QUOTED.sub(self._unquoted, text) if "%" in text else text

    def _decoded(self, run: re.Match[str]) -> str:
        """A run of base64 that hides a secret is nothing but that."""
        for plain in readings(run[0]):
            if kind := found_in(plain, self.kinds):
                return f"{MARK}{kind.name}]"
        return run[0]

    def _unquoted(self, run: re.Match[str]) -> str:
        plain = unquoted(run[0]) if "%" in run[0] else run[0]
        kind = found_in(plain, self.kinds) if plain != run[0] else None
        return f"{MARK}{kind.name}]" if kind else run[0]

    def value(self, value: Any) -> Any:
        if type(value) in _SAFE:
            return value
        if isinstance(value, str):
            return value if (clean := self.text(value)) == value else clean
        if isinstance(value, Mapping):
            return self._mapping(cast("Mapping[Any, Any]", value))
        if isinstance(value, list | tuple):
            return self._list(cast("Sequence[Any]", value))
        if is_dataclass(value) and not isinstance(value, type):
            return self._record(value)
        return value

    def _mapping(self, value: Mapping[Any, Any], named: bool = False) -> Any:
        clean: dict[Any, Any] = {}
        same = True
        pair = _pair_name(value)
        for key, item in value.items():
            name = pair if pair and key == "value" and isinstance(item, str) else key
            new_key, new = self.value(key), self._field(name, item, named)
            same = same and new_key is key and new is item
            clean[new_key if new_key not in clean else _another(new_key, clean)] = new
        return value if same else clean

    def _field(self, name: object, value: Any, named: bool = False) -> Any:
        """What stands under a name that may say that it is a secret.

        Where the keys are `named` by authors (models, metrics), a count or a score is what it is.
        """
        if not isinstance(name, str) or (named and type(value) in _SAFE):
            return self.value(value)
        if name in _NAMED_BY_AUTHORS and isinstance(value, Mapping):
            return self._mapping(cast("Mapping[Any, Any]", value), True)
        if is_secret_field(name):
            return self._secret(f"{MARK}{_LAST_WORD.findall(name)[-1]}]", value)
        if isinstance(value, str) and may_be_secret_field(name) and DENSE.fullmatch(value):
            return self._secret(f"{MARK}{_LAST_WORD.findall(name)[-1]}]", value)
        return self.value(value)

    def _secret(self, mark: str, value: Any) -> Any:
        if isinstance(value, list | tuple):
            items = cast("Sequence[Any]", value)
            return _same_or_new(items, [self._secret(mark, item) for item in items])
        if isinstance(value, str):
            return value if not value or _OURS.fullmatch(value) else mark
        # A mapping may be a schema; yes, no and nothing are not worth a secret.
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        return mark if is_number else self.value(value)

    def _list(self, value: Sequence[Any]) -> Any:
        return _same_or_new(value, [self.value(item) for item in value])

    def _record(self, value: Any) -> Any:
        changed: dict[str, Any] = {}
        for name in _names(cast("type[Any]", type(value))):
            old = getattr(value, name)
            by_key = name in ("value", "values")
            new = self._field(getattr(value, "key", "") if by_key else name, old)
            if new is not old:
                changed[name] = new
        return replace(value, **changed) if changed else value


_NAMED_BY_AUTHORS = frozenset(
    ("models", "judge_models", "user_models", "metrics", "scores", "criteria", "mocks", "tools")
)
"""Fields of ours whose keys are names that authors gave."""


def _pair_name(value: Mapping[Any, Any]) -> str:
    """Whose value stands beside it, as headers and cookies are often told; "" if nobody's."""
    name = value.get("name", value.get("key")) if "value" in value else None
    return name if isinstance(name, str) else ""


def _same_or_new(old: Sequence[Any], new: list[Any]) -> Sequence[Any]:
    if all(one is other for one, other in zip(new, old, strict=True)):
        return old
    return new if isinstance(old, list) else tuple(new)


def _another(key: str, taken: Mapping[str, Any]) -> str:
    """A key of its own for what would be lost under one that two secrets share."""
    return next(name for n in count(2) if (name := f"{key} {n}") not in taken)


_LAST_WORD = re.compile(r"[\w-]+")


@lru_cache(maxsize=1024)
def _marking(kind: Kind) -> str:
    kept = "".join(rf"\g<{group}>" for group in kind.look.groupindex)
    return f"{kept}{MARK}{kind.name}]"


@lru_cache(maxsize=256)
def _names(kind: type[Any]) -> tuple[str, ...]:
    return tuple(part.name for part in fields(kind) if part.init)


def _survey(value: Any) -> tuple[list[str], set[str]]:
    """Every text in JSON, or in records made of it, and the names of its fields."""
    texts: list[str] = []
    names: set[str] = set()
    stack: list[Any] = [value]
    while stack:
        item = stack.pop()
        kind = cast("type[Any]", type(item))
        if kind is str or isinstance(item, str):
            texts.append(item)
        elif kind in _SAFE:
            continue
        elif isinstance(item, list | tuple):
            stack += cast("Sequence[Any]", item)
        elif kind is dict or (not is_dataclass(kind) and isinstance(item, Mapping)):
            inner = cast("Mapping[Any, Any]", item)
            stack += inner.keys()
            stack += inner.values()
            names.update([key for key in inner if isinstance(key, str)])
            names.add(_pair_name(inner))
        elif is_dataclass(kind):
            stack += [getattr(item, name) for name in _names(kind)]
            names.add(str(getattr(item, "key", "")))
    return texts, names


def is_redacted(value: Any) -> bool:
    """Whether a secret was replaced somewhere in JSON, or in records made of it."""
    return any(MARK in text and _OURS.search(text) for text in _survey(value)[0])


# The secrets of this process


def redactor() -> Redactor:
    """The redactor for this process: its environment, `redact_env` of the nearest pyproject, and
    what it was given as a secret."""
    return _made((*kept_secrets(os.environ, _named_here()), *given_secrets()))


def without_secrets(text: str) -> str:
    """A message without secrets, for those who cannot afford an error of their own."""
    try:
        return redactor().text(text)
    except BadFile:
        return _made((*kept_secrets(os.environ), *given_secrets())).text(text)


@lru_cache(maxsize=8)
def _made(known: tuple[tuple[str, str], ...]) -> Redactor:
    return Redactor(known)


def _named_here() -> tuple[str, ...]:
    try:
        start = Path.cwd()
    except OSError:  # the folder is gone, and its pyproject with it
        return ()
    for place in (start, *start.parents):
        path = place / "pyproject.toml"
        if path.is_file():
            return _named_in(path, path.stat().st_mtime_ns)
    return ()


@lru_cache(maxsize=16)
def _named_in(path: Path, _changed: int) -> tuple[str, ...]:
    """`redact_env` under `[tool.greenroom]`: more variables whose values are secrets."""
    import tomllib

    try:
        data: Any = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise BadFile(f"{path} cannot be read as TOML: {error}") from error
    for step in ("tool", "greenroom", "redact_env"):
        data = cast("dict[str, Any]", data).get(step) if isinstance(data, dict) else None
    names = cast("list[Any]", data) if isinstance(data, list) else None
    if data is None:
        return ()
    if names is None or not all(isinstance(name, str) for name in names):
        raise BadFile(
            f"{path}: redact_env in [tool.greenroom] is {data!r}; list the names of environment "
            f'variables: redact_env = ["CRM_LOGIN"].'
        )
    return tuple(names)


def redact_log(record: "LogRecord") -> bool:
    """A filter for a log handler or logger: `handler.addFilter(redact_log)`."""
    clean = without_secrets
    record.msg = clean(record.getMessage())
    record.args = ()
    record.exc_text = clean(_told(record)) or None
    record.exc_info = None
    record.stack_info = clean(record.stack_info) if record.stack_info else None
    return True


def _told(record: "LogRecord") -> str:
    if not record.exc_info or record.exc_info[0] is None:
        return record.exc_text or ""
    from traceback import format_exception

    return "".join(format_exception(*record.exc_info)).rstrip()


def clean_ids(ids: Iterable[str], hand: Redactor) -> dict[str, str]:
    """Each id without its secrets, and still another than the rest."""
    given = list(ids)
    return {own: clean_id(own, clean) for own, clean in zip(given, hand.value(given), strict=True)}


def clean_id(own: str, clean: str) -> str:
    """What an id is called that is `clean` without its secrets."""
    if clean == own:
        return own
    return f"{clean} #{sha256(own.encode(errors='surrogatepass')).hexdigest()[:8]}"
