"""Strings as table columns hold them, including those with half a surrogate pair."""

import json

ODD = "\ufffe\uffff"
"""The first characters of a string that is kept as JSON, where a text column takes no bytes."""


class OddText(bytes):
    """A string that cannot go into a column unchanged, as bytes."""


def to_column(text: str) -> str | OddText:
    """A string as a column takes it: half a surrogate pair, which an interrupted stream leaves, goes as bytes."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return OddText(text.encode(errors="surrogatepass"))
    return OddText(text.encode()) if text.startswith(ODD) else text


def from_column(stored: str | bytes) -> str:
    """The string that `to_column` wrote."""
    if isinstance(stored, bytes):
        return stored.decode(errors="surrogatepass")
    return json.loads(stored[len(ODD) :]) if stored.startswith(ODD) else stored
