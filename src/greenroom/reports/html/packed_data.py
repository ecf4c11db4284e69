"""Data inside a file: plain where it is needed at once, else packed.

Packed data is compressed and written in an alphabet of letters and digits, so ten thousand runs fit
into a file that opens at once, and nothing in them can be taken for markup.
"""

import json
import zlib
from base64 import b64encode

from greenroom.ledger.plain import Json
from greenroom.reports.page.markup import Markup

_CHUNK = 192 * 1024
"""Characters of JSON that are packed together: what a reader waits for when a case is opened."""
_ESCAPED = str.maketrans({"<": "\\u003c", ">": "\\u003e", "&": "\\u0026"})


def json_text(value: Json) -> str:
    """JSON in plain ASCII that no HTML parser sees an end or a beginning in."""
    return json.dumps(value, separators=(",", ":"), allow_nan=False).translate(_ESCAPED)


def data_block(id: str, value: Json) -> Markup:
    """A value that the page's script reads; browsers take it for inert data."""
    return Markup(f'<script type="application/json" id="{id}">{json_text(value)}</script>')


Place = tuple[int, int]
"""Where a value is packed: the number of its pack, and its place in there."""


class PackedValues:
    """Values packed in the order they come, until `budget` bytes are used up."""

    def __init__(self, budget: int) -> None:
        self.blocks: list[Markup] = []
        self._left = budget
        self._waiting: list[str] = []
        self._size = 0

    @property
    def has_room(self) -> bool:
        """Whether another value can be added."""
        return self._left > 0

    def add(self, value: Json) -> Place | None:
        """Where the value will be, or None if there is no room left."""
        if not self.has_room:
            return None
        text = json.dumps(value, separators=(",", ":"), allow_nan=False)
        place = (len(self.blocks), len(self._waiting))
        self._waiting.append(text)
        self._size += len(text)
        if self._size >= _CHUNK:
            self._close()
        return place

    def close(self) -> list[Markup]:
        """Every pack, ready to be written."""
        if self._waiting:
            self._close()
        return self.blocks

    def _close(self) -> None:
        whole = f"[{','.join(self._waiting)}]".encode("ascii")
        shown = b64encode(zlib.compress(whole, 6)).decode("ascii")
        name = f"pack-{len(self.blocks)}"
        block = Markup(f'<script type="text/plain" id="{name}">{shown}</script>')
        self.blocks.append(block)
        self._left -= len(block)
        self._waiting, self._size = [], 0
