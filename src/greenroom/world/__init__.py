"""The World: one seam for every effect, the live one, and how calls are written down."""

from greenroom.world.live import LiveWorld
from greenroom.world.records import ToolError, answer_model, answer_tool, begin_call, fail_call
from greenroom.world.scopes import Scope, Scopes
from greenroom.world.world import (
    Clock,
    Context,
    FixedClock,
    Pending,
    Returned,
    SystemClock,
    ToolBody,
    ToolRequest,
    World,
)

__all__ = [
    "Clock",
    "Context",
    "FixedClock",
    "LiveWorld",
    "Pending",
    "Returned",
    "Scope",
    "Scopes",
    "SystemClock",
    "ToolBody",
    "ToolError",
    "ToolRequest",
    "World",
    "answer_model",
    "answer_tool",
    "begin_call",
    "fail_call",
]
