"""google-adk's own evaluation, with our gate and our metrics in it."""

from typing import TYPE_CHECKING

from greenroom.lazy import lazy

if TYPE_CHECKING:
    from greenroom.suite.adk.metrics import register_metrics
    from greenroom.suite.adk.service import evaluate_in_adk

__all__ = ["evaluate_in_adk", "register_metrics"]

__getattr__, __dir__ = lazy(__name__, {"metrics": "register_metrics", "service": "evaluate_in_adk"})
