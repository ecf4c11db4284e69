"""What backends share whose agents do their work where nobody sees it."""

from greenroom.backends.foreign import Invocation
from greenroom.backends.native.history import as_text
from greenroom.errors import BadLedger
from greenroom.ledger.plain import Json


def refuse_doubt(invocation: Invocation, path: str, what: str) -> None:
    """An agent that was cut while it worked, unseen, may have acted; it is not asked twice."""
    if path in invocation.index.started:
        raise BadLedger(
            f"the run was cut while the {what} was at work in {path!r}, so nobody knows what it did. "
            f"Start this case again."
        )


def message_data(role: str, said: Json) -> dict[str, Json]:
    """A message as a dict."""
    return {"role": role, "content": as_text(said)}
