"""HTML built so that no text from outside can become markup."""

from collections.abc import Iterable
from html import escape

from greenroom.ledger.safe_text import harmless

_VOID = frozenset(("br", "meta", "link", "rect", "path", "line"))


class Markup(str):
    """Text that is HTML already. Only this file makes it from other text."""

    __slots__ = ()


Part = str | Markup | None | Iterable["Part"]


def tag(name: str, /, *children: Part, **attributes: str | float | bool | None) -> Markup:
    """An element; its children and attributes are escaped unless they are markup.

    `class_` and `data_tag` are written `class` and `data-tag`. None and False leave one out.
    """
    written = "".join(_attribute(key, value) for key, value in attributes.items())
    if name in _VOID:
        return Markup(
            f"<{name}{written}>" if name in ("br", "meta", "link") else f"<{name}{written}/>"
        )
    return Markup(f"<{name}{written}>{joined(*children)}</{name}>")


def joined(*parts: Part) -> Markup:
    """All parts one after the other, escaped unless they are markup."""
    return Markup("".join(map(_shown, parts)))


def _shown(part: Part) -> str:
    if part is None:
        return ""
    if isinstance(part, Markup):
        return part
    return escape(harmless(part)) if isinstance(part, str) else joined(*part)


def _attribute(key: str, value: str | float | bool | None) -> str:
    if value is None or value is False:
        return ""
    name = key.rstrip("_").replace("_", "-")
    return f" {name}" if value is True else f' {name}="{escape(harmless(str(value)))}"'
