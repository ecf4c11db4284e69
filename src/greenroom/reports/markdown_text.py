"""Tables, folded sections and text from outside, as Markdown.

Text from outside can neither act nor look like ours. It is inside a `<code>` element, with every special
character written as an entity, so it makes no links, images, mentions, references, headings or tables, and
cannot leave its cell. Several lines go into a fenced block whose fence is longer than any in the text.
"""

import re
from collections.abc import Sequence

from greenroom.ledger.safe_text import harmless
from greenroom.results.words import shortened

MOST_ROWS = 30
_MOST_BYTES = 10_000
_SPECIAL = re.compile(r"[^\w ,;%?./=()'+\u0080-\U0010ffff-]|_|(?i:(?<=www))\.")
_TICKS = re.compile(r"`+")


def folded(summary: str, body: str) -> str:
    """A section that is folded under its summary."""
    return f"<details><summary>{summary}</summary>\n\n{body}\n\n</details>"


def table(columns: Sequence[str], rows: Sequence[Sequence[str]], noun: str) -> str:
    """The rows as a table; if there are too many, the first ones and how many more there are."""
    lines = [_line(columns), _line(["---"] * len(columns))]
    room = _MOST_BYTES
    for number, row in enumerate(rows):
        line = _line(row)
        room -= len(line.encode())
        if number == MOST_ROWS or room < 0:
            return "\n".join([*lines, "", f"_{len(rows) - number} more {noun} are not shown._"])
        lines.append(line)
    return "\n".join(lines)


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def inline(text: str, longest: int = 120) -> str:
    """Text from outside on one line."""
    line = " ".join(harmless(text).split())
    said = _SPECIAL.sub(lambda found: f"&#{ord(found[0])};", shortened(line, longest))
    return f"<code>{said}</code>" if said else ""


def block(text: str) -> str:
    """Text from outside of several lines."""
    said = harmless(text)
    longest = max((len(ticks) for ticks in _TICKS.findall(said)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}text\n{said}\n{fence}"
