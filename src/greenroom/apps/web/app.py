"""The routes of the server: which path asks for what. What is answered is made elsewhere."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import get_args

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route
from starlette.types import ASGIApp

from greenroom import __version__
from greenroom.apps.web import runs_page
from greenroom.apps.web.access import USER, Access, Guard
from greenroom.apps.web.answers import amount, failed, reading, whole_number
from greenroom.apps.web.live import Feed
from greenroom.apps.web.site import Settings, Site
from greenroom.errors import BadInput
from greenroom.reports.page.shapes import WORST, Here, Query, Sort
from greenroom.store import Store


def build(store: Store, settings: Settings, access: Access) -> ASGIApp:
    """The server as an ASGI application, guarded."""
    site = Site(store, settings)
    feed = Feed(store)

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        async with feed.watching():
            yield

    app = Starlette(
        routes=routes(site, feed),
        lifespan=lifespan,
        exception_handlers={Exception: failed, 404: failed, 405: failed},
    )
    return Guard(app, access)


def routes(site: Site, feed: Feed) -> list[Route]:
    """Every route, whichever may act left out where nothing may be touched."""
    store = site.store

    def here(request: Request) -> object:
        return Here(
            version=__version__,
            store=str(store.place),
            read_only=site.settings.read_only,
            user=str(request.scope.get(USER, "")),
            budget=site.settings.budget,
        )

    def runs(request: Request) -> object:
        asked = request.query_params
        return runs_page.list_runs(
            store,
            evalset=asked.get("set", ""),
            agent=asked.get("agent", ""),
            before=asked.get("before", ""),
            limit=whole_number(request, "limit", 50),
        )

    def trend(request: Request) -> object:
        return {"points": runs_page.trend(store, request.query_params.get("set", ""))}

    def rows(request: Request) -> object:
        first, count = whole_number(request, "from", 0), whole_number(request, "count", 100)
        return site.index(_run(request)).rows(query_of(request), first, count)

    async def stream(request: Request) -> Response:
        asked = request.query_params
        listening = feed.listen(asked.get("since", ""), asked.get("run", ""))
        return StreamingResponse(listening, media_type="text/event-stream")

    return [
        Route("/api/here", reading(here)),
        Route("/api/runs", reading(runs)),
        Route("/api/trend", reading(trend)),
        Route("/api/runs/{run}/rows", reading(rows)),
        Route("/api/stream", stream),
    ]


def _run(request: Request) -> str:
    return str(request.path_params["run"])


def query_of(request: Request) -> Query:
    """What a list is to be narrowed to, from the address of a request."""
    asked = request.query_params
    sort = asked.get("sort") or "status"
    down, sort = sort.startswith("-"), sort.removeprefix("-")
    if sort not in get_args(Sort):
        raise BadInput(f"sort={sort!r} is none of {', '.join(get_args(Sort))}.")
    if unknown := [one for one in asked.getlist("status") if one not in WORST]:
        raise BadInput(f"status={unknown[0]!r} is none of {', '.join(WORST)}.")
    return Query(
        q=asked.get("q", "")[:200],
        status=[one for one in WORST if one in asked.getlist("status")],
        tag=asked.getlist("tag"),
        metric=asked.getlist("metric"),
        change=asked.getlist("change"),
        min_s=amount(request, "min_s"),
        min_cost=amount(request, "min_cost"),
        sort=sort,
        down=down,
    )
