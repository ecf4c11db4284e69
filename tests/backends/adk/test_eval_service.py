"""google-adk's own evaluation, with everything it needs, asks our metrics."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.heavy

ROOT = Path(__file__).parents[3]
ENVIRONMENT = ROOT / ".envs" / "adk-eval"
SCRIPT = Path(__file__).with_name("eval_service.py")


def environment() -> Path:
    """The Python with google-adk's eval extra, installed on first use; skips where it cannot be."""
    python = ENVIRONMENT / "bin" / "python"
    done = ENVIRONMENT / ".done"
    if not done.exists():
        try:
            run(sys.executable, "-m", "venv", str(ENVIRONMENT))
            run(str(python), "-m", "pip", "install", "-q", "google-adk[eval]>=2.13,<3")
        except subprocess.SubprocessError as error:
            pytest.skip(f"google-adk[eval] cannot be installed: {getattr(error, 'stderr', error)}")
        done.touch()
    return python


def run(*command: str) -> str:
    path = os.pathsep.join([str(ROOT / "src"), str(ROOT / "tests")])
    ended = subprocess.run(
        command,
        check=True,
        capture_output=True,
        text=True,
        timeout=900,
        env={**os.environ, "PYTHONPATH": path},
    )
    return ended.stdout


def test_a_set_is_judged_by_our_metrics_in_their_service():
    judged = json.loads(run(str(environment()), str(SCRIPT)).splitlines()[-1])
    assert judged == {
        "called('weather')": [1.0, "PASSED"],
        "contains('Bergen')": [0.0, "FAILED"],
        "broken": [None, "NOT_EVALUATED"],
    }
