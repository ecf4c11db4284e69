"""The routes of the server: which path asks for what. Other modules make the answers."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import get_args

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import BaseRoute, Route
from starlette.types import ASGIApp

from greenroom import __version__
from greenroom.apps.web import labels_page, play_routes, runs_page, shell
from greenroom.apps.web.access import USER, Access, Guard, TooLarge
from greenroom.apps.web.answers import (
    acting,
    amount,
    failed,
    reading,
    text_in,
    whole_number,
)
from greenroom.apps.web.children import command_line
from greenroom.apps.web.live import Feed
from greenroom.apps.web.run_index import RunIndex
from greenroom.apps.web.run_pages import lines_of
from greenroom.apps.web.sets_page import check_text
from greenroom.apps.web.site import Settings, Site
from greenroom.cases.from_runs import harvest
from greenroom.errors import BadInput, GreenroomError
from greenroom.ledger.plain import Json
from greenroom.reports.html import render_html
from greenroom.reports.page.shapes import WORST, AgentLine, Command, Here, Query, Rows, Sort
from greenroom.results.files import report_parts
from greenroom.store import Store


def build(store: Store, settings: Settings, access: Access) -> ASGIApp:
    """The server as an ASGI application, guarded."""
    site = Site.of(store, settings)
    feed = Feed(store)

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncGenerator[None]:
        async with feed.watching():
            yield
        await site.plays.close()
        await site.children.close()

    app = Starlette(
        routes=[*routes(site, feed), *shell.routes()],
        lifespan=lifespan,
        # Listed one by one: a handler for Exception would also log each as a crash of the server.
        exception_handlers={
            GreenroomError: failed,
            TooLarge: failed,
            HTTPException: failed,
            Exception: failed,
        },
    )
    return Guard(app, access)


def routes(site: Site, feed: Feed) -> list[BaseRoute]:
    """Every route that gives or takes data; those that change something are left out of a read-only server."""

    async def stream(request: Request) -> Response:
        asked = request.query_params
        listening = feed.listen(asked.get("since", ""), asked.get("run", ""))
        return StreamingResponse(listening, media_type="text/event-stream")

    read = [
        *_lists(site),
        *_about_runs(site),
        *_downloads(site),
        *_about_trials(site),
        *_about_two_runs(site),
        *_about_sets(site),
        *labels_page.reading_routes(site.labels),
        Route("/api/stream", stream),
    ]
    if site.settings.read_only:
        return read
    plays, grades = play_routes.play_routes(site), labels_page.grading_routes(site.labels)
    return [*read, *_acting(site), *_stopping(site), *plays, *grades]


def _lists(site: Site) -> list[BaseRoute]:
    """The routes that list things: the server itself, its runs, the trend of a set."""
    store, settings = site.store, site.settings

    def here(request: Request) -> object:
        names = [AgentLine(n=n, ref=one, name=one) for n, one in enumerate(settings.agents)]
        return Here(
            version=__version__,
            store=store.address,
            read_only=settings.read_only,
            user=str(request.scope.get(USER, "")),
            agents=names,
            sets=site.sets.lines(),
            children=[child.data() for child in site.children.all.values()],
            labels=site.labels.names(),
            budget=settings.budget,
        )

    def runs(request: Request) -> object:
        asked = request.query_params
        return runs_page.list_runs(
            store,
            evalset=asked.get("set", ""),
            agent=asked.get("agent", ""),
            before=asked.get("before", ""),
            limit=whole_number(request, "limit", 50),
            mine=site.children.mine(),
            rates=site.rates,
        )

    def trend(request: Request) -> object:
        return {"points": runs_page.trend(store, site.rates, request.query_params.get("set", ""))}

    return [
        Route("/api/here", reading(here)),
        Route("/api/runs", reading(runs)),
        Route("/api/trend", reading(trend)),
    ]


def _about_runs(site: Site) -> list[BaseRoute]:
    def index(request: Request) -> RunIndex:
        return site.index(_run(request))

    async def find(request: Request) -> Response:
        words = request.query_params.get("words", "")[:200]
        found = lines_of(await run_in_threadpool(index, request), words)
        return StreamingResponse(found, media_type="application/x-ndjson")

    return [
        Route("/api/runs/{run}", reading(lambda asked: site.pages.head(index(asked)))),
        Route("/api/runs/{run}/rows", reading(lambda asked: _rows(index(asked), asked))),
        Route("/api/runs/{run}/progress", reading(lambda asked: site.progress(_run(asked)))),
        Route("/api/runs/{run}/agent", reading(lambda asked: site.pages.agent(_run(asked)))),
        Route("/api/runs/{run}/find", find),
    ]


def _downloads(site: Site) -> list[BaseRoute]:
    store = site.store

    def page_file(request: Request) -> object:
        return Response(render_html(store.report(_run(request))), media_type="text/html")

    def json_file(request: Request) -> object:
        parts = report_parts(store.report(_run(request)))
        # Half a character, as an interrupted stream leaves it, is not valid UTF-8 but can be escaped.
        data = (part.encode(errors="backslashreplace") for part in parts)
        return StreamingResponse(data, media_type="application/json")

    return [
        Route("/api/runs/{run}/report.html", reading(page_file)),
        Route("/api/runs/{run}/report.json", reading(json_file)),
    ]


def _about_trials(site: Site) -> list[BaseRoute]:
    def of(request: Request) -> tuple[str, str, int]:
        run_id = site.store.run(_run(request)).id
        return run_id, request.query_params.get("case", ""), whole_number(request, "trial", 1)

    def event(request: Request) -> object:
        return site.pages.event(*of(request), whole_number(request, "seq", 0))

    def ledger(request: Request) -> object:
        text = site.pages.ledger(*of(request)).redacted().dumps()
        return Response(text, media_type="application/x-ndjson")

    return [
        Route("/api/runs/{run}/story", reading(lambda asked: site.pages.story(*of(asked)))),
        Route("/api/runs/{run}/event", reading(event)),
        Route("/api/runs/{run}/ledger.jsonl", reading(ledger)),
    ]


def _about_two_runs(site: Site) -> list[BaseRoute]:
    def both(request: Request) -> tuple[str, str]:
        asked = request.query_params
        return site.store.run(asked.get("a", "")).id, site.store.run(asked.get("b", "")).id

    def head(request: Request) -> object:
        a, b = both(request)
        return site.pages.compared_head(a, site.compared(a, b))

    def rows(request: Request) -> object:
        a, b = both(request)
        index = site.compared(a, b)
        site.pages.compared_head(a, index)  # this marks the rows
        return _rows(index, request)

    def story(request: Request) -> object:
        a, b = both(request)
        chosen = whole_number(request, "trial_a", 0) or None
        trial, case = whole_number(request, "trial_b", 1), request.query_params.get("case", "")
        return site.pages.compared_story(a, b, case, trial, chosen)

    return [
        Route("/api/compare", reading(head)),
        Route("/api/compare/rows", reading(rows)),
        Route("/api/compare/story", reading(story)),
    ]


def _about_sets(site: Site) -> list[BaseRoute]:
    async def check(request: Request, body: dict[str, Json]) -> object:
        path = site.sets.file(_set(request)).path
        return await run_in_threadpool(check_text, path, text_in(body, "text"))

    return [
        Route("/api/sets/{set}", reading(lambda asked: site.sets.read(_set(asked)))),
        Route("/api/sets/{set}/check", acting(check), methods=["POST"]),
    ]


def _acting(site: Site) -> list[BaseRoute]:
    async def save(request: Request, body: dict[str, Json]) -> object:
        expected = request.headers.get("if-match", "")
        given = text_in(body, "text")
        return await run_in_threadpool(site.sets.save, _set(request), given, expected)

    async def add(request: Request, body: dict[str, Json]) -> object:
        return await run_in_threadpool(_add_case, site, _set(request), body)

    async def plan(_: Request, body: dict[str, Json]) -> object:
        return await run_in_threadpool(site.estimate, body)

    async def begin(_: Request, body: dict[str, Json]) -> object:
        planned = site.plans.take(text_in(body, "plan"))
        await run_in_threadpool(site.sets.check_code, planned.queue, body.get("code"))
        return site.children.start(planned.argv, planned.queue).data()

    def child(request: Request) -> object:
        return site.children.child(str(request.path_params["child"])).data()

    async def delete(request: Request, _: dict[str, Json]) -> object:
        await run_in_threadpool(site.store.delete, _run(request))
        return {"deleted": _run(request)}

    return [
        Route("/api/sets/{set}", acting(save), methods=["PUT"]),
        Route("/api/sets/{set}/cases", acting(add), methods=["POST"]),
        Route("/api/runs/plan", acting(plan), methods=["POST"]),
        Route("/api/runs", acting(begin), methods=["POST"]),
        Route("/api/children/{child}", reading(child)),
        Route("/api/runs/{run}", acting(delete), methods=["DELETE"]),
    ]


def _stopping(site: Site) -> list[BaseRoute]:
    """Stop and resume: what the command is, and doing it."""

    def stop_command(request: Request) -> object:
        return Command(command=site.children.under_way(_run(request)).stop_command)

    async def stop(request: Request, _: dict[str, Json]) -> object:
        return site.children.stop(_run(request)).data()

    def resume_command(request: Request) -> object:
        argv, evalset = site.resumption(_run(request))
        return Command(command=command_line(argv), code=site.sets.code(evalset))

    async def resume(request: Request, body: dict[str, Json]) -> object:
        argv, evalset = await run_in_threadpool(site.resumption, _run(request))
        await run_in_threadpool(site.sets.check_code, evalset, body.get("code"))
        return site.children.start(argv, evalset).data()

    return [
        Route("/api/runs/{run}/stop", reading(stop_command)),
        Route("/api/runs/{run}/stop", acting(stop), methods=["POST"]),
        Route("/api/runs/{run}/resume", reading(resume_command)),
        Route("/api/runs/{run}/resume", acting(resume), methods=["POST"]),
    ]


def _add_case(site: Site, set_id: str, body: dict[str, Json]) -> object:
    """Add a case to a file, made from a recorded trial."""
    run, case_id = site.store.run(text_in(body, "run")).id, text_in(body, "case")
    trial = body.get("trial", 1)
    ledger = site.pages.ledger(run, case_id, trial if type(trial) is int else 1)
    named = text_in(body, "id") if "id" in body else case_id
    return site.sets.add(set_id, harvest(ledger, named))


def _run(request: Request) -> str:
    return str(request.path_params["run"])


def _set(request: Request) -> str:
    return str(request.path_params["set"])


def _rows(index: RunIndex, request: Request) -> Rows:
    first, count = whole_number(request, "from", 0), whole_number(request, "count", 100)
    return index.rows(query_of(request), first, count, request.query_params.get("around", ""))


def query_of(request: Request) -> Query:
    """The filters of a list, from the address of a request."""
    asked = request.query_params
    sort = asked.get("sort") or "status"
    down, sort = sort.startswith("-"), sort.removeprefix("-")
    if sort not in get_args(Sort):
        raise BadInput(f"sort={sort!r} is not one of {', '.join(get_args(Sort))}.")
    if unknown := [one for one in asked.getlist("status") if one not in WORST]:
        raise BadInput(f"status={unknown[0]!r} is not one of {', '.join(WORST)}.")
    return Query(
        q=asked.get("q", "")[:200],
        status=[one for one in WORST if one in asked.getlist("status")],
        tag=asked.getlist("tag"),
        metric=asked.getlist("metric"),
        change=asked.getlist("change"),
        min_s=amount(request, "min_s"),
        min_cost=amount(request, "min_cost"),
        sort=next(one for one in get_args(Sort) if one == sort),
        down=down or asked.get("down") in ("1", "true"),
    )
