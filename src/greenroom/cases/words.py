"""The words of a text in any script, as google-adk counts them.

A text is normalised (NFKC) and lower-cased. A word is a run of letters, digits and the marks that
belong to them. Scripts without spaces have no such runs: Chinese, Japanese and Korean
characters are each a word, and so is each letter with its marks in Thai, Lao, Khmer and Burmese.
"""

from unicodedata import category, normalize

_CHARACTERS = (
    (0x3040, 0x309F),  # Hiragana
    (0x30A0, 0x30FF),  # Katakana
    (0x4E00, 0x9FFF),  # CJK ideographs
    (0xAC00, 0xD7AF),  # Hangul syllables
)
_LETTERS = (
    (0x0E00, 0x0E7F),  # Thai
    (0x0E80, 0x0EFF),  # Lao
    (0x1000, 0x109F),  # Burmese
    (0x1780, 0x17FF),  # Khmer
)
_MOST_CHARACTERS = 20_000


def words_of(text: str) -> list[str]:
    """The words of a text, in order and in lower case."""
    return normalize("NFKC", text).lower().translate(_spacing).split()


class _Spacing(dict[int, str]):
    """Each character as it appears in a text of words separated by blanks, cached."""

    def __missing__(self, code: int) -> str:
        spaced = _spaced(chr(code))
        if len(self) < _MOST_CHARACTERS:
            self[code] = spaced
        return spaced


_spacing = _Spacing()


def _spaced(character: str) -> str:
    if _is_in(character, _CHARACTERS):
        return f" {character} "
    if _is_in(character, _LETTERS):
        return character if _is_mark(character) else f" {character}"
    return character if _is_of_a_word(character) else " "


def is_whole(text: str, begin: int, end: int) -> bool:
    """Whether a part of a text begins and ends at word boundaries."""
    if begin > 0 and _goes_on(text[begin - 1], text[begin], beyond=text[begin - 1]):
        return False
    return end >= len(text) or not _goes_on(text[end - 1], text[end], beyond=text[end])


def _goes_on(before: str, after: str, *, beyond: str) -> bool:
    if _is_mark(after):
        return _is_of_a_word(before)
    if _is_in(before, _CHARACTERS) or _is_in(after, _CHARACTERS) or _is_in(after, _LETTERS):
        return False
    # Names in code count as one word here: `order` does not occur in `order_id`.
    return _is_of_a_word(beyond) or beyond == "_"


def _is_of_a_word(character: str) -> bool:
    return character.isalnum() or _is_mark(character)


def _is_mark(character: str) -> bool:
    return category(character).startswith("M")


def _is_in(character: str, ranges: tuple[tuple[int, int], ...]) -> bool:
    code = ord(character)
    return any(first <= code <= last for first, last in ranges)
