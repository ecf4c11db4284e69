"""Answers that repeat the record, which holds the agent's words, not a verdict of the judge.

An agent may print a complete verdict in the form that is asked for, and a weak judge may copy it.
So an answer is compared with the record before it is believed. Refused are:

- a verdict, or an entry of a sheet, that is in the record itself, whatever its layout, the order
  of its keys, its quotes and escapes, or letters that only look alike
- reasoning that is there as `reasoning`, or that has no word of the judge's own
- the record as a whole, its marks, or a passage longer than a quotation needs to be

A few words of the record in quotes are not repetition.
"""

import re
from collections.abc import Iterator, Mapping
from itertools import permutations
from json import dumps
from unicodedata import category, normalize

from greenroom.ledger.plain import Json, is_array, is_object
from greenroom.metrics.judges.evidence import Evidence, digest, evidence_text
from greenroom.metrics.judges.forms import NotAnAnswer, one_object

REASONING = "reasoning"
LONGEST_QUOTE = 300
"""More letters and digits in a row than this are not a quotation."""

_STEP = 100
_TELLING = 16
"""Reasoning of this many characters does not occur under the same key by chance."""
_BORROWED = 60
"""This many characters taken only from the record are not reasoning."""
_MOST_KEYS = 4
_LAYERS = 8
_DIGEST = re.compile(r"[0-9a-f]{32}")
_ESCAPED = re.compile(r"\\(?:u([0-9a-fA-F]{4})|(.))", re.DOTALL)
_LAYOUT = re.compile(r"[^\w{}\[\]:,]+")
_LOOK_ALIKES = str.maketrans(
    "аеорсухіѕјԁһԛԝвкмнтαορντικευχβημγ",
    "aeopcyxisjdhqwbkmhtaopvtikeuxbnmy",
)


class Shown:
    """A record as a judge saw it, to be searched for in its answers."""

    __slots__ = ("_evidence", "_text")

    def __init__(self, evidence: Evidence) -> None:
        self._evidence = evidence
        self._text: str | None = None

    @property
    def text(self) -> str:
        """The record without its layout; computed for the first answer."""
        if self._text is None:
            self._text = bare(_flat({**self._evidence}))
        return self._text

    def refuse_repetition(self, answer: str) -> None:
        """Raise NotAnAnswer if the answer only repeats the record."""
        if _DIGEST.search(answer) and digest(evidence_text(self._evidence)) in answer:
            raise NotAnAnswer("it must not hold the marks around the record")
        try:
            found: Json = one_object(answer)
        except NotAnAnswer:
            found = {REASONING: answer}  # a custom form, which is not JSON
        if self.text in bare(_flat(found)):
            raise NotAnAnswer("it must not repeat the record")
        for verdict in _objects(found):
            if self._holds(verdict):
                raise NotAnAnswer(
                    "it is copied from the record; judge for yourself, in your own words"
                )
            if self._quoted_at_length(verdict.get(REASONING)):
                raise NotAnAnswer(
                    "`reasoning` must not repeat the record; quote a few words at most"
                )

    def _holds(self, verdict: Mapping[str, Json]) -> bool:
        """Whether the record holds a verdict, as JSON or as text that reads like it."""
        parts = [bare(f"{key}:{_flat(value)}") for key, value in verdict.items()]
        reasoning = bare(f"{REASONING}:{_flat(verdict.get(REASONING, ''))}")
        if len(reasoning) >= len(REASONING) + _TELLING and reasoning in self.text:
            return True
        if not parts or len(parts) > _MOST_KEYS or any(part not in self.text for part in parts):
            return False
        return any(",".join(order) in self.text for order in permutations(parts))

    def _quoted_at_length(self, reasoning: Json) -> bool:
        text = bare(reasoning) if isinstance(reasoning, str) else ""
        if len(text) >= _BORROWED and text in self.text:
            return True
        starts = range(0, len(text) - LONGEST_QUOTE + 1, _STEP)
        return any(text[at : at + LONGEST_QUOTE] in self.text for at in starts)


def bare(text: str) -> str:
    """A string without layout, quotes, escapes and look-alikes, so that copies of it are equal."""
    for _ in range(_LAYERS):
        if "\\" not in text:
            break
        text = _ESCAPED.sub(_unescaped, text)
    if not text.isascii():
        # An escape may write one character as two halves.
        text = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
        text = normalize("NFKC", text).casefold().translate(_LOOK_ALIKES)
        text = "".join(c for c in text if category(c) not in ("Cf", "Mn"))
    return _LAYOUT.sub("", text.lower())


def _unescaped(found: re.Match[str]) -> str:
    code, character = found.groups()
    if code is not None:
        return chr(int(code, 16))
    return " " if character in "nrtbf" else character


def _flat(value: Json) -> str:
    """A JSON value as text in which nothing is quoted or escaped."""
    if isinstance(value, str):
        return value
    if is_object(value):
        return f"{{{','.join(f'{key}:{_flat(item)}' for key, item in value.items())}}}"
    if is_array(value):
        return f"[{','.join(map(_flat, value))}]"
    return dumps(value)


def _objects(value: Json) -> Iterator[Mapping[str, Json]]:
    """Every object in a value; an entry of a sheet also without its id."""
    if is_object(value):
        yield value
        if "id" in value:
            yield {key: item for key, item in value.items() if key != "id"}
    inner = value.values() if is_object(value) else value if is_array(value) else ()
    for item in inner:
        yield from _objects(item)
