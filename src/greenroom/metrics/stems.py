"""Porter's stems: connected, connecting and connection are one word.

The algorithm is M. F. Porter's of 1980 with the departures that NLTK documents for its own mode,
because ROUGE figures are published with those stems. A word is seen as runs of consonants (c) and
vowels (v); its measure is how often a vowel run is followed by a consonant run. Most rules replace
a suffix when the rest of the word has a high enough measure.
"""

from collections.abc import Mapping, Sequence

Rule = tuple[str, int, str, bytes]
"""A suffix, how much of it goes, what comes instead, and the shape of that."""

_KINDS = bytes.maketrans(b"aeioubcdfghjklmnpqrstvwxz0123456789", b"v" * 5 + b"c" * 30)
_VC = b"vc"
# Letters of a shape are counted: `in` tries bytes as a number first, and is slower.

_IRREGULAR = {
    "sky": "sky",
    "skies": "sky",
    "dying": "die",
    "lying": "lie",
    "tying": "tie",
    "news": "news",
    "innings": "inning",
    "inning": "inning",
    "outings": "outing",
    "outing": "outing",
    "cannings": "canning",
    "canning": "canning",
    "howe": "howe",
    "proceed": "proceed",
    "exceed": "exceed",
    "succeed": "succeed",
}


def stem(word: str) -> str:
    """The stem of a word of lower-case ASCII letters and digits."""
    if len(word) <= 2:
        return word
    if word in _IRREGULAR:
        return _IRREGULAR[word]
    last = word[-1]
    if last == "s":
        word = _singular(word)
        last = word[-1]
    if last not in "dgyiel" and word[-2:] not in _ENDS:
        return word
    # Whether a letter is a vowel depends on those before it alone. So the shape is made once, stays
    # right for every beginning of the word, and may be longer than what is left of it.
    shape = word.encode().translate(_KINDS)
    if "y" in word:
        shape = _sounded(shape)
    if last in "dg":
        word, shape = _present(word, shape)
        last = word[-1]
    if last == "y" and len(word) > 2 and shape.startswith(b"c", len(word) - 2):
        word = word[:-1] + "i"
        last = "i"
    if last == "i" and word.endswith("alli") and shape.count(_VC, 0, len(word) - 4):
        # The result may end in another suffix: -ationalli becomes -ational.
        word = word[:-2]
    return _without_suffixes(word, shape)


def _sounded(shape: bytes) -> bytes:
    """The shape with every y as what it sounds like."""
    place = shape.find(b"y")
    while place >= 0:
        # After a consonant it sounds like a vowel; at the start it does not.
        kind = b"v" if shape[:place].endswith(b"c") else b"c"
        shape = shape[:place] + kind + shape[place + 1 :]
        place = shape.find(b"y", place + 1)
    return shape


def _is_short(word: str, shape: bytes) -> bool:
    """Whether it ends like hop: consonant, vowel, and a consonant other than w, x, y."""
    return shape == _VC or (shape.endswith(b"cvc") and word[-1] not in "wxy")


def _singular(word: str) -> str:
    if word[-2] == "s":
        return word
    if word[-2] != "e":
        return word[:-1]
    if word.endswith("ies"):
        return word[:-1] if len(word) == 4 else word[:-2]
    return word[:-2] if word.endswith("sses") else word[:-1]


def _present(word: str, shape: bytes) -> tuple[str, bytes]:
    """The word without the ending of a past tense or participle."""
    if word.endswith("ing"):
        base = word[:-3]
    elif not word.endswith("ed"):
        return word, shape
    elif word.endswith("ied"):
        return (word[:-1] if len(word) == 4 else word[:-2]), shape
    elif word.endswith("eed"):
        return (word[:-1] if shape.count(_VC, 0, len(word) - 3) else word), shape
    else:
        base = word[:-2]
    before = shape[: len(base)]
    return _infinitive(base, before) if before.count(b"v") else (word, shape)


def _infinitive(base: str, shape: bytes) -> tuple[str, bytes]:
    """What is left without -ed or -ing, spelled as a word again: hopp is hop, hop is hope."""
    if base.endswith(("at", "bl", "iz")):
        return base + "e", shape + b"v"
    if base[-2:-1] == base[-1] and shape.endswith(b"c"):
        return (base if base[-1] in "lsz" else base[:-1]), shape
    if shape.count(_VC) == 1 and _is_short(base, shape):
        return base + "e", shape + b"v"
    return base, shape


def _without_suffixes(word: str, shape: bytes) -> str:
    """The word after each step has replaced its suffix, if the measure of the rest is high enough."""
    # One loop without calls, because every new word passes through here.
    end = word[-2:]
    for step, least in _STEPS if end in _ENDS else ():
        if end not in step:
            continue
        for suffix, cut, instead, kinds in step[end]:
            if suffix == end or word.endswith(suffix):
                kept = len(word) - cut
                if shape.count(_VC, 0, kept) >= least:
                    word, shape = word[:kept] + instead, shape[:kept] + kinds
                    end = word[-2:]
                break
    return _trimmed(word, shape) if word[-1] in "el" else word


def _trimmed(word: str, shape: bytes) -> str:
    """The word without a final e, if it is long enough, and with one l instead of a final two."""
    if word[-1] == "e":
        last = len(word) - 1
        measure = shape.count(_VC, 0, last)
        if measure > 1 or (measure == 1 and not _is_short(word[:last], shape[:last])):
            word = word[:last]
    if word[-1] == "l" and word.endswith("ll") and shape.count(_VC, 0, len(word) - 1) > 1:
        return word[:-1]
    return word


def _rules(*replacements: str) -> Mapping[str, Sequence[Rule]]:
    """Rules by a word's last two letters, from lines like "ational ate".

    In "t|ion" the t must be there, but is not part of what goes.
    """
    rules: dict[str, list[Rule]] = {}
    for line in replacements:
        wanted, _, instead = line.partition(" ")
        kept, _, gone = wanted.rpartition("|")
        suffix = kept + gone
        kinds = instead.encode("ascii").translate(_KINDS)
        rules.setdefault(suffix[-2:], []).append((suffix, len(gone), instead, kinds))
    return rules


_SECOND = _rules(
    "ational ate",
    "tional tion",
    "enci ence",
    "anci ance",
    "izer ize",
    "bli ble",
    "alli al",
    "entli ent",
    "eli e",
    "ousli ous",
    "fulli ful",
    "l|ogi og",
    "ization ize",
    "ation ate",
    "ator ate",
    "alism al",
    "iveness ive",
    "fulness ful",
    "ousness ous",
    "aliti al",
    "iviti ive",
    "biliti ble",
)
_THIRD = _rules("icate ic", "ative", "alize al", "iciti ic", "ical ic", "ful", "ness")
_FOURTH = _rules(
    *("al", "ance", "ence", "er", "ic", "able", "ible", "ant", "ement", "ment", "ent"),
    *("s|ion", "t|ion", "ou", "ism", "ate", "iti", "ous", "ive", "ize"),
)
_STEPS = ((_SECOND, 1), (_THIRD, 1), (_FOURTH, 2))
_ENDS = frozenset((*_SECOND, *_THIRD, *_FOURTH))
"""The last two letters of every suffix."""
