"""Does the agent's last response say what it should?"""

import re
from collections.abc import Sequence
from typing import ClassVar, Protocol

from greenroom.cases.case import Case
from greenroom.cases.scores import NotApplicable, Outcome, Score, Unmeasured
from greenroom.errors import BadMetric
from greenroom.ledger.ledger import Ledger
from greenroom.ledger.messages import is_blank
from greenroom.ledger.plain import composed
from greenroom.metrics.builtin import (
    BuiltIn,
    QuickMetric,
    checked_switch,
    checked_text,
    checked_texts,
    checked_threshold,
    written,
)
from greenroom.metrics.facts import reference, reference_of, spoken
from greenroom.metrics.needs import WORDS, Needs
from greenroom.metrics.turns import (
    MeasuredTurn,
    lowest_score,
    mean_score,
    never_reached,
    scripted_turns,
)
from greenroom.world.world import World


class Exact(QuickMetric, frozen=True, kw_only=True):
    """Compares the last response with a text, or with the case's reference."""

    needs: ClassVar[Needs] = WORDS
    text: str | None

    def measure(self, case: Case, ledger: Ledger, world: World) -> Outcome:
        """1 if both are equal, ignoring white space around them."""
        none = reference(case) if self.text is None else None
        if isinstance(none, NotApplicable):
            return none
        said = spoken(ledger)
        if isinstance(said, Unmeasured):
            return said
        if self.text is None:
            return self._turn_by_turn(case, ledger)
        passed, reason = _compared(said, self.text)
        return Score(float(passed), passed, name=self.name, reason=reason, evidence=[said])

    def _turn_by_turn(self, case: Case, ledger: Ledger) -> Outcome:
        """1 if the last response of every turn that has a reference equals it."""
        found: list[MeasuredTurn] = []
        for turn in scripted_turns(case, ledger):
            if not (wanted := reference_of(turn.expect)):
                continue
            if turn.reached and is_blank(turn.response):
                return Unmeasured(f"the agent's response is empty in turn {turn.number}")
            passed, reason = _compared(turn.response, wanted)
            one = MeasuredTurn(turn.number, float(passed), reason, turn.response)
            found.append(one if turn.reached else never_reached(turn))
        return lowest_score(found, self.name, 1.0)


def _compared(said: str, wanted: str) -> tuple[bool, str]:
    """Whether the two are equal, and what to say about it."""
    if equal_texts(said, wanted):
        return True, "the response is the expected text"
    return False, f"the response is {quoted(said)}; expected {quoted(wanted)}"


def exact(text: str | None = None, *, name: str | None = None) -> Exact:
    """The last response equals `text`; without one, that of each turn equals its reference.

    White space around is ignored. The reference is `Expect(reference=...)`, else `Expect(response=...)`.
    """
    if text is not None:
        checked_text(text, "exact")
    return Exact(text=text, **written("exact", *(() if text is None else (text,)), name=name))


class Contains(QuickMetric, frozen=True, kw_only=True):
    """Looks for strings in the last response."""

    needs: ClassVar[Needs] = WORDS
    texts: tuple[str, ...]
    ignore_case: bool
    threshold: float

    def measure(self, case: Case, ledger: Ledger, world: World) -> Outcome:
        """The share of the strings that is found."""
        expect = case.script[-1].expect if case.script else None
        wanted = self.texts or texts_of((expect and expect.contains) or ())
        if not wanted:
            return NotApplicable("the case's last turn has no Expect(contains=...)")
        said = spoken(ledger)
        if isinstance(said, Unmeasured):
            return said
        if not self.texts:
            last = scripted_turns(case, ledger)[-1]
            if not last.reached:
                return mean_score([never_reached(last)], self.name, self.threshold)
            if is_blank(said := last.response):
                return Unmeasured(f"the agent's response is empty in turn {last.number}")
        missing = missing_texts(said, wanted, ignore_case=self.ignore_case)
        return share_found(self, said, len(wanted), missing, "strings")


def contains(
    *given: str,
    texts: Sequence[str] = (),
    ignore_case: bool = False,
    threshold: float = 1.0,
    name: str | None = None,
) -> Contains:
    """The last response contains these strings; the value is the share found.

    `contains("a", "b")` and `contains(texts=["a", "b"])` are the same. Without any, those that
    the case's last turn expects with `Expect(contains=...)`, in the last response of that turn.
    """
    named = [checked_text(text, "contains") for text in given]
    wanted = (*named, *checked_texts(texts, "texts", "contains"))
    checked_switch(ignore_case, "ignore_case", "contains")
    checked_threshold(threshold, "contains(...)")
    return Contains(
        texts=wanted,
        ignore_case=ignore_case,
        threshold=threshold,
        **written(
            "contains",
            *wanted,
            ignore_case=ignore_case or None,
            threshold=None if threshold == 1 else threshold,
            name=name,
        ),
    )


_ANSWERS = (*map(chr, range(ord("!"), ord("~") + 1)), "é", "中", "🙂", "a\nb")
"""Answers that have nothing in common."""


class Matches(BuiltIn, frozen=True, kw_only=True):
    """Searches the last response for a regular expression."""

    needs: ClassVar[Needs] = WORDS
    pattern: re.Pattern[str]

    def measure(self, case: Case, ledger: Ledger, world: World) -> Outcome:
        """1 if the pattern is found anywhere."""
        said = spoken(ledger)
        if isinstance(said, Unmeasured):
            return said
        found = self.pattern.search(composed(said))
        if found is None:
            reason = f"{self.pattern.pattern!r} is not found in {quoted(said)}"
            return Score(0.0, False, name=self.name, reason=reason, evidence=[said])
        reason = f"{self.pattern.pattern!r} matches {quoted(found.group())}"
        return Score(1.0, True, name=self.name, reason=reason, evidence=[found.group()])


def matches(pattern: str | re.Pattern[str], *, name: str | None = None) -> Matches:
    """The last response contains a match of the regular expression."""
    try:
        compiled = re.compile(pattern)
    except (re.error, TypeError) as error:
        raise BadMetric(f"matches({pattern!r}): not a regular expression: {error}.") from error
    if not isinstance(compiled.pattern, str) or not compiled.pattern:  # pyright: ignore[reportUnnecessaryIsInstance]
        raise BadMetric(f"matches({pattern!r}): give a string that is not empty.")
    # What was said is searched in this form, too.
    compiled = re.compile(composed(compiled.pattern), compiled.flags)
    if _fits_all(compiled):
        raise BadMetric(
            f"matches({pattern!r}): every answer matches it; write a pattern that some answers do not match."
        )
    return Matches(pattern=compiled, **written("matches", compiled.pattern, name=name))


def _fits_all(pattern: re.Pattern[str]) -> bool:
    """Whether a pattern matches every answer: the empty string at its end, or whatever character it is."""
    written = pattern.pattern
    looks_back = "(?<" in written or r"\B" in written
    if not looks_back and pattern.fullmatch("\0", 1) is not None:
        return True
    # Answers that lack a word, or that are short, are not among these.
    excludes = any(part in written for part in ("(?!", "(?<!", "{"))
    return not excludes and all(map(pattern.search, _ANSWERS))


class Sharing(Protocol):
    """A metric whose value is the share it finds of what it looks for."""

    @property
    def name(self) -> str: ...
    @property
    def threshold(self) -> float: ...


def share_found(metric: Sharing, said: str, asked: int, missing: list[str], noun: str) -> Score:
    """The score for what was found and what is missing."""
    found = asked - len(missing)
    reason = f"{found} of {asked} {noun} found"
    if missing:
        reason += f"; missing {', '.join(map(quoted, missing))}"
    return Score(
        found / asked,
        threshold=metric.threshold,
        name=metric.name,
        reason=reason,
        evidence=[said],
        measured=found,
    )


def texts_of(wanted: str | Sequence[str]) -> Sequence[str]:
    """One string or several, as several."""
    return (wanted,) if isinstance(wanted, str) else wanted


def equal_texts(said: str, wanted: str) -> bool:
    """Whether two strings are equal, ignoring white space around them."""
    return composed(said).strip() == composed(wanted).strip()


def missing_texts(said: str, wanted: Sequence[str], *, ignore_case: bool = False) -> list[str]:
    """The wanted strings that `said` does not contain."""
    spelled = folded if ignore_case else composed
    searched = spelled(said)
    return [text for text in wanted if spelled(text) not in searched]


def folded(text: str) -> str:
    """The text for a comparison in which upper and lower case are the same."""
    return text.casefold() if text.isascii() else composed(composed(text).casefold())


def quoted(text: str, longest: int = 120) -> str:
    """A string in quotes, shortened to a readable length."""
    return repr(cut(text, longest))


def cut(text: str, longest: int) -> str:
    """At most this many characters of a text, with "…" in place of the rest."""
    return text if len(text) <= longest else f"{text[: longest - 1]}…"
