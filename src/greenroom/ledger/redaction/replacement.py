"""The redactor: replaces secrets in strings, JSON and whole ledgers.

A secret becomes `[redacted:NAME]`. Strings are redacted before they are encoded, so that no file
breaks, and a value without secrets is returned unchanged.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache, partial
from hashlib import sha256
from itertools import count
from typing import Any, TypeVar, cast

from greenroom.ledger.attachments import MARK as MARK_OF_ATTACHMENT
from greenroom.ledger.attachments import attachment_in
from greenroom.ledger.changes import BUILT_IN_SCOPES
from greenroom.ledger.ledger import Ledger
from greenroom.ledger.plain import plain as plain_json
from greenroom.ledger.records import changed, is_record
from greenroom.ledger.redaction.kinds import (
    CODED,
    QUOTED,
    SHORTEST_CODED,
    Kind,
    announces,
    found_in,
    is_hinted,
    is_secret_field,
    kept_secrets,
    kind_of,
    kinds_in,
    may_be_secret_field,
    readings,
    readings_of,
    unquoted,
    well_known,
)
from greenroom.ledger.redaction.patterns import DENSE
from greenroom.ledger.redaction.structure import (
    DOCUMENTS,
    FILLED_BY_AUTHORS,
    KEYED_BY_AUTHORS,
    NAMED_BY_AUTHORS,
    is_own_key,
    is_own_word,
    own_part,
    text_names,
)

T = TypeVar("T")

MARK = "[redacted:"
_OURS = re.compile(r"\[redacted:[\w.-]+\]")
_LONG = 10_000
_TAIL = 64
_SAFE = frozenset((int, float, bool, type(None)))


class Redactor:
    """Replaces secrets: those that match a known pattern, and these `values` by name, in any disguise."""

    def __init__(self, values: Iterable[tuple[str, str]] = ()) -> None:
        known = {value: name for name, value in values}
        # Known values come first: their names say more.
        self.kinds: tuple[Kind, ...] = (
            *(kind_of(known[value], value) for value in sorted(known, key=len, reverse=True)),
            *well_known(),
        )

    @classmethod
    def of_environment(
        cls, environment: Mapping[str, str], named: Iterable[str] = ()
    ) -> "Redactor":
        """A redactor for the variables with names of secrets, and those that are `named`."""
        return cls(kept_secrets(environment, named))

    def text(self, text: str) -> str:
        """`text` without secrets."""
        return _Pass(self.kinds, self.kinds).text(text)

    def value(self, value: T) -> T:
        """JSON, or records made of it, without secrets; itself if it holds none.

        Of a record, only free text is replaced: its type says what is a word of a list.
        """
        return self._without(value, _Pass.value)

    def document(self, value: T) -> T:
        """JSON that Greenroom made, without secrets: its own fields and words of lists stay as they are."""
        return self._without(value, _Pass.document)

    def _without(self, value: T, cleaned: "Callable[[_Pass, object], Any]") -> T:
        texts, names = _survey(value)
        different = dict.fromkeys(texts)
        everything = "\n".join([text for text in different if len(text) <= _LONG])
        suspected = tuple(kind for kind in self.kinds if is_hinted(kind, everything))
        going = _Pass(self.kinds, suspected)
        # A long string is checked only once, and before those that may quote it.
        long = sorted([text for text in different if len(text) > _LONG], key=len)
        is_clean = [going.text(text) for text in long] == long
        # A secret that is not in all strings joined is in none of them.
        if is_clean and not any(map(announces, names)) and not going.finds(everything):
            return value
        return cleaned(going, value)

    def ledger(self, ledger: Ledger) -> Ledger:
        """The ledger without secrets, to be read rather than continued; itself if it holds none."""
        events = list(ledger)
        clean = self.value(events)
        return ledger if clean is events else Ledger(clean)


class _Pass:
    """One pass through a string or a tree of strings, looking for the kinds that it may hold.

    Its short strings hold only those `suspected`.
    """

    def __init__(self, kinds: tuple[Kind, ...], suspected: tuple[Kind, ...]) -> None:
        self.kinds = kinds
        self.suspected = suspected
        self._seen: dict[str, str] = {}
        self._by_tail: dict[str, str] = {}
        """Long strings that were seen, by how they end."""

    def text(self, text: str) -> str:
        # Names, kinds and paths are repeated, and an answer is in several events.
        if (clean := self._seen.get(text)) is None:
            is_long = len(text) > _LONG
            clean = self._long(text) if is_long else self._clean(text, self.suspected)
            clean = self._seen[text] = text if clean == text else clean
        return clean

    def _long(self, text: str) -> str:
        """A long string may be one that was seen, with a few words before it: `turn 1: …`."""
        known = self._by_tail.setdefault(text[-_TAIL:], text)
        before = text[: -len(known)]
        if not (0 < len(before) < _TAIL and before[-1].isspace() and text.endswith(known)):
            return self._clean(text, self.kinds)
        # No word continues beyond a space: what was found behind it is found again, and no more, unless
        # a secret is in those few words or begins there, even after others are replaced.
        quoting = before + self.text(known)
        if self._clean(before, self.kinds) != before or any(
            kind.look.match(whole, at)
            for kind in self.kinds
            for whole in (text, quoting)
            for at in range(len(before))
        ):
            return self._clean(text, self.kinds)
        return quoting

    def finds(self, text: str) -> bool:
        """Whether `text` holds a secret; stops at the first one."""
        if any(is_hinted(kind, text) and kind.look.search(text) for kind in self.suspected):
            return True
        return bool(self._coded_kinds(text) or self._quoted_kinds(text))

    def _clean(self, text: str, suspected: tuple[Kind, ...]) -> str:
        for kind in suspected:
            if is_hinted(kind, text):
                text = kind.look.sub(_marking(kind), text)
        if kinds := self._coded_kinds(text):
            text = CODED.sub(partial(_decoded, kinds), text)
        if kinds := self._quoted_kinds(text):
            text = QUOTED.sub(partial(_unquoted, kinds), text)
        return text

    def _coded_kinds(self, text: str) -> tuple[Kind, ...]:
        """The kinds of which base64 in this text may hide a secret, all runs of it read together."""
        runs = CODED.findall(text) if len(text) >= SHORTEST_CODED else None
        return kinds_in(readings_of(runs), self.kinds) if runs else ()

    def _quoted_kinds(self, text: str) -> tuple[Kind, ...]:
        """The kinds of which parts of URLs in this text may hide a secret, all read together."""
        runs = [run for run in QUOTED.findall(text) if "%" in run] if "%" in text else None
        return kinds_in([unquoted("\n".join(runs))], self.kinds) if runs else ()

    def value(self, value: object) -> Any:
        if type(value) in _SAFE:
            return value
        if isinstance(value, str):
            return value if (clean := self.text(value)) == value else clean
        if isinstance(value, Mapping):
            return self._mapping(cast("Mapping[Any, Any]", value))
        if isinstance(value, list | tuple):
            items = cast("Sequence[Any]", value)
            return _same_or_new(items, [self.value(item) for item in items])
        if is_record(value):
            changes: dict[str, Any] = {}
            for name in text_names(cast("type[Any]", type(value))):
                old = getattr(value, name)
                if (new := self._part(value, name, old)) is not old:
                    changes[name] = new
            return changed(value, changes) if changes else value
        return value

    def _part(self, record: object, name: str, value: Any) -> Any:
        """The value of one field of a record."""
        if name == "messages" and isinstance(value, tuple):
            texts = cast("tuple[Any, ...]", value)
            return _same_or_new(
                texts,
                [self._own(name, t) if isinstance(t, str) else self.value(t) for t in texts],
            )
        if isinstance(value, str) and type(record).__module__.startswith("greenroom."):
            if is_own_word(name, value):
                return value
            if name == "scope":
                return self._own(name, value)
        given = cast("object", value)
        if name in DOCUMENTS and isinstance(value, Mapping):
            return self.document(given)
        by_key = name in ("value", "values")
        return self._field(getattr(record, "key", "") if by_key else name, given)

    def _own(self, field: str, text: str) -> str:
        """A text that begins with what belongs to the format, which stays."""
        own = own_part(field, text)
        return text if (clean := own + self.text(text[len(own) :])) == text else clean

    def document(self, value: object, field: str = "") -> Any:
        """A document of Greenroom's, or a part of one in this field."""
        if isinstance(value, str):
            return value if is_own_word(field, value) else self._field(field, value)
        if field in FILLED_BY_AUTHORS or is_record(value):
            return self._field(field, value)
        if isinstance(value, list | tuple):
            items = cast("Sequence[Any]", value)
            if is_secret_field(field):
                return self._field(field, items)
            return _same_or_new(items, [self._item(item, field) for item in items])
        if not isinstance(value, Mapping):
            return self._field(field, value)
        inside = cast("Mapping[Any, object]", value)
        clean: dict[Any, Any] = {}
        named, pair = field in KEYED_BY_AUTHORS, _pair_name(inside)
        for key, item in inside.items():
            new_key = key if is_own_key(key) and not named else self.value(key)
            name = pair if pair and key == "value" and isinstance(item, str) else str(key)
            new = item if named and type(item) in _SAFE else self.document(item, name)
            clean[new_key if new_key not in clean else _another(new_key, clean)] = new
        same = all(one is clean.get(key, clean) for key, one in inside.items())
        return inside if same and len(clean) == len(inside) else clean

    def _item(self, item: object, field: str) -> Any:
        """One of a list in a document: an object in it has fields, even where a mapping would have names."""
        return self.document(item, "" if isinstance(item, Mapping) else field)

    def _mapping(
        self, value: Mapping[Any, object], named: bool = False, own: Sequence[str] = ()
    ) -> object:
        if (
            MARK_OF_ATTACHMENT in value
            and (attached := attachment_in(cast("Any", value))) is not None
        ):
            clean_one = self.value(attached)
            return value if clean_one is attached else plain_json(clean_one)
        clean: dict[Any, Any] = {}
        same = True
        pair = _pair_name(value)
        for key, item in value.items():
            name = pair if pair and key == "value" and isinstance(item, str) else key
            new_key = key if key in own else self.value(key)
            new = self._field(name, item, named)
            same = same and new_key is key and new is item
            clean[new_key if new_key not in clean else _another(new_key, clean)] = new
        return value if same else clean

    def _field(self, name: object, value: object, named: bool = False) -> object:
        """The value under a name that may mark it as a secret.

        Where users chose the keys (`named`: models, metrics), a count or a score is not a secret.
        """
        if not isinstance(name, str) or (named and type(value) in _SAFE):
            return self.value(value)
        if name in NAMED_BY_AUTHORS and isinstance(value, Mapping):
            return self._mapping(cast("Mapping[Any, Any]", value), True)
        if name == "state" and isinstance(value, Mapping):
            return self._mapping(cast("Mapping[Any, Any]", value), own=BUILT_IN_SCOPES)
        if is_secret_field(name) or (
            isinstance(value, str) and may_be_secret_field(name) and re.fullmatch(DENSE, value)
        ):
            return self._secret(f"{MARK}{_LAST_WORD.findall(name)[-1]}]", value)
        return self.value(value)

    def _secret(self, mark: str, value: object) -> Any:
        if isinstance(value, list | tuple):
            items = cast("Sequence[Any]", value)
            return _same_or_new(items, [self._secret(mark, item) for item in items])
        if isinstance(value, str):
            return value if not value or _OURS.fullmatch(value) else mark
        # A mapping may be a schema; true, false and null cannot be secrets.
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        return mark if is_number else self.value(value)


def _pair_name(value: Mapping[Any, object]) -> str:
    """The name given next to a value, as headers and cookies are often written, or ""."""
    name = value.get("name", value.get("key")) if "value" in value else None
    return name if isinstance(name, str) else ""


def _same_or_new(old: Sequence[object], new: list[object]) -> Sequence[object]:
    if all(one is other for one, other in zip(new, old, strict=True)):
        return old
    return new if isinstance(old, list) else tuple(new)


def _another(key: str, taken: Mapping[str, object]) -> str:
    """A distinct key for a value that would be lost when two redacted keys are equal."""
    return next(name for n in count(2) if (name := f"{key} {n}") not in taken)


_LAST_WORD = re.compile(r"[\w-]+")


def _decoded(kinds: tuple[Kind, ...], run: re.Match[str]) -> str:
    """A run of base64 that hides a secret is replaced as a whole."""
    for plain in readings(run[0]):
        if kind := found_in(plain, kinds):
            return f"{MARK}{kind.name}]"
    return run[0]


def _unquoted(kinds: tuple[Kind, ...], run: re.Match[str]) -> str:
    plain = unquoted(run[0]) if "%" in run[0] else run[0]
    kind = found_in(plain, kinds) if plain != run[0] else None
    return f"{MARK}{kind.name}]" if kind else run[0]


@lru_cache(maxsize=1024)
def _marking(kind: Kind) -> str:
    kept = "".join(rf"\g<{group}>" for group in kind.look.groupindex)
    return f"{kept}{MARK}{kind.name}]"


def _survey(value: object) -> tuple[list[str], set[str]]:
    """Every string in JSON, or in records made of it, and the names of its fields."""
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
        elif kind is dict or isinstance(item, Mapping):
            inner = cast("Mapping[Any, Any]", item)
            stack += inner.keys()
            stack += inner.values()
            names.update([key for key in inner if isinstance(key, str)])
            names.add(_pair_name(inner))
        elif is_record(item):
            stack += [getattr(item, name) for name in text_names(kind)]
            names.add(str(getattr(item, "key", "")))
    return texts, names


def is_redacted(value: object) -> bool:
    """Whether a secret was replaced somewhere in JSON, or in records made of it."""
    return any(MARK in text and _OURS.search(text) for text in _survey(value)[0])


def clean_ids(ids: Iterable[str], by: Redactor) -> dict[str, str]:
    """Each id without its secrets, still distinct from the others."""
    given = list(ids)
    cleaned = by.value(given)
    if cleaned == given:
        return dict(zip(given, given, strict=True))
    return {own: clean_id(own, clean) for own, clean in zip(given, cleaned, strict=True)}


def clean_id(own: str, clean: str) -> str:
    """The id to show for `own`, which is `clean` without its secrets."""
    if clean == own:
        return own
    return f"{clean} #{sha256(own.encode(errors='surrogatepass')).hexdigest()[:8]}"
