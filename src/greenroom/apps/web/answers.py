"""How routes answer: JSON without secrets, and errors that say what to do."""

from collections.abc import Awaitable, Callable

import msgspec
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from greenroom.apps.web.access import TooLarge
from greenroom.apps.web.sets_page import Conflict, NamesCode
from greenroom.errors import BadInput, GreenroomError, NotFound
from greenroom.ledger.plain import Json, is_object, number_in
from greenroom.ledger.redaction import redactor

Handler = Callable[[Request], Awaitable[Response]]
Action = Callable[[Request, dict[str, Json]], Awaitable[object]]


def answer(value: object, status: int = 200) -> Response:
    """A JSON response without secrets; everything that leaves the server goes through here."""
    body = msgspec.json.encode(redactor().document(value))
    return Response(body, status, media_type="application/json")


def reading(make: Callable[[Request], object]) -> Handler:
    """A route that reads, in a thread, because reading the store takes a while."""

    async def route(request: Request) -> Response:
        found = await run_in_threadpool(make, request)
        return found if isinstance(found, Response) else await run_in_threadpool(answer, found)

    return route


def acting(action: Action) -> Handler:
    """A route that takes a JSON object."""

    async def route(request: Request) -> Response:
        try:
            return answer(await action(request, await body_of(request)))
        except Conflict as conflict:
            return answer(
                {
                    "error": str(conflict),
                    "next": "Compare both versions.",
                    "theirs": conflict.theirs,
                },
                409,
            )

    return route


async def body_of(request: Request) -> dict[str, Json]:
    """The JSON object that a page sent."""
    try:
        found: Json = msgspec.json.decode(await request.body())
    except (msgspec.DecodeError, RecursionError) as error:
        raise BadInput(f"the request is not JSON: {error}. Send an object.") from error
    if not is_object(found):
        raise BadInput("the request is not a JSON object. Send an object.")
    return found


def text_in(body: dict[str, Json], name: str) -> str:
    """A string that a page must send."""
    found = body.get(name)
    if not isinstance(found, str) or not found:
        raise BadInput(f"the request has no string {name!r}.")
    return found


def whole_number(request: Request, name: str, usual: int) -> int:
    """A number in the query of a request."""
    given = request.query_params.get(name, "")
    if not given:
        return usual
    if (found := number_in(given)) is None:
        raise BadInput(f"{name}={given!r} should be a whole number.")
    return found


def amount(request: Request, name: str) -> float | None:
    """An amount in the query of a request; None if it is not given."""
    given = request.query_params.get(name, "")
    if not given:
        return None
    try:
        found = float(given)
    except ValueError:
        found = -1.0
    if not 0 <= found < 1e12:
        raise BadInput(f"{name}={given!r} should be an amount of at least 0.")
    return found


async def failed(_: Request, error: Exception) -> Response:
    """An error as the response that the page shows."""
    match error:
        case HTTPException():
            return _error(error.status_code, error.detail, "Go back to the list of runs.")
        case NotFound():
            return _error(404, str(error))
        case NamesCode():
            return answer({"error": str(error), "next": "", "code": error.code}, 400)
        case BadInput():
            return _error(400, str(error))
        case TooLarge():
            return _error(413, str(error), "Send less at once.")
        case GreenroomError():
            return _error(500, str(error))
        case _:
            what = f"{type(error).__name__}: {error}"
            return _error(500, what, "This is a defect of the page; the terminal shows where.")


def _error(status: int, text: str, next_step: str = "") -> Response:
    """An error as JSON; our own errors say what to do in their last sentence."""
    data = redactor().document({"error": text, "next": next_step})
    return JSONResponse(data, status)
