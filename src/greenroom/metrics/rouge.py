"""ROUGE: how many words, pairs of words or words in order two texts share.

The figures of ASCII texts are those of the rouge-score package to the last digit, those of other texts
google-adk's, which counts the words of every script. `words_in` shows what ROUGE can see.
"""

from collections.abc import Collection, Hashable, Iterable, Sequence
from itertools import pairwise
from typing import Literal, NamedTuple, TypeVar, get_args

from greenroom.cases.words import words_of
from greenroom.errors import BadMetric
from greenroom.metrics.stems import beginning_alike, singulars
from greenroom.metrics.stems import stem as stem_of

RougeKind = Literal["rouge1", "rouge2", "rougeL"]
KINDS: tuple[RougeKind, ...] = get_args(RougeKind)
Item = TypeVar("Item", bound=Hashable)
Items = Collection
Words = Collection[str]

_MOST_STEMS = 50_000
_LONGEST_BARE = 3
_WORDS = b"abcdefghijklmnopqrstuvwxyz0123456789"
_ONLY_WORDS = bytes(byte if byte in _WORDS else ord(" ") for byte in bytes(range(256)).lower())


class Rouge(NamedTuple):
    """What part of the prediction was asked for, what part of the target was given, and both."""

    precision: float
    recall: float
    f1: float


def rouge(target: str, prediction: str, kind: RougeKind = "rouge1", stem: bool = True) -> Rouge:
    """Compare a prediction with the text it should resemble.

    `rouge1` counts common words, `rouge2` common pairs of neighbours, and `rougeL` takes the longest
    run of words that both have in the same order, with gaps. `stem` takes forms of a word as one.
    """
    if kind == "rouge1":
        wanted, said = words_in(target, stem=False), words_in(prediction, stem=False)
        return _figures(_common_words(wanted, said, stem), len(wanted), len(said))
    wanted, said = words_in(target, stem), words_in(prediction, stem)
    if kind == "rougeL":
        return _figures(_in_order(wanted, said), len(wanted), len(said))
    if kind == "rouge2":
        pairs, theirs = list(pairwise(wanted)), list(pairwise(said))
        return _figures(_shared(pairs, theirs), len(pairs), len(theirs))
    raise BadMetric(f"ROUGE knows no kind {kind!r}; it knows {', '.join(KINDS)}.")


def words_in(text: str, stem: bool = True) -> list[str]:
    """The words of a text as ROUGE sees them; `stem` shortens ASCII ones of four letters and more."""
    if text.isascii():
        # Bytes through a table take a third of the time of a regular expression, and the table
        # makes them lower-case.
        found = text.encode("ascii").translate(_ONLY_WORDS).decode("ascii").split()
    else:
        found = words_of(text)
    return _stemmed(found) if stem else found


def _stemmed(words: Iterable[str]) -> list[str]:
    return list(map(_stems.__getitem__, words))


class _Stems(dict[str, str]):
    """Stems of the words seen so far; texts repeat themselves, and stemming is the dear part."""

    def __missing__(self, word: str) -> str:
        if len(self) >= _MOST_STEMS:
            self.clear()
        has_stem = len(word) > _LONGEST_BARE and word.isascii()
        found = self[word] = stem_of(word) if has_stem else word
        return found


_stems = _Stems()


def _figures(shared: int, wanted: int, said: int) -> Rouge:
    if not shared:
        return _NOTHING
    precision, recall = shared / said, shared / wanted
    return Rouge(precision, recall, 2 * precision * recall / (precision + recall))


_NOTHING = Rouge(0.0, 0.0, 0.0)


def _common_words(wanted: Words, said: Words, stem: bool) -> int:
    """How many words both have; `stem` takes forms of a word as one."""
    # Equal words have equal stems. Where they are put together first, few others are left in texts
    # that resemble each other.
    missing, alone = _unpaired(wanted, said)
    shared = len(said) - len(alone)
    return shared + _common_forms(missing, alone) if stem and missing and alone else shared


def _common_forms(missing: Words, alone: Words) -> int:
    """How many words of one have another form of theirs in the other."""
    # Stems are the dear part: only words that begin alike, and differ in more than the plural, are
    # shortened to them. Only those in ASCII have a stem.
    ours, theirs = beginning_alike(
        list(filter(str.isascii, missing)), list(filter(str.isascii, alone))
    )
    candidates = len(theirs)
    if candidates:
        ours, theirs = _unpaired(singulars(ours), singulars(theirs))
    if ours and theirs:
        ours, theirs = _unpaired(_stemmed(ours), _stemmed(theirs))
    return candidates - len(theirs)


def _unpaired(wanted: Items[Item], said: Items[Item]) -> tuple[Items[Item], Items[Item]]:
    """What is left of both when every item has been put together with one equal to it."""
    ours, theirs = set(wanted), set(said)
    missing, alone = ours - theirs, theirs - ours
    if len(ours) == len(wanted) and len(theirs) == len(said):
        return missing, alone
    # One of each is put together, so what is there again meets only what is there again.
    more, extra = _one_by_one(_again(wanted, len(ours)), _again(said, len(theirs)))
    return [*missing, *more], [*alone, *extra]


def _again(items: Items[Item], kinds: int) -> list[Item]:
    """The items, of so many kinds, without the first of each kind."""
    seen: set[Item] = set()
    again: list[Item] = []
    if len(items) == kinds:
        return again
    for item in items:
        if item in seen:
            again.append(item)
        else:
            seen.add(item)
    return again


def _one_by_one(wanted: list[Item], said: list[Item]) -> tuple[list[Item], list[Item]]:
    left = _counted(wanted)
    alone: list[Item] = []
    for item in said:
        if left.get(item):
            left[item] -= 1
        else:
            alone.append(item)
    return [item for item, count in left.items() for _ in range(count)], alone


def _shared(wanted: Sequence[Item], said: Sequence[Item]) -> int:
    """How many items both have; one that is there twice counts twice only if both have it twice."""
    ours, theirs = set(wanted), set(said)
    if len(ours) == len(wanted) or len(theirs) == len(said):
        return len(ours & theirs)
    return len(said) - len(_unpaired(wanted, said)[1])


def _counted(items: Iterable[Item]) -> dict[Item, int]:
    counts: dict[Item, int] = {}
    for item in items:
        counts[item] = counts[item] + 1 if item in counts else 1
    return counts


def _in_order(wanted: Sequence[str], said: Sequence[str]) -> int:
    """The length of the longest common subsequence.

    One bit for every wanted word, all rows of the usual table at once (Crochemore, Iliopoulos,
    Pinzon and Reid, 2001): a bit that has gone out is a word of the subsequence.
    """
    places: dict[str, int] = {}
    for index, word in enumerate(wanted):
        places[word] = places.get(word, 0) | 1 << index
    unmatched = everything = (1 << len(wanted)) - 1
    for word in said:
        if here := places.get(word, 0) & unmatched:
            unmatched = (unmatched + here) | (unmatched - here)
    return len(wanted) - (unmatched & everything).bit_count()
