"""Which cases a pattern matches: the one matcher behind every `filter`."""

from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase

from greenroom.cases.case import Case
from greenroom.errors import BadInput, NotFound
from greenroom.ledger.choices import near

_NOT = "!"
_NAMED = ("id", "name", "tag")
_LISTED = 20


def matches_filter(case: Case, pattern: str) -> bool:
    """Whether `pattern` matches this case, by its id, its name or one of its tags.

    A pattern is a case-sensitive glob (`refund*`), and a string matches itself, whatever
    it holds. With the prefix `id:`, `name:` or `tag:` only that is searched; `!` negates it.
    """
    _check_pattern(pattern)
    if pattern.startswith(_NOT):
        return not matches_filter(case, pattern.removeprefix(_NOT))
    kind, colon, rest = pattern.partition(":")
    words = {
        "id": [case.id],
        "name": [case.name] if case.name else [],
        "tag": list(map(str, case.tags)),
    }
    if colon and kind in _NAMED:
        return any(_matches(word, rest) for word in words[kind])
    return any(_matches(word, pattern) for found in words.values() for word in found)


def chosen(cases: Sequence[Case], patterns: Iterable[str], among: str) -> list[Case]:
    """The cases that any of `patterns` matches, without those that a pattern with `!` excludes.

    A pattern that matches nothing is an error, which lists the ids and tags: what it asks for would
    be left out unnoticed.
    """
    asked = [patterns] if isinstance(patterns, str) else list(patterns)
    if not asked:
        raise BadInput("a filter has no patterns; give one, such as 'refund*' or 'tag:smoke'.")
    for pattern in asked:
        _check_pattern(pattern)
    out = [pattern.removeprefix(_NOT) for pattern in asked if pattern.startswith(_NOT)]
    wanted = [pattern for pattern in asked if not pattern.startswith(_NOT)]
    kept = [case for case in cases if _any(case, wanted or ["*"]) and not _any(case, out)]
    idle = [pattern for pattern in wanted if not any(matches_filter(c, pattern) for c in kept)]
    if idle or not kept:
        ids = [case.id for case in cases]
        tags = sorted({str(tag) for case in cases for tag in case.tags})
        missed = [pattern for pattern in asked if pattern in idle or pattern.startswith(_NOT)]
        message = f"{among} has no case that matches {', '.join(map(repr, missed))}"
        names = [case.name for case in cases if case.name]
        near = near_words([_bare(pattern) for pattern in missed], [*ids, *names, *tags])
        meant = f" Did you mean {' or '.join(map(repr, near))}?" if near else ""
        tagged = f"; tags: {_some(tags)}" if tags else ""
        raise NotFound(f"{message}.{meant} Ids: {_some(ids)}{tagged}.")
    return kept


def _check_pattern(pattern: object) -> None:
    bare = pattern.removeprefix(_NOT) if isinstance(pattern, str) else ""
    kind, colon, rest = bare.partition(":")
    if not (rest if colon and kind in _NAMED else bare).strip():
        raise BadInput(
            f"{pattern!r} is not a filter; give a glob such as 'refund*', 'tag:smoke' or '!slow*'."
        )


def _any(case: Case, patterns: Iterable[str]) -> bool:
    return any(matches_filter(case, pattern) for pattern in patterns)


def _matches(word: str, pattern: str) -> bool:
    # An id such as `refund[eur]` matches itself, not a choice of letters.
    return word == pattern or fnmatchcase(word, pattern)


def _bare(pattern: str) -> str:
    kind, colon, rest = pattern.removeprefix(_NOT).partition(":")
    return (rest if colon and kind in _NAMED else pattern).strip("*?!")


def near_words(asked: Iterable[str], known: Iterable[str]) -> list[str]:
    """The names in `known` that may be meant, nearest first."""
    words = list(dict.fromkeys(known))
    return list(dict.fromkeys(word for one in asked for word in near(one, words, 3)))


def _some(words: Sequence[str]) -> str:
    shown = ", ".join(map(repr, words[:_LISTED])) or "none"
    more = len(words) - _LISTED
    return f"{shown} and {more} more" if more > 0 else shown
