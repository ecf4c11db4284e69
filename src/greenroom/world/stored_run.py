"""The run of the store that the trial under way belongs to."""

from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final

_STORED: Final = ContextVar("greenroom_stored_run", default="")


def stored_run() -> str:
    """Its id; empty if nothing is stored."""
    return _STORED.get()


@contextmanager
def stored_as(run_id: str) -> Generator[None]:
    """A trial of this run of the store."""
    token = _STORED.set(run_id)
    try:
        yield
    finally:
        _STORED.reset(token)
