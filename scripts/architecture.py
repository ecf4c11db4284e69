"""What docs/why/architecture.md says about the code, read from the code.

    python scripts/architecture.py

draws docs/why/rooms.svg from the import contract, counts the lines of the files that the page walks
through, and lists the folders inside the rooms. A test fails while one of them differs from what
this would write.
"""

import ast
import re
import tomllib
from html import escape
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SOURCE = ROOT / "src" / "greenroom"
PAGE = ROOT / "docs" / "why" / "architecture.md"
DRAWING = ROOT / "docs" / "why" / "rooms.svg"

PURPOSES = {
    "__main__": "python -m greenroom",
    "apps": "command line, web, A2A server, pytest",
    "testing": "the suite for backends",
    "suite": "many cases: plan, run, record",
    "telemetry": "runs as spans and metrics",
    "simulation": "one case: user, gate, fence",
    "metrics": "what measures a ledger",
    "backends": "how agents run, ours and others'",
    "agents": "the expression language",
    "world": "the seam for every effect",
    "traces": "what others recorded, as ledgers",
    "models": "models and their prices",
    "store": "runs on disk or a server",
    "reports": "results shown to a reader",
    "results": "verdicts, comparisons, the gate",
    "cases": "what is asked, and its files",
    "ledger": "what happened, in events",
    "project": "settings in pyproject.toml",
    "plugins": "reads entry points",
    "installation": "how it was installed",
    "errors": "every exception",
    "lazy": "names loaded when first used",
}
WIDTH, HEIGHT, GAP, MARGIN = 720, 46, 14, 10
FONT = 'font-family="system-ui, sans-serif" font-size="13"'


def rooms() -> list[list[str]]:
    """The rooms from top to bottom, as the import contract lists them; planned ones are left out."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    contracts = settings["tool"]["importlinter"]["contracts"]
    layers = next(one["layers"] for one in contracts if one["id"] == "house")
    names = [[name.strip() for name in layer.split("|")] for layer in layers]
    return [[name for name in layer if not name.startswith("(")] for layer in names]


def drawing() -> str:
    """The rooms as an SVG: each box may import from the boxes below it, never from one above."""
    floors = rooms()
    height = len(floors) * (HEIGHT + GAP) - GAP + 2 * MARGIN
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" {FONT} role="img">',
        "<title>The rooms of Greenroom: imports go down only</title>",
        f'<rect width="{WIDTH}" height="{height}" fill="#ffffff"/>',
    ]
    for floor, names in enumerate(floors):
        y = MARGIN + floor * (HEIGHT + GAP)
        width = (WIDTH - 2 * MARGIN - GAP * (len(names) - 1)) / len(names)
        for place, name in enumerate(names):
            x = MARGIN + place * (width + GAP)
            parts += _box(name, x, y, width)
        if floor + 1 < len(floors):
            middle, below = WIDTH / 2, y + HEIGHT
            parts.append(
                f'<path d="M{middle} {below + 2} v8 m-4 -4 l4 4 l4 -4" stroke="#6b7280" fill="none"/>'
            )
    return "\n".join([*parts, "</svg>"]) + "\n"


def _box(name: str, x: float, y: float, width: float) -> list[str]:
    size, middle = f'width="{width:g}" height="{HEIGHT}" rx="6"', f"{x + width / 2:g}"
    bold, small = 'font-weight="600" fill="#064e3b"', 'font-size="12" fill="#374151"'
    return [
        f'<rect x="{x:g}" y="{y}" {size} fill="#ecfdf5" stroke="#047857"/>',
        f'<text x="{middle}" y="{y + 19}" text-anchor="middle" {bold}>{escape(name)}</text>',
        f'<text x="{middle}" y="{y + 36}" text-anchor="middle" {small}>{escape(PURPOSES[name])}</text>',
    ]


def counted(page: str) -> str:
    """The page with the true number of lines next to each file of the walk."""

    def count(row: re.Match[str]) -> str:
        lines = (SOURCE / row[1]).read_text(encoding="utf-8").splitlines()
        return f"| `{row[1]}` | {len(lines)} |"

    return re.sub(r"\| `([\w/]+\.py)` \| \d+ \|", count, page)


def listed(page: str) -> str:
    """The page with a row for each folder inside a room: how many files it has, and what its package says."""
    rows = ["| folder | files | holds |", "|---|---|---|"]
    for package in sorted(SOURCE.glob("*/*/**/__init__.py")):
        said = ast.get_docstring(ast.parse(package.read_text(encoding="utf-8"))) or ""
        folder, files = package.parent, len([*package.parent.glob("*.py")])
        rows.append(
            f"| `{folder.relative_to(SOURCE).as_posix()}` | {files} | {_first_sentence(said)} |"
        )
    before, mark, rest = page.partition("## Inside the rooms\n")
    text, after, others = rest.partition("\n## ")
    lead = text.partition("\n|")[0]
    return before + mark + lead + "\n" + "\n".join(rows) + "\n" + after + others


def _first_sentence(text: str) -> str:
    sentence = re.split(r"(?<=\.)\s", text.partition("\n")[0])[0]
    return sentence.rstrip(".").replace("|", "\\|")


if __name__ == "__main__":
    written = PAGE.read_text(encoding="utf-8")
    PAGE.write_text(listed(counted(written)), encoding="utf-8")
    DRAWING.write_text(drawing(), encoding="utf-8")
