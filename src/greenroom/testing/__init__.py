"""For authors of backends and of middleware: the suites that ours pass, and yours can.

    from greenroom.testing import BackendConformance

    class TestMine(BackendConformance):
        harness = MyHarness()

`greenroom.testing.blueprints` says what a harness is. It needs pytest and nothing else.
"""

import pytest

# A failure here should show as much as one in your own tests.
pytest.register_assert_rewrite(
    "greenroom.testing.backends", "greenroom.testing.conformance", "greenroom.testing.middleware"
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
from greenroom.testing.middleware import MiddlewareContract  # noqa: E402

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
    "MiddlewareContract",
    "Structured",
    "ToolPlan",
    "Verdict",
    "pieces",
    "timeless",
]
