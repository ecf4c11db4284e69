"""A quick look for secrets in JSON that is about to be written: what it lets through holds none.

The ledgers of a run say the same words again and again. A word is looked at when it first appears;
only where one may be a part of a secret is a thorough look worth its price.
"""

import re
from collections.abc import Collection, Iterator

from greenroom.ledger.redaction import Redactor
from greenroom.ledger.secrets import CODED, TELLING_WORD, readings, well_known

_LETTERS = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+/=."
_WORDS_ONLY = bytes(byte if byte in _LETTERS or byte >= 128 else 32 for byte in range(256))
_SPELT_OUT = re.compile(rb"%[0-9A-Fa-f]{2}|\\[ubf]")
_WORD_ENDS = re.compile(rb'[ "]')
_PARTS_OF_NAMES = ("key", "secret", "token", "passw", "passphrase", "author", "bearer")
_SHORT = 64
_MANY = 100_000
_MUCH = 500_000


class Sieve:
    """Remembers the words in which there is no secret. For one thread."""

    def __init__(self, redactor: Redactor) -> None:
        self._hints = {hint for kind in redactor.kinds for hint in kind.hints}
        self._looks: dict[str, list[re.Pattern[str]]] = {}
        self._cores: set[str] = set()
        for kind in redactor.kinds:
            for hint in () if kind.by_name else kind.hints:
                if kind in well_known() and " " not in hint:
                    self._looks.setdefault(_core(hint), []).append(kind.look)
                else:
                    self._cores.add(_core(hint))
        self._texts: set[bytes] = set()
        self._words: set[bytes] = set()

    def is_clean(self, data: bytes) -> bool:
        """Whether this JSON holds no secret for sure; if not, it may still hold none."""
        if len(data) <= _MUCH:
            return self._lets_through(_texts(data))
        return all(self._lets_through(set(piece.split(b'"'))) for piece in _pieces(data))

    def _lets_through(self, given: set[bytes]) -> bool:
        texts = given - self._texts
        everything = b'"'.join(texts)
        words = set(everything.translate(_WORDS_ONLY).split()) - self._words
        told = b"\n".join(words).decode(errors="replace")
        if _is_spelt_out(everything) or _is_announced(told) or self._is_hidden(told):
            return False
        if any(core in told for core in self._cores):
            return False
        found = [core for core in self._looks if core in told]
        if found and self._is_seen(found, everything.decode(errors="replace")):
            return False
        self._remember(texts, words, [core.encode() for core in found])
        return True

    def _is_hidden(self, words: str) -> bool:
        """Whether base64 says what a secret says."""
        coded = (plain for run in CODED.finditer(words) for plain in readings(run[0]))
        return any(hint in plain for plain in coded for hint in self._hints)

    def _is_seen(self, cores: Collection[str], texts: str) -> bool:
        return any(look.search(texts) for core in cores for look in self._looks[core])

    def _remember(self, texts: set[bytes], words: set[bytes], doubtful: Collection[bytes]) -> None:
        for known, new in ((self._texts, texts), (self._words, words)):
            if len(known) > _MANY:
                known.clear()
            # What is harmless behind one letter need not be so behind another.
            doubted = {one for one in new for core in doubtful if core in one}
            known |= {one for one in new if len(one) <= _SHORT} - doubted


def _texts(data: bytes) -> set[bytes]:
    """All that stands in quotes, and with it the rest where it cannot be told from that."""
    parts = data.split(b'"')
    has_inner_quotes = b"\\" in data and b'\\"' in data
    return set(parts if has_inner_quotes else parts[1::2])


def _pieces(data: bytes) -> Iterator[bytes]:
    """Long data a piece at a time, for words take ten times the room; no word is cut."""
    begun = 0
    while begun < len(data):
        end = _WORD_ENDS.search(data, begun + _MUCH)
        yield data[begun : end.start() if end else len(data)]
        begun = end.end() if end else len(data)


def _core(hint: str) -> str:
    """The longest word of a hint: JSON may write the signs around it in another way."""
    words = hint.encode(errors="surrogatepass").translate(_WORDS_ONLY).split()
    return max(words, key=len, default=b"").decode(errors="replace")


def _is_spelt_out(texts: bytes) -> bool:
    """Whether letters may be written as numbers, or end in what looks like one."""
    return (b"%" in texts or b"\\" in texts) and _SPELT_OUT.search(texts) is not None


def _is_announced(words: str) -> bool:
    """Whether a word says that a secret follows."""
    folded = words.casefold()
    return (
        any(part in folded for part in _PARTS_OF_NAMES) and TELLING_WORD.search(words) is not None
    )
