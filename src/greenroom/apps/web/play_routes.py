"""The routes for a person who talks to an agent in a rehearsal."""

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from greenroom.apps.web.answers import Action, acting, answer, text_in
from greenroom.apps.web.runs_page import agent_of
from greenroom.apps.web.site import Site
from greenroom.cases.reader import case_from
from greenroom.ledger.plain import Json, is_object, number_in


def play_routes(site: Site) -> list[BaseRoute]:
    """All routes of plays; a read-only server leaves them out."""
    return [*_beginning(site), *_going_on(site)]


def _beginning(site: Site) -> list[BaseRoute]:
    """The routes that list plays and begin one."""
    plays = site.plays

    async def agent(request: Request) -> Response:
        number = number_in(str(request.path_params["n"]))
        return answer(await plays.describe(-1 if number is None else number))

    async def every(_: Request) -> Response:
        return answer({"plays": await run_in_threadpool(plays.all)})

    async def begin(_: Request, body: dict[str, Json]) -> object:
        recorded = body.get("from")
        if not is_object(recorded):
            return await plays.begin(body)
        run = await run_in_threadpool(site.store.run, text_in(recorded, "run"))
        case, trial, at = text_in(recorded, "case"), recorded.get("trial", 1), recorded.get("at")
        number = trial if type(trial) is int else 1
        ledger = await run_in_threadpool(site.pages.ledger, run.id, case, number)
        place = at if type(at) is int else None
        return await plays.take_over(ledger, agent_of(run), place, model=run.plan.model)

    return [
        Route("/api/agents/{n}", agent),
        Route("/api/plays", every),
        Route("/api/plays", acting(begin), methods=["POST"]),
    ]


def _going_on(site: Site) -> list[BaseRoute]:
    """The routes that continue a play."""
    plays = site.plays

    async def look(request: Request) -> Response:
        return answer(await plays.look(_play(request)))

    def move(do: str) -> Action:
        async def made(request: Request, body: dict[str, Json]) -> object:
            return await plays.move(_play(request), do, body)

        return made

    async def fork(request: Request, body: dict[str, Json]) -> object:
        return await plays.fork(_play(request), body)

    async def case(request: Request, body: dict[str, Json]) -> object:
        data = await plays.case(_play(request), text_in(body, "id"))
        return await run_in_threadpool(site.sets.add, text_in(body, "set"), case_from(data))

    moves = ("say", "answer", "simulate", "mocks")
    return [
        Route("/api/plays/{play}", look),
        *(Route(f"/api/plays/{{play}}/{do}", acting(move(do)), methods=["POST"]) for do in moves),
        Route("/api/plays/{play}/fork", acting(fork), methods=["POST"]),
        Route("/api/plays/{play}/case", acting(case), methods=["POST"]),
    ]


def _play(request: Request) -> str:
    return str(request.path_params["play"])
