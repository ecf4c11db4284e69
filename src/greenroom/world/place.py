"""Where in the ledger the running code stands: the path of its function, step or tool call."""

from contextvars import ContextVar

_PLACE: ContextVar[str] = ContextVar("greenroom_place", default="")
_ASKED: ContextVar[str | None] = ContextVar("greenroom_asked", default=None)
"""The place whose model is being asked."""


def place_here() -> str:
    """The path in the ledger of the step, tool or function that runs here; "" if none does."""
    return _PLACE.get()


class placed:  # noqa: N801 - read as a verb: `with placed(path)`
    """Let what runs in this context stand at `path` in the ledger."""

    __slots__ = ("_path", "_token")

    def __init__(self, path: str) -> None:
        self._path = path

    def __enter__(self) -> None:
        self._token = _PLACE.set(self._path)

    def __exit__(self, *_: object) -> None:
        try:  # noqa: SIM105 - around every call of a tool, where `suppress` costs as much as the rest
            _PLACE.reset(self._token)
        except ValueError:
            pass  # a coroutine thrown away ends in another context, where there is nothing to undo


class asking:  # noqa: N801 - read as a verb: `with asking()`
    """Let what runs in this context be a model at work on its answer."""

    __slots__ = ("_token",)

    def __enter__(self) -> None:
        self._token = _ASKED.set(_PLACE.get())

    def __exit__(self, *_: object) -> None:
        try:  # noqa: SIM105 - as above
            _ASKED.reset(self._token)
        except ValueError:
            pass


def is_asked() -> bool:
    """Whether a model is at work here, so that whatever it asks in turn is part of its answer.

    A tool that it calls stands at a place of its own, where models are asked anew.
    """
    return _ASKED.get() == _PLACE.get()
