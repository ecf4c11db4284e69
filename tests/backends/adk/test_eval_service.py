"""google-adk's own evaluation, with everything it needs, asks our metrics."""

import json
from pathlib import Path

import pytest

from backends.adk.eval_environment import environment, run

pytestmark = pytest.mark.heavy

SCRIPT = Path(__file__).with_name("eval_service.py")


def test_a_set_is_judged_by_our_metrics_in_their_service():
    judged = json.loads(run(str(environment()), str(SCRIPT)).splitlines()[-1])
    assert judged == {
        "called('weather')": [1.0, "PASSED"],
        "contains('Bergen')": [0.0, "FAILED"],
        "broken": [None, "NOT_EVALUATED"],
    }
