"""What it costs to read a large eval set: 10,000 cases in a file of about 20 MB, in each format.

    python benchmarks/loading.py

Each file is read in a process of its own. The figures are CPU seconds and the peak of memory in MB,
both with starting Python and importing what is needed.
"""

import json
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from greenroom import Case, EvalSet, Expect, Turn, call
from greenroom.cases import write_evalset

CASES = 10_000
FILES = ("cases.json", "cases.yaml", "cases.jsonl", "cases.evalset.json")
SHAPES = {"cases.evalset.json": "adk"}
READ = """
import json, resource, sys
from greenroom.cases import read_evalset
found = read_evalset(sys.argv[1])
used = resource.getrusage(resource.RUSAGE_SELF)
peak = used.ru_maxrss / 1024**2
if sys.platform == "linux":  # there it would be the peak of the parent process
    status = open("/proc/self/status").read().splitlines()
    peak = next(int(line.split()[1]) for line in status if "VmHWM" in line) / 1024
print(json.dumps([len(found), used.ru_utime + used.ru_stime, peak]))
"""


def main() -> None:
    """Write the files, read each once, and print a line for it."""
    evalset = EvalSet("large", [large_case(n) for n in range(CASES)])
    with TemporaryDirectory() as folder:
        for name in FILES:
            path = Path(folder) / name
            write_evalset(evalset, path, shape=SHAPES.get(name), lossy=True)
        del evalset
        for name in FILES:
            print(measured(Path(folder) / name))


def large_case(n: int) -> Case:
    """A case of two turns and about two kilobytes."""
    reference = "The money is on its way, and will be with you in about three days. " * 8
    return Case(
        f"case-{n}",
        turns=[
            Turn("I ordered this a week ago, and it came broken. " * 8),
            Turn(
                "The order was the one in March. " * 8,
                Expect(tools=[call("refund", order=n, reason="broken")], reference=reference),
            ),
        ],
        mocks={"refund": {"ok": True, "order": n}},
        state={"session": {"order": n, "since": "March"}},
        tags=["refund", "broken"],
    )


def measured(path: Path) -> str:
    """A line with the size of the file and what reading it took."""
    size = path.stat().st_size / 1e6
    ran = subprocess.run(
        [sys.executable, "-c", READ, str(path)], capture_output=True, text=True, check=True
    )
    count, cpu, memory = json.loads(ran.stdout)
    return f"{path.name:<20}{size:6.1f} MB {count:>8} cases {cpu:6.2f} s CPU {memory:6.0f} MB"


if __name__ == "__main__":
    main()
