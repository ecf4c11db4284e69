"""A process that `warm_python` forks does what the same words do in a Python of their own."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import warm_python

TELLS = """
import os, sys
print(sys.argv, os.getcwd(), os.environ["WORD"], __name__, sys.path[0], sys.stdin.read())
print(sys.stdout.encoding, sys.stdout.errors, sys.stdout.isatty(), file=sys.stderr)
"""
LAST_WORDS = """
import atexit, threading
class Kept:
    def __del__(self):
        print("taken down")
kept = Kept()
atexit.register(print, "at exit")
threading.Thread(target=print, args=["thread"]).start()
"""
ENDINGS = ["", LAST_WORDS, "sys.exit(3)", "sys.exit('no')", "1 / 0", "os.kill(os.getpid(), 9)"]


@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.parametrize("way", ["-c", "-m", "script"])
def test_it_is_a_process_like_any_other(tmp_path: Path, way: str, ending: str) -> None:
    (tmp_path / "tells.py").write_text(f"{TELLS}\n{ending}\n")
    words = {"-c": ["-c", f"{TELLS}\n{ending}"], "-m": ["-m", "tells"], "script": ["tells.py"]}
    warm, cold = (
        run(
            [sys.executable, *words[way], "a", "ü"],
            cwd=tmp_path,
            env={**os.environ, "WORD": "wörd", "PYTHONIOENCODING": "utf-8"},
            input="given",
            capture_output=True,
            text=True,
        )
        for run in (warm_python.run, subprocess.run)
    )
    assert (warm.returncode, warm.stdout) == (cold.returncode, cold.stdout)
    # A traceback begins with the lines of whoever forks.
    assert warm.stderr.splitlines()[:1] == cold.stderr.splitlines()[:1]
    assert warm.stderr.splitlines()[-1:] == cold.stderr.splitlines()[-1:]
