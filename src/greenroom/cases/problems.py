"""What is wrong with an eval set: where it stands, and what to write instead."""

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is wrong, at a place in a file or a set.

    `where` is a path such as `cases[3].turns[0].says`, `line` its line in the file if that is known.
    `fix` says what to do about it. A `hint` may be all right in a run with settings of its own.
    """

    where: str
    message: str
    fix: str = ""
    line: int | None = None
    hint: bool = False

    def __str__(self) -> str:
        line = "" if self.line is None else f"line {self.line}"
        place = ", ".join(part for part in (line, self.where) if part)
        told = f"{place}: {self.message}" if place else self.message
        return f"{told.rstrip('.')}. {self.fix}" if self.fix else told


def listed(problems: Iterable[Problem]) -> str:
    """Problems for a person, one a line."""
    return "\n".join(f"- {problem}" for problem in problems)
