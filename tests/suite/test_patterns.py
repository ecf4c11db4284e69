"""The benchmark of patterns runs each of them, and would not measure one that does not pass."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_every_pattern_of_agents_is_measured(tmp_path):
    ran = subprocess.run(
        [sys.executable, ROOT / "benchmarks" / "patterns.py", "2"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    header, *rows = ran.stdout.splitlines()
    assert header.split() == ["pattern", "µs", "a", "trial", "µs", "a", "model", "call"]
    assert len(rows) == 10
    assert all(int(row.split()[-1]) > 0 for row in rows)
