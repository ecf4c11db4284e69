"""Importing the metrics is light."""

import subprocess
import sys


def test_importing_metrics_loads_no_optional_or_border_package():
    code = (
        "import sys, greenroom.metrics; "
        "print([m for m in ('pydantic', 'yaml', 'click', 'rich', 'httpx') if m in sys.modules])"
    )
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert shown.stdout.strip() == "[]"
