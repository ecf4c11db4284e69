"""The page around the data: its head, its policy, and its scripts as one file or one by one.

A file holds `flattened("report.js")` and `page.css` in itself. A server answers every page's address with
`web_page()`, which names `/a/<digest>/web.js` and `/a/<digest>/page.css`; what is below `/a/<digest>/` are the
`assets()`, which never change under that digest. `POLICY` is the policy that it must send along.
"""

import re
from base64 import b64encode
from functools import cache
from hashlib import sha256
from importlib.resources import files

from greenroom.reports.page.markup import Markup, tag

_IMPORT = re.compile(
    r'^import\s.*?from\s+"\./(?P<name>[\w-]+\.js)";[ \t]*\n', re.MULTILINE | re.DOTALL
)
_EXPORT = re.compile(r"^export (?=const |let |function |async function |class )", re.MULTILINE)
STYLE = "page.css"
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data: blob:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
    "require-trusted-types-for 'script'; trusted-types 'none'"
)
"""The web page's content security policy: only the server's own scripts, and requests only to that server."""


def asset(name: str) -> str:
    """The text of a script or style file."""
    return (files("greenroom.reports.page") / "assets" / name).read_text(encoding="utf-8")


@cache
def flattened(entry: str) -> str:
    """A module and all that it imports as one script: in the order they need each other, without imports."""
    return "\n".join(_EXPORT.sub("", _IMPORT.sub("", asset(name))) for name in modules(entry))


def modules(entry: str) -> list[str]:
    """A module and all that it imports, each after those that it needs."""
    found: dict[str, None] = {}

    def visit(name: str, under_way: tuple[str, ...]) -> None:
        if name in found or name in under_way:
            return
        for needed in _IMPORT.finditer(asset(name)):
            visit(needed["name"], (*under_way, name))
        found[name] = None

    visit(entry, ())
    return list(found)


def digest_of(text: str) -> str:
    """How a content security policy names a script or a style."""
    return f"sha256-{b64encode(sha256(text.encode()).digest()).decode()}"


def page_head(title: str, *more: Markup) -> Markup:
    """The head of a page; `more` is its policy, its style and its scripts."""
    return tag(
        "head",
        tag("meta", charset="utf-8"),
        more[:1],
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="color-scheme", content="light dark"),
        tag("meta", name="referrer", content="no-referrer"),
        tag("title", title),
        more[1:],
    )


def page_body(summary: Markup | None, *inside: Markup | list[Markup]) -> Markup:
    """The landmarks that the scripts fill, and what else is inside; `summary` is for readers without scripts."""
    return tag(
        "body",
        tag("a", "Skip to the cases", class_="skip", href="#list"),
        tag("header", id="top", class_="top"),
        tag("main", summary, id="main"),
        tag("aside", id="opened", hidden=True, aria_label="The opened case"),
        tag("div", id="print"),
        inside,
    )


@cache
def assets() -> dict[str, str]:
    """All scripts and the style by their names."""
    found = (files("greenroom.reports.page") / "assets").iterdir()
    return {one.name: one.read_text(encoding="utf-8") for one in sorted(found, key=str)}


@cache
def assets_digest() -> str:
    """A digest of all assets."""
    whole = "\0".join(text for named in assets().items() for text in named)
    return sha256(whole.encode()).hexdigest()[:16]


@cache
def web_page() -> str:
    """The page that a server answers every page's address with; it holds no data."""
    place = f"/a/{assets_digest()}"
    style = tag("link", rel="stylesheet", href=f"{place}/{STYLE}")
    script = tag("script", type="module", src=f"{place}/web.js")
    unscripted = tag(
        "noscript",
        tag("p", "This page needs scripts. `greenroom runs show RUN -f html` writes a report."),
    )
    head = page_head("Greenroom", style, script)
    return f'<!doctype html>\n<html lang="en">{head}{page_body(unscripted)}</html>\n'
