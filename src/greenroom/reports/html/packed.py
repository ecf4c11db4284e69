"""Data inside a page: cut where it is too long, plain where it is needed at once, else packed.

Packed data is compressed and written in an alphabet of letters and digits, so ten thousand runs fit
into a file that opens at once, and nothing in them can be taken for markup.
"""

import json
import zlib
from base64 import b64encode
from collections.abc import Collection

from greenroom.ledger.plain import Json, is_array, is_object
from greenroom.reports.html.markup import Markup
from greenroom.results.wire import shown_json

_CHUNK = 192 * 1024
"""Characters of JSON that are packed together: what a reader waits for when a case is opened."""
_LONGEST_TEXT = 12_000
_LONGEST_LIST = 200
_DEEPEST = 40
_LEFT_OUT = "… left out"
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


class Trimmer:
    """Cuts the values of one result so that all of them together stay within bounds.

    `cuts` counts what was shortened; without a cut the report shows everything there is.
    """

    def __init__(self, room: int = 400_000) -> None:
        self.cuts = 0
        self._room = room
        self._pictures = room

    def takes(self, size: int) -> bool:
        """Whether a picture of so many characters may be shown too."""
        self._pictures -= size
        return self._pictures >= 0

    def text(self, text: str) -> str:
        """The text, or its beginning and how much is missing."""
        longest = max(min(_LONGEST_TEXT, self._room), 0)
        self._room -= min(len(text), longest) + 8
        if len(text) <= longest:
            return text
        self.cuts += 1
        return f"{text[:longest]}… {len(text) - longest} more characters"

    def json(self, value: object) -> Json:
        """The value as JSON, shortened."""
        return self._cut(shown_json(value), 0)

    def _cut(self, value: Json, depth: int) -> Json:
        if isinstance(value, str):
            return self.text(value)
        if depth > _DEEPEST or self._room <= 0:
            self.cuts += 1
            return _LEFT_OUT
        self._room -= 8
        if is_object(value):
            kept = list(value.items())[:_LONGEST_LIST]
            found = {self.text(key): self._cut(item, depth + 1) for key, item in kept}
            if missing := self._missing(value):
                found["…"] = f"{missing} more"
            return found
        if is_array(value):
            items = [self._cut(item, depth + 1) for item in value[:_LONGEST_LIST]]
            return [*items, f"… {missing} more"] if (missing := self._missing(value)) else items
        return value

    def _missing(self, value: Collection[Json]) -> int:
        """How many entries a list or an object loses here."""
        missing = max(len(value) - _LONGEST_LIST, 0)
        self.cuts += bool(missing)
        return missing
