"""What the author's files may do while they are imported, and what they have started by then may do later."""

from collections.abc import Generator
from contextlib import contextmanager
from typing import Final

_network: Final[list[bool]] = []
_acts: Final[list[bool]] = []


def allow_import_network() -> None:
    """Let files that are imported from now on connect and start processes; tools stay closed."""
    _network.append(True)


def is_import_allowed() -> bool:
    """Whether imported files may connect and start processes."""
    return bool(_network)


@contextmanager
def only_rehearsing() -> Generator[None]:
    """Say that this process, which is Greenroom's own, only rehearses agents.

    A program of the author's says nothing: it may do both with the same file.
    """
    _acts.append(False)
    try:
        yield
    finally:
        _acts.pop()


@contextmanager
def acting() -> Generator[None]:
    """Say that agents act for real in this process, for as long as this lasts."""
    _acts.append(True)
    try:
        yield
    finally:
        _acts.pop()


def is_only_rehearsing() -> bool:
    """Whether nothing acts for real in this process, neither now nor later."""
    return bool(_acts) and not _acts[-1]
