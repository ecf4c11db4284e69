"""The HTML report of ten thousand cases: how long to write, how large, and how soon it can be used.

    python benchmarks/html_report.py            10,000 cases; exit code 1 if a goal is missed
    python benchmarks/html_report.py 2000       as many as you like

Soon enough is 3 seconds from opening the file until the list of cases can be used, on two cores.
"""

import sys
from argparse import ArgumentParser
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter

from goals import Goal, goal_line

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))

from browser.chromium import browser_path, chromium, opened, until
from browser.sample_reports import many_cases
from greenroom.reports.html import render_html

_READY = "performance.getEntriesByName('greenroom-ready')[0]?.startTime"
_ROUNDS = 3


def main() -> int:
    """Write the report, open it, and hold it against the goals."""
    options = ArgumentParser(description="Measure the HTML report of many cases.")
    options.add_argument("cases", nargs="?", type=int, default=10_000)
    count: int = options.parse_args().cases
    report = many_cases(count)
    begin = perf_counter()
    text = render_html(report)
    print(f"{count:,} cases written in {perf_counter() - begin:.1f} s")
    goals = [Goal(f"size of {count:,} cases", len(text.encode()) / 1e6, 60, "MB")]
    if browser_path() is None:
        print("opening it: left out, there is no Chromium on this machine")
    else:
        goals.append(Goal(f"opening {count:,} cases", _opened(text), 3, "s"))
    for goal in goals:
        print(goal_line(goal, enforced=True))
    return 0 if all(goal.met for goal in goals) else 1


def _opened(text: str) -> float:
    """Seconds until the page says that it is ready; the best of some rounds."""
    with TemporaryDirectory() as folder, chromium() as browser:
        file = Path(folder) / "report.html"
        file.write_text(text, encoding="utf-8")
        return min(_once(browser, file) for _ in range(_ROUNDS))


def _once(browser: object, file: Path) -> float:
    with opened(browser, file) as (page, _):
        return until(page, _READY) / 1000


if __name__ == "__main__":
    raise SystemExit(main())
