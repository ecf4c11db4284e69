"""How text that comes in pieces is split into others: by sentences, words, lines or length.

Where a cutter splits depends on the text alone, never on how it came.
"""

import re
from collections.abc import Callable, Mapping
from typing import Protocol

from greenroom.errors import BadAgent

Unit = str | int
"""The unit of pieces: "token", "word", "sentence", "line", "paragraph", or a number of characters."""


class Cutter(Protocol):
    """Takes text as it comes, and gives the pieces that are complete."""

    def take(self, text: str) -> list[str]:
        """The pieces that are complete with this text."""
        ...

    def rest(self) -> list[str]:
        """The rest when the text is over."""
        ...


class AsItComes:
    """Leaves the pieces as they are."""

    def take(self, text: str) -> list[str]:
        """The piece."""
        return [text] if text else []

    def rest(self) -> list[str]:
        """Nothing: no text is held back."""
        return []


class ByLength:
    """Pieces of given numbers of characters; the lengths are given one by one."""

    def __init__(self, lengths: Callable[[], int]) -> None:
        self._lengths = lengths
        self._text = ""
        self._next = lengths()

    def take(self, text: str) -> list[str]:
        """The pieces that have their length."""
        self._text += text
        pieces, begin = list[str](), 0
        while len(self._text) - begin >= self._next:
            pieces.append(self._text[begin : begin + self._next])
            begin += self._next
            self._next = self._lengths()
        self._text = self._text[begin:]
        return pieces

    def rest(self) -> list[str]:
        """The last piece, which may be shorter."""
        return [self._text] if self._text else []


IsBorder = Callable[[str, "re.Match[str]"], bool]
"""Whether a match is a border, by the text before it and by the match itself."""


class AtBorders:
    """Pieces that end where `border` does. It must not match before what follows is known.

    A border is complete at a character that is not a sign, so a long run of signs is not searched again and again.
    """

    def __init__(self, border: str, signs: str = "", is_border: IsBorder | None = None):
        self._border = re.compile(border)  # here, since few programs split anything
        self._signs = signs
        """What a border may consist of, besides white space."""
        self._is_border = is_border
        self._text = ""
        self._seen = 0
        """Where to continue the search: no border begins before."""

    def take(self, text: str) -> list[str]:
        """The pieces whose end is known."""
        self._text += text
        return [] if all(map(self._is_sign, text)) else self._cut()

    def _cut(self) -> list[str]:
        pieces, begin = list[str](), 0
        for match in self._border.finditer(self._text, self._seen):
            before = self._text[begin : match.start()]
            if self._is_border is None or self._is_border(before, match):
                pieces.append(self._text[begin : match.end()])
                begin = match.end()
        self._text = self._text[begin:]
        self._seen = len(self._text)
        while self._seen and self._is_sign(self._text[self._seen - 1]):
            self._seen -= 1
        return pieces

    def _is_sign(self, character: str) -> bool:
        return character.isspace() or character in self._signs

    def rest(self) -> list[str]:
        """The last piece, and those that end with signs before it."""
        pieces = self._cut()
        return [*pieces, self._text] if self._text else pieces


class Lines:
    """Pieces that end with a line."""

    def __init__(self) -> None:
        self._begun: list[str] = []

    def take(self, text: str) -> list[str]:
        """The lines that are complete."""
        *lines, left = text.split("\n")
        if lines:
            lines[0] = "".join((*self._begun, lines[0]))
            self._begun = []
        self._begun.append(left)
        return [f"{line}\n" for line in lines]

    def rest(self) -> list[str]:
        """The last line, which has no end."""
        left = "".join(self._begun)
        return [left] if left else []


_ENDS, _WIDE_ENDS = ".!?…।॥؟۔", "。！？｡"
_CLOSING, _WIDE_CLOSING = "\"'”’»)]", "”’」』）"
_WORD = r"(?<=\S)\s+(?=\S)"
_PARAGRAPH = r"\n[^\S\n]*\n\s*(?=\S)"
_SENTENCE = (
    rf"(?<![{_ENDS}])[{_ENDS}]+[{re.escape(_CLOSING)}]*\s+(?=\S)"
    rf"|(?<![{_WIDE_ENDS}])[{_WIDE_ENDS}]+[{_WIDE_CLOSING}]*\s*(?=[^\s{_WIDE_ENDS}{_WIDE_CLOSING}])"
    r"|\n\s*(?=\S)"
)
_SHORT = frozenset(("dr", "mr", "mrs", "ms", "prof", "st", "jr", "sr", "vs", "e.g", "i.e", "cf"))
_BEFORE_NUMBERS = frozenset(("no", "nr", "fig", "vol", "ch", "sec", "p", "pp", "approx", "ca"))


def _ends_sentence(before: str, match: re.Match[str]) -> bool:
    """Whether a full stop ends a sentence: not after "Dr", an initial or the number of a list item."""
    mark, follows = match.group(), match.string[match.end()]
    if "\n" in mark or mark[0] in _WIDE_ENDS:
        return True
    if follows.islower():
        return False
    if mark.strip() != ".":
        return True
    words = before.split()
    last = words[-1].lstrip("\"'“‘«([") if words else ""
    is_initial = len(last) == 1 and last.isupper() and last != "I"
    is_number = len(words) == 1 and last.isdigit()
    is_counting = follows.isdigit() and last.lower() in _BEFORE_NUMBERS
    return not (is_initial or is_number or is_counting or last.lower() in _SHORT)


def at_random(seed: str) -> Cutter:
    """Pieces of lengths drawn by a seed: single characters, words, or whole sentences."""
    from random import Random  # slow to load, and only a rehearsal of streams needs it

    drawn = Random(seed)
    usual = drawn.choice((1, 2, 3, 5, 8, 13, 21))
    return ByLength(lambda: drawn.randint(1, 2 * usual))


_CUTTERS: Mapping[str, Callable[[], Cutter]] = {
    "token": AsItComes,
    "word": lambda: AtBorders(_WORD),
    "line": Lines,
    "paragraph": lambda: AtBorders(_PARAGRAPH),
    "sentence": lambda: AtBorders(
        _SENTENCE, _ENDS + _WIDE_ENDS + _CLOSING + _WIDE_CLOSING, _ends_sentence
    ),
}


def cutter(unit: Unit) -> Cutter:
    """A cutter for one reply."""
    return ByLength(lambda: unit) if isinstance(unit, int) else _CUTTERS[unit]()


def checked_unit(unit: object) -> Unit:
    """The unit, checked."""
    if isinstance(unit, str) and unit in _CUTTERS:
        return unit
    if isinstance(unit, int) and not isinstance(unit, bool) and unit > 0:
        return unit
    known = ", ".join(map(repr, _CUTTERS))
    raise BadAgent(f"by({unit!r}) is not a unit; give {known}, or a number of characters from 1.")
