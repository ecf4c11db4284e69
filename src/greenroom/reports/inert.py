"""Strangers' text in Markdown, where it can neither act nor pass for ours.

Inside a `<code>` element, with every character that means something written as an entity, a text
makes no links, images, mentions, references, headings or tables, and cannot leave its cell. Several
lines stand in a fenced block whose fence is longer than any in the text.
"""

import re

from greenroom.ledger.shown import harmless
from greenroom.reports.words import shortened

_MEANINGFUL = re.compile(r"[^\w ,;%?./=()'+\u0080-\U0010ffff-]|_|(?i:(?<=www))\.")
_TICKS = re.compile(r"`+")


def inline(text: str, longest: int = 120) -> str:
    """A text on one line."""
    line = " ".join(harmless(text).split())
    said = _MEANINGFUL.sub(lambda found: f"&#{ord(found[0])};", shortened(line, longest))
    return f"<code>{said}</code>" if said else ""


def block(text: str) -> str:
    """A text of several lines."""
    said = harmless(text)
    longest = max((len(ticks) for ticks in _TICKS.findall(said)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}text\n{said}\n{fence}"
