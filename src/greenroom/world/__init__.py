"""The World: one seam for every effect, the live one, middleware, and how calls are recorded."""

from typing import TYPE_CHECKING

from greenroom.lazy import lazy
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

# Most runs do not need these.
__getattr__, __dir__ = lazy(
    __name__,
    {
        "middleware.approval": "tool_approval",
        "middleware.attempts": "Ask",
        "middleware.breaker": "breaker",
        "middleware.budgets": "budget cost_attribution",
        "middleware.cache": "cache",
        "middleware.current": "Run current_run",
        "middleware.pii": "pii_filter",
        "middleware.protocol": "Middleware",
        "middleware.rate_limit": "rate_limit",
        "middleware.recorder": "recorder",
        "middleware.retry": "retry",
        "world": "AgentTurn",
    },
)
