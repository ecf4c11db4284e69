"""The routes for grading trials."""

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.routing import BaseRoute, Route

from greenroom.apps.web.access import USER
from greenroom.apps.web.answers import acting, reading, text_in
from greenroom.apps.web.site import Site
from greenroom.errors import BadInput
from greenroom.ledger.plain import Json


def reading_routes(site: Site) -> list[BaseRoute]:
    """The routes that show what to grade next, and how far people agree."""

    def whose(request: Request) -> tuple[str, str]:
        rater = _rater(request, request.query_params.get("rater"))
        return str(request.path_params["set"]), rater

    labels = site.labels
    return [
        Route("/api/labels", reading(lambda _: {"labels": labels.lines()})),
        Route("/api/labels/{set}/next", reading(lambda asked: labels.next(*whose(asked)))),
        Route(
            "/api/labels/{set}/agreement", reading(lambda asked: labels.agreement(*whose(asked)))
        ),
    ]


def grading_routes(site: Site) -> list[BaseRoute]:
    """The routes that take grades; a read-only server leaves them out."""

    async def grade(request: Request, body: dict[str, Json]) -> object:
        value, note = body.get("value"), body.get("note") or ""
        if not isinstance(note, str) or not (value is None or isinstance(value, str)):
            raise BadInput("the value of a grade must be a string or null, and its note a string.")
        rater = _rater(request, body.get("rater"))
        item = text_in(body, "item")
        return await run_in_threadpool(
            site.labels.grade, str(request.path_params["set"]), rater, item, value, note
        )

    return [Route("/api/labels/{set}/grades", acting(grade), methods=["POST"])]


def _rater(request: Request, given: Json) -> str:
    """The name of the rater: as the proxy gives it, otherwise as the page does."""
    return str(request.scope.get(USER) or given or "")
