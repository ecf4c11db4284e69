"""Words the agent should use, and words it should avoid."""

import re
from collections.abc import Sequence
from typing import ClassVar
from unicodedata import normalize

from greenroom.cases.case import Case
from greenroom.cases.scores import Outcome, Score, Unmeasured
from greenroom.cases.words import is_whole
from greenroom.errors import BadMetric
from greenroom.ledger.ledger import Ledger
from greenroom.ledger.questions import said
from greenroom.metrics.builtin import (
    QuickMetric,
    checked_switch,
    checked_text,
    checked_texts,
    checked_threshold,
    written,
)
from greenroom.metrics.facts import spoken
from greenroom.metrics.likeness import USUAL_THRESHOLD
from greenroom.metrics.needs import WORDS, Needs
from greenroom.metrics.response import share_found
from greenroom.world.world import World

NEGATIVE_WORDS = ("sorry", "unfortunately", "can't")
_STEPS = 10
"""How much each negative word takes off the tone."""


class Keywords(QuickMetric, frozen=True, kw_only=True):
    """Looks for whole words in the last response."""

    needs: ClassVar[Needs] = WORDS
    words: tuple[str, ...]
    ignore_case: bool
    threshold: float

    def measure(self, case: Case, ledger: Ledger, world: World) -> Outcome:
        """The share of the words that are found."""
        said = spoken(ledger)
        if isinstance(said, Unmeasured):
            return said
        found = words_found(said, self.words, ignore_case=self.ignore_case)
        missing = [word for word in self.words if word not in found]
        return share_found(self, said, len(self.words), missing, "keywords")


def keywords(
    *given: str,
    words: Sequence[str] = (),
    ignore_case: bool = True,
    threshold: float = 1.0,
    name: str | None = None,
) -> Keywords:
    """The last response has these words, each as a whole word; the value is the share found.

    `keywords("refund", "credit card")` and `keywords(words=["refund", "credit card"])` are the same.
    """
    named = [checked_text(word, "keywords") for word in given]
    wanted = _some([*named, *checked_texts(words, "words", "keywords")], "keywords")
    checked_switch(ignore_case, "ignore_case", "keywords")
    checked_threshold(threshold, "keywords(...)")
    return Keywords(
        words=wanted,
        ignore_case=ignore_case,
        threshold=threshold,
        **written(
            "keywords",
            *wanted,
            ignore_case=None if ignore_case else False,
            threshold=None if threshold == 1 else threshold,
            name=name,
        ),
    )


class Tone(QuickMetric, frozen=True, kw_only=True):
    """Looks for words in everything the agent said."""

    needs: ClassVar[Needs] = WORDS
    negative_words: tuple[str, ...]
    whole_words: bool
    threshold: float

    def measure(self, case: Case, ledger: Ledger, world: World) -> Outcome:
        """1.0, less 0.1 for every listed word that was said, but not below 0."""
        texts = said(ledger)
        found = self._found_in("\n".join(texts), self.negative_words)
        # What was said counts, even if no response came after it.
        if not found and isinstance(last := spoken(ledger), Unmeasured):
            return last
        return Score(
            _tone(len(found)),
            threshold=self.threshold,
            name=self.name,
            reason=f"said {', '.join(map(repr, found))}"
            if found
            else "said none of the listed words",
            evidence=[text for text in texts if self._found_in(text, found)],
            details={"found": found},
            measured=len(found),
        )

    def _found_in(self, text: str, words: Sequence[str]) -> list[str]:
        return words_found(text, words, whole=self.whole_words)


def tone(
    negative_words: Sequence[str] = NEGATIVE_WORDS,
    *,
    whole_words: bool = True,
    threshold: float = USUAL_THRESHOLD,
    name: str = "tone",
) -> Tone:
    """The agent avoids these words: 1.0, less 0.1 for each of them it says, in a response or beside a tool call.

    With `whole_words=False` they are found inside other words too, as in `_4711_`.
    """
    listed = _some(checked_texts(negative_words, "negative_words", "tone"), "tone")
    checked_switch(whole_words, "whole_words", "tone")
    checked_threshold(threshold, "tone(...)")
    if _tone(len(listed)) >= threshold:
        raise BadMetric(
            f"tone(...) lists {len(listed)} words and could never fall below its threshold "
            f"{threshold!r}; list more words, or raise the threshold."
        )
    return Tone(
        negative_words=listed,
        whole_words=whole_words,
        threshold=threshold,
        **written(
            "tone", list(listed), whole_words=whole_words and None, threshold=threshold, name=name
        ),
    )


def _tone(count: int) -> float:
    return max(0, _STEPS - count) / _STEPS


def words_found(
    text: str, words: Sequence[str], *, ignore_case: bool = True, whole: bool = True
) -> list[str]:
    """The words, or groups of words, that are in the text: as whole words, or anywhere."""
    searched = _spelled(text, ignore_case)
    found: list[str] = []
    for word in words:
        parts = r"\s+".join(map(re.escape, _spelled(word, ignore_case).split()))
        # Not by tokens: a word may begin or end with a sign, as C++ does. The group looks ahead, so
        # that a match inside a longer word does not hide the next one.
        places = re.finditer(f"(?=({parts}))", searched)
        if any(not whole or is_whole(searched, *place.span(1)) for place in places):
            found.append(word)
    return found


def _spelled(text: str, ignore_case: bool) -> str:
    text = normalize("NFKC", text.replace("’", "'"))
    return normalize("NFKC", text.casefold()) if ignore_case else text


def _some(words: Sequence[str], factory: str) -> tuple[str, ...]:
    """The words, each once, if there are any."""
    if not words:
        raise BadMetric(f"{factory}(...) has no words to look for; list at least one.")
    return tuple(dict.fromkeys(words))
