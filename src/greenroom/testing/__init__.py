"""Test suites for authors of backends, middleware, metrics and file shapes; Greenroom's own pass them too.

    from greenroom.testing import BackendConformance

    class TestMine(BackendConformance):
        harness = MyHarness()

`greenroom.testing.blueprints` says what a harness is. It needs only pytest.
"""

import pytest

# A failing assertion here should show as much as one in your own tests.
pytest.register_assert_rewrite(
    "greenroom.testing.backends",
    "greenroom.testing.conformance",
    "greenroom.testing.metrics",
    "greenroom.testing.middleware",
    "greenroom.testing.shapes",
)

from greenroom.testing.backends import BackendConformance  # noqa: E402
from greenroom.testing.blueprints import (  # noqa: E402
    USAGE,
    Blueprint,
    Bypass,
    Desk,
    HandOver,
    Hang,
    Harness,
    Line,
    Structured,
    ToolPlan,
    Verdict,
    pieces,
)
from greenroom.testing.ledgers import timeless  # noqa: E402
from greenroom.testing.metrics import MetricContract, rehearsed  # noqa: E402
from greenroom.testing.middleware import MiddlewareContract  # noqa: E402
from greenroom.testing.shapes import ShapeContract  # noqa: E402

__all__ = [
    "USAGE",
    "BackendConformance",
    "Blueprint",
    "Bypass",
    "Desk",
    "HandOver",
    "Hang",
    "Harness",
    "Line",
    "MetricContract",
    "MiddlewareContract",
    "ShapeContract",
    "Structured",
    "ToolPlan",
    "Verdict",
    "pieces",
    "rehearsed",
    "timeless",
]
