"""The findings of checks: issues, each with its place, what is wrong and how to fix it."""

from collections.abc import Iterator
from typing import Any, Literal

from msgspec import Struct

Severity = Literal["error", "warning", "note"]
"""An error breaks every run, a warning breaks runs that take a certain path, a note is good to know."""
SEVERITIES: tuple[Severity, ...] = ("error", "warning", "note")


class Issue(Struct, frozen=True, omit_defaults=False):
    """One finding: `says` is what is wrong at `node`, `fix` what to do about it."""

    kind: str
    severity: Severity
    node: str
    """The static id of the node, or empty if it is about the agent as a whole."""
    place: str
    """The place in the state that it is about, or empty."""
    says: str
    fix: str = ""

    def __str__(self) -> str:
        where = f" {self.node}" if self.node else ""
        return f"{self.severity}{where}: {self.says} {self.fix}".rstrip()


class Contracts(Struct, frozen=True):
    """All issues of an agent, errors first, each kind in the order of the graph."""

    issues: tuple[Issue, ...] = ()

    def __iter__(self) -> Iterator[Issue]:
        return iter(self.issues)

    def __len__(self) -> int:
        return len(self.issues)

    def of(self, severity: Severity) -> tuple[Issue, ...]:
        """The issues of this severity."""
        return tuple(issue for issue in self.issues if issue.severity == severity)

    @property
    def errors(self) -> tuple[Issue, ...]:
        """The issues that break every run."""
        return self.of("error")

    @property
    def warnings(self) -> tuple[Issue, ...]:
        """The issues that break runs that take a certain path."""
        return self.of("warning")

    def __str__(self) -> str:
        counts = [(len(self.of(severity)), severity) for severity in SEVERITIES]
        said = [f"{n} {word}{'' if n == 1 else 's'}" for n, word in counts if n]
        return "\n".join([*map(str, self.issues), ", ".join(said) or "no issues"])

    def data(self) -> dict[str, Any]:
        """The issues as JSON; the names and meanings of these fields are stable."""
        counts = {f"{severity}s": len(self.of(severity)) for severity in SEVERITIES}
        fields = Issue.__struct_fields__
        listed = [{name: getattr(issue, name) for name in fields} for issue in self.issues]
        return {"version": 1, **counts, "issues": listed}
