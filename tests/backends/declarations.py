"""The table of what each backend declares, for docs/how-to/frameworks.md.

    python tests/backends/declarations.py

writes it again, between its two markers.
"""

from pathlib import Path
from typing import Any

from greenroom.backends.backend import FEATURES
from greenroom.backends.http import HttpBackend
from greenroom.backends.registry import BACKENDS

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "frameworks.md"
BEGIN, END = "<!-- declared by the backends -->", "<!-- end of what they declare -->"


def backends() -> list[Any]:
    """Every backend of ours once, by name."""
    loaded: list[Any] = [BACKENDS.load(name) for name in BACKENDS.names()]
    ours = [backend for backend in loaded if backend.__module__.startswith("greenroom.")]
    found = {backend.name: backend for backend in (*ours, HttpBackend)}
    return [found[name] for name in sorted(found)]


def table() -> str:
    """What they declare, as Markdown."""
    known = backends()
    rows = [["", *(backend.name for backend in known)], ["---"] * (len(known) + 1)]
    rows.append(["model calls", *(backend.models for backend in known)])
    rows.append(["tool calls", *(backend.tool_calls for backend in known)])
    rows.append(["resumes", *(backend.resumes.replace("_", " ") for backend in known)])
    for feature, words in FEATURES.items():
        rows.append([words, *("yes" if feature in b.supports else "" for b in known)])
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def written(page: str) -> str:
    """The page with the table as it should be."""
    before, _, rest = page.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n\n{table()}\n\n{END}{after}"


if __name__ == "__main__":
    PAGE.write_text(written(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
