"""ROUGE: how many words, pairs of words or words in order two texts share.

The figures for ASCII texts are those of the rouge-score package to the last digit. For other texts they
are google-adk's, which counts the words of every script. `words_in` shows which words ROUGE sees.
"""

from collections.abc import Hashable, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import Literal, NamedTuple, get_args

from greenroom.cases.words import words_of
from greenroom.errors import BadMetric
from greenroom.metrics.stems import stem as stem_of

RougeKind = Literal["rouge1", "rouge2", "rougeL"]
KINDS: tuple[RougeKind, ...] = get_args(RougeKind)

_LONGEST_BARE = 3
_WORDS = b"abcdefghijklmnopqrstuvwxyz0123456789"
_ONLY_WORDS = bytes(byte if byte in _WORDS else ord(" ") for byte in bytes(range(256)).lower())


class Rouge(NamedTuple):
    """The share of the prediction that the target has, the share of the target that the prediction
    has, and their harmonic mean."""

    precision: float
    recall: float
    f1: float


def rouge(target: str, prediction: str, kind: RougeKind = "rouge1", stem: bool = True) -> Rouge:
    """Compare a prediction with the text it should resemble.

    `rouge1` counts common words, `rouge2` common pairs of neighbours, and `rougeL` the longest
    sequence of words that both have in the same order, with gaps. With `stem`, forms of a word are
    the same word.
    """
    if kind not in KINDS:
        raise BadMetric(f"ROUGE has no kind {kind!r}; use one of: {', '.join(KINDS)}.")
    wanted: Sequence[Hashable] = words_in(target, stem)
    said: Sequence[Hashable] = words_in(prediction, stem)
    if kind == "rouge2":
        wanted, said = list(pairwise(wanted)), list(pairwise(said))
    shared = _longest_in_order(wanted, said) if kind == "rougeL" else _in_common(wanted, said)
    if not shared:
        return Rouge(0.0, 0.0, 0.0)
    precision, recall = shared / len(said), shared / len(wanted)
    return Rouge(precision, recall, 2 * precision * recall / (precision + recall))


def words_in(text: str, stem: bool = True) -> list[str]:
    """The words of a text as ROUGE sees them; `stem` shortens ASCII words of four letters or more."""
    if text.isascii():
        # Translating bytes takes a third of the time of a regular expression, and the table also
        # makes them lower-case.
        found = text.encode("ascii").translate(_ONLY_WORDS).decode("ascii").split()
    else:
        found = words_of(text)
    return list(map(_stemmed, found)) if stem else found


@lru_cache(maxsize=50_000)
def _stemmed(word: str) -> str:
    # Texts repeat their words, and stemming is the expensive part of ROUGE.
    return stem_of(word) if len(word) > _LONGEST_BARE and word.isascii() else word


def _in_common(wanted: Sequence[Hashable], said: Sequence[Hashable]) -> int:
    """How many items both have; one that occurs twice counts twice only if both have it twice."""
    ours, theirs = set(wanted), set(said)
    if len(ours) == len(wanted) or len(theirs) == len(said):
        # Short texts rarely repeat a pair: this takes a quarter off ROUGE-2.
        return len(ours & theirs)
    left: dict[Hashable, int] = {}
    for item in wanted:
        left[item] = left.get(item, 0) + 1
    shared = 0
    for item in said:
        if count := left.get(item):
            left[item] = count - 1
            shared += 1
    return shared


def _longest_in_order(wanted: Sequence[Hashable], said: Sequence[Hashable]) -> int:
    """The length of the longest common subsequence.

    One bit for every wanted word, all rows of the usual table at once (Crochemore, Iliopoulos,
    Pinzon and Reid, 2001): a bit that is cleared is a word of the subsequence.
    """
    places: dict[Hashable, int] = {}
    for index, word in enumerate(wanted):
        places[word] = places.get(word, 0) | 1 << index
    unmatched = everything = (1 << len(wanted)) - 1
    for word in said:
        if here := places.get(word, 0) & unmatched:
            unmatched = (unmatched + here) | (unmatched - here)
    return len(wanted) - (unmatched & everything).bit_count()
