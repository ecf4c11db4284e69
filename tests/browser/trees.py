"""HTML parsed into its nodes, to see what could act."""

import json
from collections.abc import Iterator
from html.parser import HTMLParser
from typing import Any

Node = tuple[str, dict[str, str]]


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.nodes: list[Node] = []
        self.texts: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.nodes.append((tag, {name: value or "" for name, value in attrs}))

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


def nodes(html: str) -> list[Node]:
    """Every element with its attributes."""
    reader = _Reader()
    reader.feed(html)
    reader.close()
    return reader.nodes


def text(html: str) -> str:
    """All text, scripts and styles included."""
    reader = _Reader()
    reader.feed(html)
    reader.close()
    return "".join(reader.texts)


_INERT = frozenset((
    "html", "head", "meta", "title", "style", "body", "a", "header", "h1", "h2", "h3", "time", "div", "main",
    "section", "span", "b", "svg", "g", "rect", "ul", "li", "p", "table", "thead", "tbody", "tr", "th", "td",
    "details", "summary", "noscript", "aside", "footer", "script",
))  # fmt: skip
_DATA = ("application/json", "text/plain")


def active(html: str) -> Iterator[Node]:
    """The nodes that could act or load something, apart from the page's one script."""
    scripts = 0
    for tag, attributes in nodes(html):
        if tag == "script" and attributes.get("type") not in _DATA:
            scripts += 1
        acts = tag not in _INERT or scripts > 1
        acts = acts or any(
            name.startswith("on") or name in ("src", "style", "srcdoc", "action")
            for name in attributes
        )
        acts = acts or not attributes.get("href", "#").startswith("#")
        acts = (
            acts
            or attributes.get("http-equiv", "content-security-policy").lower()
            != "content-security-policy"
        )
        if acts:
            yield tag, attributes


def index(html: str) -> dict[str, Any]:
    """What the page's script is given: the head of the run, and the rows of its list."""
    begin = html.index('id="index">') + len('id="index">')
    return json.loads(html[begin : html.index("</script>", begin)])
