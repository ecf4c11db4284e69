"""Attacks on the fence: each is prepared outside a rehearsal, then carried out inside one."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from simulation.fence_canaries import Canary

# Preparing gives the act; both may be asynchronous.
Prepare = Callable[[Canary], Any]


@dataclass(frozen=True)
class Attack:
    """One way out, the routes by which the fence may name it, and whether a case answers."""

    prepare: Prepare
    routes: tuple[str, ...]
    is_stray: bool = False

    @property
    def name(self) -> str:
        return self.prepare.__name__


class Attacks(list[Attack]):
    """A collection of attacks, filled by decorating them."""

    def by(self, *routes: str, stray: bool = False) -> Callable[[Prepare], Prepare]:
        """Add the decorated attack, which the fence names by one of these routes."""

        def add(prepare: Prepare) -> Prepare:
            self.append(Attack(prepare, routes, stray))
            return prepare

        return add
