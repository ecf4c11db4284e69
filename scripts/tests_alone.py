"""Run the tests that failed beside others once more, one after the other and alone.

A test that starts processes, browsers or servers may be starved by its neighbours. It is named here either
way: one that passes only alone is a defect of that test, to be mended, and no reason to throw a change away.
More than a few failures are never starvation, so they are not tried again.
"""

import json
import subprocess
import sys
from pathlib import Path

MOST = 3

failed: dict[str, bool] = json.loads(Path(".pytest_cache/v/cache/lastfailed").read_text())
if not 0 < len(failed) <= MOST:  # with none, `--last-failed` would run all of them
    sys.exit(1)
print("\nFailed beside others, now alone:", *failed, sep="\n  ", flush=True)
again = subprocess.run([sys.executable, "-m", "pytest", "-q", "--last-failed"], check=False)
if again.returncode == 0:
    print("Passed alone. Mend them: a test must not depend on what runs beside it.")
sys.exit(again.returncode)
