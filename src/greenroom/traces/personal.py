"""Removes personal data from a ledger, with the same stand-in for the same value everywhere.

Mocks choose a tool's answer by its arguments, so both must change alike, or a case made from it would not run.
"""

import re
from collections.abc import Callable, Collection, Iterable
from ipaddress import IPv6Address
from typing import Any, Final, cast

from greenroom.ledger.codec import event_data, event_from
from greenroom.ledger.events import RunStarted
from greenroom.ledger.ledger import Ledger
from greenroom.ledger.plain import Json, is_array, is_object

PATTERNS: Final = {
    # It begins at a word boundary, or a long word would be scanned again from each of its letters.
    "email": r"(?<![\w.+-])[\w.+-]+@(?:(?:[\w-]+\.)+[^\W\d_][\w-]*|\d+(?:\.\d+){3})",
    "iban": r"\b[A-Z]{2}\d{2}(?: ?[A-Z0-9]{4}){2,7}(?: ?[A-Z0-9]{1,3})?\b",
    "phone": r"(?<![\w./-])(?:"
    r"(?:\+|00[ -])\d{1,3}(?:[ ./-]?\(?\d{1,4}\)?){2,5}"  # with the country
    r"|0\d{1,4}[ /-]\d{2,8}(?:[ -]\d{2,8}){0,3}"  # with the 0 before the area
    r"|(?:1[ .-])?\(?\d{3}\)?[ .-]\d{3}[ .-]\d{4}"  # as in North America
    r")(?![\d:])\b",
    "card": r"\b[2-6](?:\d{12,18}|\d{3}(?:[ -]\d{4}){3}|\d{3}[ -]\d{6}[ -]\d{4,5})\b",
    "ssn": r"\b\d{3}-\d{2}-\d{4}\b",
    "ip": r"\b(?:25[0-5]|2[0-4]\d|1?\d?\d)(?:\.(?:25[0-5]|2[0-4]\d|1?\d?\d)){3}\b",
    "ipv6": r"(?<![\w:.])[0-9A-Fa-f]{1,4}(?::[0-9A-Fa-f]{0,4}){2,7}(?![\w:])",
}
_STAND_INS: Final[dict[str, Callable[[int], str]]] = {
    "email": lambda n: f"user-{n}@example.com",
    "iban": lambda n: f"iban-{n}",
    "card": lambda n: f"card-{n}",
    "ssn": lambda n: f"ssn-{n}",
    "phone": lambda n: f"phone-{n}",
    "ip": lambda n: f"192.0.2.{n % 256}",
    "ipv6": lambda n: f"2001:db8::{n:x}",
    "name": lambda n: f"Person {n}",
}
_NEVER: Final = (
    "kind",
    "path",
    "voice",
    "call_id",
    "tool",
    "node",
    "model",
    "run_id",
    "source",
    "in_place_of",
)
"""Fields by which events refer to each other, or that name parts of the agent."""
_CONTENT: Final = ("args", "value", "values", "data", "input", "output", "state", "items")
"""Fields that hold what was said or done; names inside them are data, not fields of the event."""


class StandIns:
    """Replaces e-mail addresses, telephone, card and account numbers, addresses of machines, and names.

    Names in free text are found only if they are listed.
    """

    def __init__(self, names: Iterable[str] = ()) -> None:
        self.replaced: dict[str, dict[str, str]] = {}
        """The stand-in for each value, by kind."""
        self._rules = {kind: re.compile(rule) for kind, rule in PATTERNS.items()}
        listed = sorted({name.strip() for name in names if name.strip()}, key=len, reverse=True)
        if listed:
            words = "|".join(map(re.escape, listed))
            self._rules["name"] = re.compile(rf"\b(?:{words})\b", re.I)

    def ledger(self, ledger: Ledger) -> Ledger:
        """The ledger without personal data; its own id is replaced too if it holds some."""
        events: list[Any] = []
        for event in ledger:
            data = cast("dict[str, Json]", self._inside(event_data(event)))
            if isinstance(event, RunStarted):
                data["run_id"] = self.text(event.run_id)
            events.append(event_from(data))
        return Ledger(events)

    def text(self, text: str) -> str:
        """Text without personal data."""
        for kind, rule in self._rules.items():
            text = rule.sub(lambda found, kind=kind: self._stand_in(kind, found[0]), text)
        return text

    def _inside(self, value: Json, never: Collection[str] = _NEVER) -> Json:
        if isinstance(value, str):
            return self.text(value)
        if is_object(value):
            return {
                self.text(key): inner
                if key in never
                else self._inside(inner, () if key in _CONTENT else never)
                for key, inner in value.items()
            }
        return [self._inside(inner, never) for inner in value] if is_array(value) else value

    def _stand_in(self, kind: str, found: str) -> str:
        if kind in _CHECKS and not _CHECKS[kind](found):
            return found
        known = self.replaced.setdefault(kind, {})
        key = found.casefold()
        if found in known.values():
            return found
        return known.setdefault(key, _STAND_INS[kind](len(known) + 1))

    def __str__(self) -> str:
        counts = [f"{len(found)} × {kind}" for kind, found in self.replaced.items()]
        return ", ".join(counts) or "nothing"


def _is_card(found: str) -> bool:
    """Whether the digits end in the right check digit (Luhn)."""
    digits = [int(one) for one in found if one.isdigit()][::-1]
    doubled = (sum(divmod(2 * digit, 10)) for digit in digits[1::2])
    return (sum(digits[::2]) + sum(doubled)) % 10 == 0


def _is_phone(found: str) -> bool:
    """Whether there are enough digits for a telephone number; a date or a UTC offset has fewer."""
    return sum(one.isdigit() for one in found) >= (8 if found.startswith("+") else 9)


def _is_ipv6(found: str) -> bool:
    if all(len(part) < 4 for part in found.split(":")):
        return False  # such as [1::2]
    try:
        IPv6Address(found)
    except ValueError:
        return False
    return True


_CHECKS: Final[dict[str, Callable[[str], bool]]] = {
    "card": _is_card,
    "phone": _is_phone,
    "ipv6": _is_ipv6,
}
"""Further checks of a match, by kind."""
