"""Pages without data, and the scripts that fill them: every path of a page answers with the same shell."""

from functools import cache
from hashlib import blake2b
from importlib.resources import files

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from greenroom.errors import NotFound
from greenroom.reports.page.markup import Markup, tag
from greenroom.reports.page.shell import STYLE, asset, page_body, page_head

ENTRY = "web.js"
_PAGES = ("/", "/runs", "/runs/{run}", "/compare", "/sets", "/sets/{set}", "/play", "/play/{play}")
_MORE_PAGES = ("/agent", "/agent/{n}", "/label", "/label/{set}")
_TYPES = {".js": "text/javascript; charset=utf-8", ".css": "text/css; charset=utf-8"}
_FOREVER = "public, max-age=31536000, immutable"


def routes() -> list[BaseRoute]:
    """The pages and what they are made of. They hold nothing, so they need no token."""
    pages: list[BaseRoute] = [Route(path, _page) for path in (*_PAGES, *_MORE_PAGES)]
    return [*pages, Route("/a/{digest}/{name}", _asset)]


async def _page(_: Request) -> Response:
    return Response(_shell(), media_type="text/html")


@cache
def _shell() -> str:
    here = f"/a/{_digest()}"
    head = page_head(
        "Greenroom",
        Markup(""),
        tag("link", rel="stylesheet", href=f"{here}/{STYLE}"),
        tag("script", type="module", src=f"{here}/{ENTRY}"),
    )
    note = tag("noscript", tag("p", "This page needs scripts; `greenroom runs` shows the same."))
    return f'<!doctype html>\n<html lang="en">{head}{page_body(note)}</html>\n'


@cache
def _names() -> frozenset[str]:
    inside = (files("greenroom.reports.page") / "assets").iterdir()
    return frozenset(one.name for one in inside if one.name.endswith(tuple(_TYPES)))


@cache
def _digest() -> str:
    """Changes with any of the scripts, so that a browser may keep them."""
    together = "".join(asset(name) for name in sorted(_names()))
    return blake2b(together.encode(), digest_size=8).hexdigest()


async def _asset(request: Request) -> Response:
    name = str(request.path_params["name"])
    if name not in _names() or request.path_params["digest"] != _digest():
        raise NotFound(f"there is no {name!r} here. Reload the page.")
    kind = _TYPES[f".{name.rpartition('.')[2]}"]
    return Response(asset(name), media_type=kind, headers={"Cache-Control": _FOREVER})
