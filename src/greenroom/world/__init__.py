"""The World: one seam for every effect, the live one, middleware, and how calls are written down."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

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

if TYPE_CHECKING:
    from greenroom.world.middleware.approval import tool_approval
    from greenroom.world.middleware.attempts import Ask
    from greenroom.world.middleware.breaker import breaker
    from greenroom.world.middleware.budgets import budget, cost_attribution
    from greenroom.world.middleware.cache import cache
    from greenroom.world.middleware.current import Run, current_run
    from greenroom.world.middleware.pii import pii_filter
    from greenroom.world.middleware.protocol import Middleware
    from greenroom.world.middleware.rate_limit import rate_limit
    from greenroom.world.middleware.recorder import recorder
    from greenroom.world.middleware.retry import retry
    from greenroom.world.world import AgentTurn

_LATER = {
    "AgentTurn": "greenroom.world.world",
    "Ask": "greenroom.world.middleware.attempts",
    "Middleware": "greenroom.world.middleware.protocol",
    "Run": "greenroom.world.middleware.current",
    "breaker": "greenroom.world.middleware.breaker",
    "budget": "greenroom.world.middleware.budgets",
    "cache": "greenroom.world.middleware.cache",
    "cost_attribution": "greenroom.world.middleware.budgets",
    "current_run": "greenroom.world.middleware.current",
    "pii_filter": "greenroom.world.middleware.pii",
    "rate_limit": "greenroom.world.middleware.rate_limit",
    "recorder": "greenroom.world.middleware.recorder",
    "retry": "greenroom.world.middleware.retry",
    "tool_approval": "greenroom.world.middleware.approval",
}
"""Where the names are found that most runs do without."""

__all__ = [
    "AgentTurn",
    "Ask",
    "Clock",
    "Context",
    "FixedClock",
    "LiveWorld",
    "Middleware",
    "Pending",
    "Returned",
    "Run",
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
    "breaker",
    "budget",
    "cache",
    "cost_attribution",
    "current_run",
    "fail_call",
    "pii_filter",
    "rate_limit",
    "recorder",
    "retry",
    "tool_approval",
]


def __getattr__(name: str) -> Any:
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(_LATER[name]), name)
    return value
