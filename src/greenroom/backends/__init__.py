"""How an agent is run: the protocol, the registry, and one backend for each framework."""

from greenroom.backends.backend import (
    Advance,
    Backend,
    Failed,
    Finished,
    ToolFacts,
    TurnOver,
    Waiting,
    Yield,
)
from greenroom.backends.makers import PerCase, per_case
from greenroom.backends.registry import backend_for

__all__ = [
    "Advance",
    "Backend",
    "Failed",
    "Finished",
    "PerCase",
    "ToolFacts",
    "TurnOver",
    "Waiting",
    "Yield",
    "backend_for",
    "per_case",
]
