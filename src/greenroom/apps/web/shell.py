"""Pages without data, and the scripts that fill them: every page's path answers with the same HTML."""

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from greenroom.errors import NotFound
from greenroom.reports.page.shell import assets, assets_digest, web_page

_PAGES = (
    "/",
    "/runs",
    "/runs/{run}",
    "/compare",
    "/sets",
    "/sets/{set}",
    "/play",
    "/play/{play}",
    "/agent",
    "/agent/{n}",
    "/label",
    "/label/{set}",
)
_TYPES = {"js": "text/javascript; charset=utf-8", "css": "text/css; charset=utf-8"}
_FOREVER = "public, max-age=31536000, immutable"


def routes() -> list[BaseRoute]:
    """The pages and their assets. They contain no data, so they need no token."""
    pages: list[BaseRoute] = [Route(path, _page) for path in _PAGES]
    return [*pages, Route("/favicon.ico", _nothing), Route("/a/{digest}/{name}", _asset)]


async def _page(_: Request) -> Response:
    return Response(web_page(), media_type="text/html")


async def _nothing(_: Request) -> Response:
    return Response(status_code=204)


async def _asset(request: Request) -> Response:
    name = str(request.path_params["name"])
    text = assets().get(name)
    if text is None or request.path_params["digest"] != assets_digest():
        raise NotFound(f"there is no {name!r} here. Reload the page.")
    kind = _TYPES[name.rpartition(".")[2]]
    return Response(text, media_type=kind, headers={"Cache-Control": _FOREVER})
