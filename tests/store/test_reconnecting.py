"""A connection that is lost is opened again, as long as there is patience."""

from typing import Any, cast

import pytest

from greenroom.store.database import Database, Reconnecting


class Lost(Exception):
    """The connection is gone."""


class Flaky:
    """A database whose first connections are all lost."""

    def __init__(self, patience: float) -> None:
        self.patience = patience

    def open(self) -> Any:
        return self

    def check(self, _: Any) -> None: ...

    def close(self) -> None: ...

    def is_lost(self, error: Exception) -> bool:
        return isinstance(error, Lost)


def connected(patience: float) -> Reconnecting:
    connection = Reconnecting(cast("Database", Flaky(patience)))
    connection.do(lambda _: None)
    return connection


def losing(times: int) -> Any:
    left = iter(range(times))

    def work(_: Any) -> str:
        for _ in left:
            raise Lost
        return "done"

    return work


def test_a_run_that_is_being_closed_still_opens_a_lost_connection_again() -> None:
    connection = connected(patience=30.0)
    connection.stop_waiting()
    assert connection.do(losing(2)) == "done"


def test_without_patience_a_lost_connection_is_an_error() -> None:
    with pytest.raises(Lost):
        connected(patience=0.0).do(losing(1))


def test_a_connection_that_was_never_there_is_not_waited_for() -> None:
    with pytest.raises(Lost):
        Reconnecting(cast("Database", Flaky(30.0)), losing(1)).do(lambda _: None)
