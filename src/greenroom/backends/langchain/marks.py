"""By which gated copies know themselves, and models know that they are being asked."""

from contextvars import ContextVar

MARK = "_greenroom_gated"
IN_MODEL: ContextVar[bool] = ContextVar("greenroom_langgraph_in_model", default=False)
