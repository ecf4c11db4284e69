"""A node's failure: how it is recorded and described, and whether another part may take over."""

from greenroom import errors
from greenroom.errors import AgentFailed, FailedBefore, GreenroomError, LoopLimit, ModelBroke
from greenroom.ledger.origin import place_of
from greenroom.world.records import ErrorFields, describe_error

_ITS_OWN = (AgentFailed, LoopLimit, ModelBroke)


def failure(error: Exception) -> ErrorFields:
    """An error as the ledger records it, with the place in the author's code where it was raised."""
    found, place = describe_error(error), place_of(error)
    return {**found, "error": f"{found['error']} ({place})"} if place else found


def describe(error: Exception) -> str:
    """An error in words: its type and its message."""
    found = failure(error)
    name, words = found["error_type"], found["error"]
    # An error without a message is described by its type alone.
    return words if words.split(" (", 1)[0] == name else f"{name}: {words}"


def is_its_own(error: Exception) -> bool:
    """Whether an agent, a step or a model failed, so that another part may take over.

    A refusal, a broken mock, a script that ran out or a wrong expression is not a failure of the part
    that met it, and ends the case.
    """
    if isinstance(error, FailedBefore):
        kind: object = getattr(errors, error.ours, None)
        return isinstance(kind, type) and issubclass(kind, _ITS_OWN)
    return isinstance(error, _ITS_OWN) or not isinstance(error, GreenroomError)
