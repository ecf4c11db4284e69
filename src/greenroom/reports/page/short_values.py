"""Values shortened if they are too long for a page."""

from collections.abc import Collection

from greenroom.ledger.plain import Json, is_array, is_object
from greenroom.results.wire import shown_json

_LONGEST_TEXT = 12_000
_LONGEST_LIST = 200
_DEEPEST = 40
_LEFT_OUT = "… left out"


class Trimmer:
    """Shortens the values of one result so that all of them together stay within bounds.

    `cuts` counts the shortened values; if it is 0, the report shows everything.
    """

    def __init__(self, room: int = 400_000) -> None:
        self.cuts = 0
        self._room = room
        self._pictures = room

    def takes(self, size: int) -> bool:
        """Whether there is room for a picture of this many characters."""
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
