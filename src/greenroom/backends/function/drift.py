"""A function that is begun anew in another process, and comes another way than it did before."""

from greenroom.backends.backend import DRIFTED
from greenroom.backends.foreign import Invocation
from greenroom.errors import BadLedger
from greenroom.ledger.events import ModelCalled, Noted, RunResumed, ToolCalled
from greenroom.ledger.plain import Json, same
from greenroom.models.model import ModelRequest
from greenroom.world.answers import key_of


def check_call(
    invocation: Invocation, path: str, call_id: str, tool: str, args: dict[str, Json]
) -> None:
    """Refuse a call that is not the one at this place before: its answer would be misplaced."""
    known = invocation.index.called.get(call_id)
    if known is None or (known.tool == tool and same(dict(known.args), args)):
        return
    raise _refusal(
        invocation,
        known,
        f"begun anew at {path!r}, the function called {tool!r} with {args!r} where it had called "
        f"{known.tool!r} with {dict(known.args)!r}",
    )


def check_question(invocation: Invocation, path: str, request: ModelRequest, number: int) -> None:
    """Refuse an answer of an earlier process to another question than is asked now."""
    resumed_at = _resumed_at(invocation)
    for known in invocation.ledger.of(ModelCalled) if resumed_at >= 0 else ():
        if (known.path, known.n) == (path, number) and known.seq < resumed_at and known.digest:
            if known.digest != digest_of(request):
                raise _refusal(
                    invocation,
                    known,
                    f"begun anew at {path!r}, the function asked something else as its question "
                    f"{number + 1}",
                )
            return


def digest_of(request: ModelRequest) -> str:
    """By which a question is known again."""
    return key_of(request, 0)


def _refusal(invocation: Invocation, known: ModelCalled | ToolCalled, told: str) -> Exception:
    if known.seq < _resumed_at(invocation):
        # Another process came this way; what it recorded from here on can be left behind.
        invocation.world.record(Noted(name=DRIFTED, data={"seq": known.seq, "told": told}))
    return invocation.keep(
        BadLedger(f"{told}. Let what it does follow from what it is given, or start the run again.")
    )


def _resumed_at(invocation: Invocation) -> int:
    return max((event.seq for event in invocation.ledger.of(RunResumed)), default=-1)
