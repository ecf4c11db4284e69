"""Texts as the columns of a table hold them, also those that are no whole characters."""

import json

ODD = "\ufffe\uffff"
"""How a text begins that is kept as JSON, where a column takes no bytes in place of a text."""


class OddText(bytes):
    """A text that cannot go into a column as it is."""


def to_column(text: str) -> str | OddText:
    """A text as a column takes it: half a character, as a cut stream leaves it, goes as bytes."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return OddText(text.encode(errors="surrogatepass"))
    return OddText(text.encode()) if text.startswith(ODD) else text


def from_column(stored: str | bytes) -> str:
    """The text that `to_column` wrote."""
    if isinstance(stored, bytes):
        return stored.decode(errors="surrogatepass")
    return json.loads(stored[len(ODD) :]) if stored.startswith(ODD) else stored
