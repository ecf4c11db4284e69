"""Simulated users that are data: scripted lines, and a person for a model to play."""

from collections.abc import Mapping
from dataclasses import KW_ONLY, fields
from typing import Any, cast

from greenroom.errors import BadCase, BadValue
from greenroom.ledger.plain import Json, plain
from greenroom.ledger.records import record


class Lines:
    """A user who says these lines in turn and then is done, or goes on with `then`.

    As the answer of a tool's wait a line may be any JSON value but None, which says nothing.
    """

    __slots__ = ("lines", "then")

    def __init__(self, *lines: Any, then: Any = None) -> None:
        if any(line is None for line in lines):
            raise BadCase(f"Lines{lines!r} has a line that is None; leave it out.")
        self.lines = lines
        self.then = then

    def line(self, n: int) -> Any:
        """The n-th line, or None when the user is done."""
        return self.lines[n] if n < len(self.lines) else self.then

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Lines):
            return NotImplemented
        return self.lines == other.lines and self.then == other.then

    def __hash__(self) -> int:
        return hash(repr(self))

    def __repr__(self) -> str:
        shown = [repr(line) for line in self.lines]
        if self.then is not None:
            shown.append(f"then={self.then!r}")
        return f"Lines({', '.join(shown)})"


@record
class SimulatedUser:
    """A person played by a model: who they are, what they want, and how they say goodbye.

    The conversation is over for them when their text contains `stop_signal`.
    """

    persona: str
    _: KW_ONLY
    goal: str = ""
    model: Any
    stop_signal: str = "</finished>"
    name: str = "user"


def user_data(user: object) -> Json:
    """The user as JSON, or None for one who is code."""
    match user:
        case Lines() if all(_is_data(line) for line in (*user.lines, user.then)):
            rest: dict[str, Json] = {} if user.then is None else {"then": plain(user.then)}
            return {"lines": [plain(line) for line in user.lines], **rest}
        case SimulatedUser() if isinstance(user.model, str):
            given = {f.name: getattr(user, f.name) for f in fields(user)}
            usual = {f.name: f.default for f in fields(user)}
            return {key: plain(value) for key, value in given.items() if value != usual[key]}
        case _:
            return None


def _is_data(value: object) -> bool:
    try:
        plain(value)
    except BadValue:
        return False
    return True


_PERSON = frozenset(part.name for part in fields(SimulatedUser))


def user_from(data: Any, where: str) -> Lines | SimulatedUser:
    """The user written down in `data`; BadCase if it is none."""
    match data:
        case {"lines": [*lines], **rest} if rest.keys() <= {"then"}:
            return Lines(*lines, then=rest.get("then"))
        case {"model": _, **rest} if rest.keys() <= _PERSON:
            return SimulatedUser(**cast("Mapping[str, Any]", data))
        case _:
            raise BadCase(
                f"{where} is {data!r}; give {{lines: [...]}}, or a person: model and any of "
                f"{sorted(_PERSON - {'model'})}."
            )
