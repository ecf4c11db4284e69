"""Untrusted text made safe to print: a terminal, a log or a CI server shows it and obeys none of it."""

import re
import unicodedata

# Joiners hold emoji and Indic script together; the other invisible characters only deceive.
_JOINERS = "\u200c\u200d"
_AT_LINE_BEGIN = re.compile(r"(?m)^(?=[^\S\n]*::)([^\S\n]*)")
_ANYWHERE = re.compile(r"##(?=(?:vso|teamcity)?\[)")
_IN_JSON = re.compile(r"[^\n -~]|##(?=(?:vso|teamcity)?\[)")


def harmless(text: str) -> str:
    """`text` with everything escaped that could control a terminal (as in `\\x1b`) or a CI server.

    A command to a CI server (`::error`, `##vso[`, `##teamcity[`) gets a backslash, which disables it.
    """
    if not (text.isascii() and text.isprintable()):
        lines = text.replace("\r\n", "\n").expandtabs(4).split("\n")
        text = "\n".join(
            line if line.isprintable() else "".join(map(_visible, line)) for line in lines
        )
    if "::" in text:
        text = _AT_LINE_BEGIN.sub(r"\1\\", text)
    return _ANYWHERE.sub(r"#\\#", text) if "##" in text else text


def on_one_line(text: str) -> str:
    """Like `harmless`, but with line breaks escaped too, so that a name cannot forge a line of output."""
    if text.isascii() and text.isprintable():
        return harmless(text)
    return harmless(text.replace("\r\n", "\n").replace("\n", r"\n"))


def harmless_json(text: str) -> str:
    """Equivalent JSON, with such characters escaped in JSON's own way: `\\u202e`."""
    if text.isascii() and "##" not in text and text.replace("\n", "").isprintable():
        return text
    return _IN_JSON.sub(_escaped, text)


def _visible(char: str) -> str:
    if char.isprintable() or unicodedata.category(char) == "Zs" or char in _JOINERS:
        return char
    return char.encode("unicode_escape").decode("ascii")


def _escaped(found: re.Match[str]) -> str:
    char = found[0]
    if char == "##":
        return r"#\u0023"
    if char.isprintable() or char in _JOINERS or char in "\r\t":
        return char
    units = char.encode("utf-16-be", errors="surrogatepass")
    pairs = (units[place : place + 2] for place in range(0, len(units), 2))
    return "".join(f"\\u{pair.hex()}" for pair in pairs)
