"""YAML read and written strictly: JSON with fewer quotes, and nothing that readers disagree about.

The parser's events are read one by one, never a tree of nodes: aliases, tags and merge keys are
refused where they occur, and memory is proportional to the file.
"""

import re
from collections.abc import Callable, Iterator
from functools import cache
from math import inf, isfinite
from typing import Any, cast

from greenroom.cases.files.bounds import (
    MAX_DEPTH,
    MAX_KEY,
    MAX_PARTS,
    Unreadable,
    check_bounds,
    check_key,
    check_text,
    has_halves,
)
from greenroom.cases.problems import Branches, Found, Key, Problem, at, shown
from greenroom.ledger.plain import Json

MAX_SLOWLY = 4 * 1024 * 1024
"""The most characters that are read without the C parser, which takes seconds per million."""

MAX_LETTERS = 32 * 1024 * 1024
"""The parser holds up to four copies of a text."""

_WORDS: dict[str, Json] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL"), None),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}
_MAYBE = frozenset(
    form for word in ("yes", "no", "on", "off") for form in (word, word.title(), word.upper())
)
_JSON_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(\.[0-9]+)?([eE][-+]?[0-9]+)?")
# What is a number in some version of YAML, but not in JSON.
_SOME_NUMBER = re.compile(
    r"[-+]?(?:0b[01_]+|0o[0-7]+|0x[0-9a-fA-F_]+"
    r"|[0-9][0-9_]*(?:\.[0-9_]*)?(?:[eE][-+]?[0-9]+)?"
    r"|\.[0-9][0-9_]*(?:[eE][-+]?[0-9]+)?"
    r"|[0-9][0-9_]*(?::[0-5]?[0-9])+(?:\.[0-9_]*)?"
    r"|\.(?:inf|Inf|INF))|\.(?:nan|NaN|NAN)"
)
_SUSPECT = frozenset("+-.0123456789~nNtTfFyYoO")
_ITEM = re.compile(r"( *)- ")
_MISSING: Any = object()
_MOST_FLAWS = 1000


def yaml_with_flaws(text: str) -> tuple[Json, list[Problem]]:
    """The one document in the text as JSON, and everything that readers of YAML disagree about."""
    building = _Building()
    try:
        return building.build(text), building.flaws
    except Unreadable as error:
        error.flaws = building.flaws
        raise


def without_item(text: str, line: int | None) -> str | None:
    """The text with the item of its outermost list at this line blanked; None if there is none."""
    if line is None:
        return None
    lines = text.splitlines()
    first = next((found for each in lines if (found := _ITEM.match(each))), None)
    if first is None:
        return None
    indent = first[1]
    begins = [
        number
        for number, each in enumerate(lines[:line])
        if (found := _ITEM.match(each)) and found[1] == indent
    ]
    if not begins:
        return None
    end = begins[-1] + 1
    while end < len(lines) and _belongs(lines[end], len(indent)):
        end += 1
    if line > end:
        return None  # the problem comes after the list
    lines[begins[-1] : end] = [""] * (end - begins[-1])
    return "\n".join(lines) + "\n"


def _belongs(line: str, indent: int) -> bool:
    return not line.strip() or len(line) - len(line.lstrip(" ")) > indent


def yaml_positions(text: str, branches: Branches) -> Found:
    """The positions of the places that `branches` lead to, as far as they exist in the text."""
    building = _Building(branches)
    building.build(text)
    return building.found


def surely_text(text: str) -> bool:
    """Whether a plain scalar of these characters is always a string."""
    if not text or text[0] not in _SUSPECT:
        return bool(text)
    return text not in _WORDS and text not in _MAYBE and not _SOME_NUMBER.fullmatch(text)


def has_comments(text: str) -> bool:
    """Whether there is a comment: a # outside of values."""
    end = 0
    for event in _events(text):
        if "#" in text[end : event.start_mark.index]:
            return True
        end = max(end, event.end_mark.index)
    return "#" in text[end:]


def lines_of_blocks(text: str) -> set[int]:
    """The lines, from 0, on which a text goes on that began on an earlier one: a # begins no comment there."""
    found: set[int] = set()
    for event in _events(text):
        if type(event).__name__ == "ScalarEvent":
            end = event.end_mark
            found.update(range(event.start_mark.line + 1, end.line + (end.column > 0)))
    return found


def _events(text: str) -> Iterator[Any]:
    import yaml

    quick = cast("type[Any] | None", getattr(yaml, "CSafeLoader", None))
    if quick is None and len(text) > MAX_SLOWLY:
        raise Unreadable("it is too large for a PyYAML without libyaml; write it as JSON")
    if len(text) > MAX_LETTERS:
        raise Unreadable("it is too large for YAML; write it as JSON, or split it")
    loader: Any = (quick or yaml.SafeLoader)(text)
    try:
        while (event := loader.get_event()) is not None:
            yield event
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        if "end of stream" in (error.problem or "") and error.context_mark:
            mark = error.context_mark  # where it was opened, not the end of the file
        if mark is None:
            raise Unreadable(_describe(error)) from error
        tab = "there is a tab here; YAML is indented with spaces" if _is_tab(text, mark) else ""
        raise Unreadable(tab or _describe(error), mark.line + 1, mark.column + 1) from error
    except yaml.YAMLError as error:
        raise Unreadable(str(error).replace("\n", " ")) from error
    finally:
        loader.dispose()


def _is_tab(text: str, mark: Any) -> bool:
    line = text.splitlines()[mark.line : mark.line + 1]
    return bool(line) and line[0][mark.column : mark.column + 1] == "\t"


def _describe(error: Any) -> str:
    parts = [part for part in (error.context, error.problem) if part]
    return ", ".join(parts) or "it cannot be parsed"


class _Building:
    """The document, built from events.

    `holders` are the open containers, `way` leads to the innermost, `keys` says where in each of
    them the next value goes, and `names` where that key is written.
    """

    def __init__(self, branches: Branches | None = None) -> None:
        self.holders: list[Any] = []
        self.way: list[Key] = []
        self.keys: list[Any] = []
        self.names: list[Any] = []
        self.flaws: list[Problem] = []
        self.known: set[str] = set()
        self.halves = False
        self.wanted: list[Branches | None] = [branches]
        self.found: Found = {}
        self.root: Json = _MISSING

    def build(self, text: str) -> Json:
        """The document built from all events."""
        self.halves = has_halves(text)
        # Hundreds of thousands of events go through here, so one lookup must tell them apart.
        steps: dict[str, Callable[[Any], None]] = {
            "ScalarEvent": self._scalar,
            "MappingStartEvent": lambda event: self._open({}, event),
            "SequenceStartEvent": lambda event: self._open([], event),
            "MappingEndEvent": self._close,
            "SequenceEndEvent": self._close,
            "AliasEvent": self._alias,
            "DocumentStartEvent": self._document,
        }
        for count, event in enumerate(_events(text)):
            if count > MAX_PARTS:
                raise Unreadable("it holds too many values; split it")
            if step := steps.get(type(event).__name__):
                step(event)
        return None if self.root is _MISSING else self.root

    def _document(self, event: Any) -> None:
        if self.root is not _MISSING:
            raise Unreadable("it holds more than one document", event.start_mark.line + 1)

    def _alias(self, event: Any) -> None:
        self._flaw(event, "YAML aliases (*name) are refused; write the value out")
        if self.keys and self.keys[-1] is _MISSING:
            self.keys[-1], self.names[-1] = f"*{event.anchor}", event
        else:
            self._put(None, event)

    def _close(self, event: object) -> None:  # noqa: ARG002
        self.holders.pop()
        self.keys.pop()
        self.names.pop()
        self.wanted.pop()
        if self.way:
            self.way.pop()

    def _scalar(self, event: Any) -> None:
        if self.keys and self.keys[-1] is _MISSING:
            self.keys[-1], self.names[-1] = self._key(event), event
            return
        value = event.value
        if event.tag is not None and event.tag != "!":
            self._flaw(event, f"YAML tags are refused, but this has {shown(event.tag)}")
        elif event.implicit[0]:
            value = self._resolved(value, event)
        elif self.halves or len(value) > MAX_KEY:
            check_text(value, self._place())
        self._put(value, event)

    def _open(self, holder: Any, event: Any) -> None:
        if event.tag is not None:
            self._flaw(event, f"YAML tags are refused, but this has {shown(event.tag)}")
        if self.keys and self.keys[-1] is _MISSING:
            raise self._wrong(event, "a key should be a string, but this is a list or mapping")
        if len(self.holders) >= MAX_DEPTH:
            raise self._wrong(event, f"it is nested deeper than {MAX_DEPTH} levels")
        if self.holders:
            self.way.append(self.keys[-1])
        self.wanted.append(self._put(holder, event, opens=True))
        self.holders.append(holder)
        self.keys.append(0 if isinstance(holder, list) else _MISSING)
        self.names.append(None)

    def _put(self, value: Json, event: object, *, opens: bool = False) -> Branches | None:
        """Put a value where it belongs; return what is wanted inside it."""
        if not self.holders:
            self.root = value
            self._mark((), event)
            return self.wanted[-1]
        holder, key = self.holders[-1], self.keys[-1]
        wanted = self.wanted[-1]
        inner = wanted.get(key) if wanted else None
        if inner is not None:
            way = self.way if opens else [*self.way, key]
            self._mark(tuple(way), event if self.names[-1] is None else self.names[-1])
        if type(holder) is list:
            cast("list[Any]", holder).append(value)
            self.keys[-1] = key + 1
        else:
            holder[key] = value
            self.keys[-1] = _MISSING
        return inner

    def _mark(self, way: tuple[Key, ...], event: Any) -> None:
        self.found[way] = event.start_mark.line + 1, event.start_mark.column + 1

    def _key(self, event: Any) -> str:
        key = event.value
        if key in self.holders[-1]:
            self._flaw(event, f"the key {shown(key)} is given twice", key=key)
        if key in self.known and event.implicit[0]:
            return key
        if event.implicit[0] and key == "<<":
            message = "YAML merge keys (<<) are refused; write the fields out"
            self._flaw(event, message, key=key)
        elif event.implicit[0] and not surely_text(key):
            message = f"the key {shown(key)} may not be a string; write it in quotes"
            self._flaw(event, message, key=key)
        if event.tag is not None and event.tag != "!":
            self._flaw(event, f"YAML tags are refused, but this has {shown(event.tag)}", key=key)
        if self.halves or len(key) > MAX_KEY:
            check_key(key, self._place())
        if event.implicit[0]:
            self.known.add(key)
        return key

    def _resolved(self, text: str, event: object) -> Json:
        """The value of a scalar without quotes; one that YAML readers disagree about is refused."""
        if text and text[0] not in _SUSPECT:
            if len(text) > MAX_KEY:
                check_text(text, self._place())
            return text
        if text in _WORDS:
            return _WORDS[text]
        if text in _MAYBE:
            self._flaw(
                event,
                f"{text} is a string to some readers of YAML and true or false to others",
                f"Write '{text}' in quotes, or true or false",
            )
            return text
        if number := _JSON_NUMBER.fullmatch(text):
            return self._number(number, event)
        if _SOME_NUMBER.fullmatch(text):
            self._flaw(
                event,
                f"{shown(text)} is a string to some readers of YAML and a number to others",
                "Write it in quotes, or as a plain decimal number",
            )
        check_text(text, self._place())
        return text

    def _number(self, number: re.Match[str], event: object) -> Json:
        try:
            if not number[1] and not number[2]:
                return int(number[0])
            value = float(number[0])
        except ValueError:
            value = inf
        if not isfinite(value):
            self._flaw(event, f"{number[0][:40]} is too large for a number")
            return 0
        return value

    def _place(self) -> str:
        key = self.keys[-1] if self.keys else _MISSING
        return at("", *self.way, *([] if key is _MISSING else [key]))

    def _flaw(self, event: Any, message: str, fix: str = "", *, key: str | None = None) -> None:
        """Remember a problem here, at a value or at a `key`; the rest may be fine."""
        place = self._place() if key is None else at("", *self.way, key)
        line, column = event.start_mark.line + 1, event.start_mark.column + 1
        self.flaws.append(Problem(place, message, fix, line, column=column))
        if len(self.flaws) >= _MOST_FLAWS:
            raise Unreadable("it has too many problems to list them all")

    def _wrong(self, event: Any, message: str) -> Unreadable:
        place = self._place()
        where = f"{place}: " if place else ""
        mark = event.start_mark
        return Unreadable(f"{where}{message}", mark.line + 1, mark.column + 1)


def yaml_text(data: Json) -> str:
    """The data as YAML; BadInput if a string in it cannot be written."""
    import yaml

    try:
        return yaml.dump(
            data,
            Dumper=_dumper(),
            sort_keys=False,
            allow_unicode=True,
            default_flow_style=False,
            width=100,
        )
    except UnicodeEncodeError:
        check_bounds(data, halves=True)  # raises, and names the place
        raise


@cache
def _dumper() -> Any:
    import yaml

    base: Any = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
    # Values are written out where PyYAML would use an alias to an equal one.
    made: Any = type("Plain", (base,), {"ignore_aliases": _never_refer})
    made.add_representer(str, _text)
    return made


def _never_refer(*_: object) -> bool:
    return True


def _text(dumper: Any, text: str) -> Any:
    style = None
    if "\n" in text and text.isascii() and text.replace("\n", "").isprintable():
        style = "|"
    elif not surely_text(text) or not text.isprintable():
        style = '"'
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)
