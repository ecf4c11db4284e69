"""Porter's stems: connected, connecting and connection are one word.

The algorithm is M. F. Porter's of 1980 with the departures that NLTK documents for its own mode,
because ROUGE figures are published with those stems. A word is seen as runs of consonants (c) and
vowels (v); its measure is how often a vowel run is followed by a consonant run. Most rules replace
a suffix when what stands before it has a measure high enough.
"""

from collections.abc import Mapping, Sequence

Rule = tuple[str, int, str, str]
"""A suffix, how much of it goes, what comes instead, and the shape of that."""

_KINDS = bytes.maketrans(b"aeioubcdfghjklmnpqrstvwxz0123456789", b"v" * 5 + b"c" * 30)
_VC = "vc"

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
    """The stem of a word in lower-case ASCII letters and digits."""
    if len(word) <= 2:
        return word
    if word in _IRREGULAR:
        return _IRREGULAR[word]
    # Whether a letter is a vowel depends on those before it alone. So the shape is made once, stays
    # right for every beginning of the word, and may be longer than what is left of it.
    shape = _shape(word)
    if word[-1] == "s":
        word = _singular(word)
    if word[-1] in "dg":
        word, shape = _present(word, shape)
    if word[-1] == "y" and len(word) > 2 and shape[len(word) - 2] == "c":
        word = word[:-1] + "i"
    if word.endswith("alli") and _VC in shape[: len(word) - 4]:
        # Which may make it another suffix: -ationalli is -ational.
        word = word[:-2]
    for step, least in _STEPS:
        if rules := step.get(word[-2:]):
            word, shape = _replaced(word, shape, rules, least)
    return _trimmed(word, shape) if word[-1] in "el" else word


def _shape(word: str) -> str:
    """The word with c for every consonant and v for every vowel."""
    # Bytes go through a table three times as fast as texts.
    shape = word.encode("ascii").translate(_KINDS).decode("ascii")
    place = shape.find("y")
    while place >= 0:
        # After a consonant it sounds like a vowel; at the start it does not.
        kind = "v" if shape[:place].endswith("c") else "c"
        shape = shape[:place] + kind + shape[place + 1 :]
        place = shape.find("y", place + 1)
    return shape


def _is_short(word: str, shape: str) -> bool:
    """Whether it ends like hop: consonant, vowel, and a consonant other than w, x, y."""
    return shape == _VC or (shape.endswith("cvc") and word[-1] not in "wxy")


def _singular(word: str) -> str:
    if word.endswith("ies"):
        return word[:-1] if len(word) == 4 else word[:-2]
    if word.endswith("ss"):
        return word
    return word[:-2] if word.endswith("sses") else word[:-1]


def _present(word: str, shape: str) -> tuple[str, str]:
    """Without the ending of a past tense or participle."""
    if word.endswith("ing"):
        base = word[:-3]
    elif not word.endswith("ed"):
        return word, shape
    elif word.endswith("ied"):
        return (word[:-1] if len(word) == 4 else word[:-2]), shape
    elif word.endswith("eed"):
        return (word[:-1] if _VC in shape[: len(word) - 3] else word), shape
    else:
        base = word[:-2]
    before = shape[: len(base)]
    return _infinitive(base, before) if "v" in before else (word, shape)


def _infinitive(base: str, shape: str) -> tuple[str, str]:
    """What is left without -ed or -ing, spelled as a word again: hopp is hop, hop is hope."""
    if base.endswith(("at", "bl", "iz")):
        return base + "e", shape + "v"
    if shape[-1] == "c" and base[-2:-1] == base[-1]:
        return (base if base[-1] in "lsz" else base[:-1]), shape
    if shape.count(_VC) == 1 and _is_short(base, shape):
        return base + "e", shape + "v"
    return base, shape


def _replaced(word: str, shape: str, rules: Sequence[Rule], least: int) -> tuple[str, str]:
    """The word with its suffix replaced, if what stands before has at least this measure."""
    for suffix, cut, instead, kinds in rules:
        if word.endswith(suffix):
            before = shape[: len(word) - cut]
            if before.count(_VC) >= least:
                return word[:-cut] + instead, before + kinds
            break
    return word, shape


def _trimmed(word: str, shape: str) -> str:
    """Without a last e that long words can spare, and with one l for two."""
    if word[-1] == "e":
        before, shape = word[:-1], shape[: len(word) - 1]
        measure = shape.count(_VC)
        if measure > 1 or (measure == 1 and not _is_short(before, shape)):
            word = before
    if word.endswith("ll") and shape.count(_VC, 0, len(word) - 1) > 1:
        return word[:-1]
    return word


def _rules(*replacements: str) -> Mapping[str, Sequence[Rule]]:
    """Rules by a word's last two letters, from lines like "ational ate".

    In "t|ion" the t must be there, but is no part of what goes.
    """
    rules: dict[str, list[Rule]] = {}
    for line in replacements:
        wanted, _, instead = line.partition(" ")
        kept, _, gone = wanted.rpartition("|")
        suffix = kept + gone
        rules.setdefault(suffix[-2:], []).append((suffix, len(gone), instead, _shape(instead)))
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
