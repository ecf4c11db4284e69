"""The framework's log without the tracebacks of our own refusals: the report tells them already."""

import logging

from greenroom.errors import GreenroomError

_LOUD = (
    "agents.base_agent",
    "agents.llm_agent",
    "evaluation.local_eval_service",
    "flows.llm_flows.tools._error_handler",
    "live._live_llm_flow",
    "plugins.plugin_manager",
    "runners",
    "workflow._node_runner",
    "workflow._node_runner_utils",
)


class _Told(logging.Filter):
    """Lets through whatever is not about an error of ours."""

    def filter(self, record: logging.LogRecord) -> bool:
        error = record.exc_info[1] if record.exc_info else None
        while error is not None:
            if isinstance(error, GreenroomError):
                return False
            error = error.__cause__
        return True


_TOLD = _Told()


def quiet() -> None:
    """Keep tracebacks of refusals out of the framework's log; asking twice changes nothing."""
    for name in _LOUD:
        logging.getLogger(f"google_adk.google.adk.{name}").addFilter(_TOLD)
