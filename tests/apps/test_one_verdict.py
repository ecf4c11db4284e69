"""What the gate says of a run: exit code, terminal and every file say the same, by whichever option."""

import json
import re
from pathlib import Path
from xml.etree import ElementTree as Xml

import pytest

from greenroom import Report
from greenroom.results import CaseResult, Gate
from greenroom.results.reporters import FunctionReporter, render_report

FORMATS = {
    "json": "r.json",
    "junit": "r.xml",
    "html": "r.html",
    "markdown": "r.md",
    "console": "r.txt",
}

# Eight cases of each tag; which of them pass, how well, and what breaks is read at each run.
SHOP = """
import json
from pathlib import Path

def plan():
    return json.loads(Path("plan.json").read_text())

@metric
def tone(ledger, case) -> float:
    found = plan().get(case.id, plan()["usual"])
    if found == "break":
        raise RuntimeError("out of order")
    return found

cases = [
    Case(f"{tag}{n}", "Hi", mocks={"refund": "ok"}, metrics=[tone], tags=[tag])
    for tag in ("a", "b") for n in range(8)
]
"""
GOOD, POOR, BAD = 1.0, 0.7, 0.0


def of(tag: str, value: object, count: int = 8) -> dict[str, object]:
    return {f"{tag}{n}": value for n in range(count)}


@pytest.fixture
def play(author, greenroom):
    """Plays the shop by a plan, and tells what each door says."""
    author(SHOP)

    def played(plan: dict[str, object], *words: str):
        Path("plan.json").write_text(json.dumps({"usual": GOOD, **plan}))
        asked = [word for name, path in FORMATS.items() for word in ("-f", f"{name}={path}")]
        run = ("eval", "run", "shop.py", "--no-store", "--no-cache", *words)
        result = greenroom(*run, *asked)
        shown = greenroom(*run, "--json")
        assert shown.exit_code == result.exit_code
        return result, json.loads(shown.stdout)

    return played


def said_by_files() -> dict[str, bool]:
    """Whether the run passed, as each file has it."""
    suite = Xml.parse("r.xml").getroot().find("testsuite")
    assert suite is not None
    facts = {one.get("name"): one.get("value") for one in suite.iter("property")}
    page = re.search(r"Gate (passed|missed)", Path("r.html").read_text())
    text = Path("r.txt").read_text().splitlines()
    assert page is not None
    return {
        "json": json.loads(Path("r.json").read_text())["gate"]["passed"],
        "junit": facts["gate"] == "passed",
        "html": page[1] == "passed",
        "markdown": Path("r.md").read_text().startswith("### ✅"),
        "console": text[-1] == "gate passed",
    }


PASSING: dict[str, object] = {}
FALLEN = of("a", BAD)
SWAPPED_BEFORE, SWAPPED = of("b", BAD), of("a", BAD)
BASE = ("--baseline", "base.json")
STORE = ("--store", "kept")

OPTIONS = {
    # name: the plan of the baseline, the plan of the run, what every run is told, lenient, strict
    "--min-pass-rate": (
        None,
        of("a", BAD),
        (),
        ("--min-pass-rate", "0.5"),
        ("--min-pass-rate", "0.6"),
    ),
    "no option": (None, {"a0": BAD}, (), ("--min-pass-rate", "0.5"), ()),
    "--max-errors": (None, {"a0": "break"}, (), ("--max-errors", "1"), ("--max-errors", "0")),
    "--confident": (None, PASSING, ("--min-pass-rate", "0.9"), (), ("--confident",)),
    "--trials auto": (None, of("a", BAD, 3), ("--min-pass-rate", "0.79"), (), ("--trials", "auto")),
    "--baseline": (PASSING, FALLEN, ("--min-pass-rate", "0.4"), (), BASE),
    "--threshold": (PASSING, of("a", POOR), BASE, ("--threshold", "0.4"), ("--threshold", "0.1")),
    "--gate-tag": (
        SWAPPED_BEFORE,
        SWAPPED,
        (*BASE, "--confirm", "off"),
        (),
        ("--gate-tag", "a"),
    ),
    "--fail-on unclear": (
        SWAPPED_BEFORE,
        SWAPPED,
        (*BASE, "--confirm", "off"),
        (),
        ("--fail-on", "unclear"),
    ),
    "--fail-on removed": (
        PASSING,
        PASSING,
        (*BASE, "--filter", "tag:a"),
        (),
        ("--fail-on", "removed"),
    ),
    "--min-pass-rate next to a baseline": (
        FALLEN,
        FALLEN,
        BASE,
        (),
        ("--min-pass-rate", "0.9"),
    ),
}


@pytest.mark.parametrize("name", OPTIONS)
def test_every_door_says_the_same_of_a_run(play, name):
    before, plan, always, lenient, strict = OPTIONS[name]
    if before is not None:
        play(before, "--min-pass-rate", "0")
        Path("r.json").rename("base.json")
    result, shown = play(plan, *always, *lenient)
    assert result.exit_code == 0, result.output
    assert shown["gate"] == {"passed": True, "exit_code": 0, "missed": []}
    assert said_by_files() == dict.fromkeys(FORMATS, True)
    result, shown = play(plan, *always, *strict)
    assert result.exit_code in (1, 2), result.output
    assert said_by_files() == dict.fromkeys(FORMATS, False)
    gate = json.loads(Path("r.json").read_text())["gate"]
    assert gate["exit_code"] == shown["gate"]["exit_code"] == result.exit_code
    assert gate["missed"]
    for missed in gate["missed"]:
        assert missed["why"] in result.stderr
        assert f"gate missed: {missed['why']}" in " ".join(Path("r.txt").read_text().split())


def test_a_stored_run_shown_again_claims_no_verdict(author, greenroom):
    author(SHOP)
    Path("plan.json").write_text(json.dumps({"usual": GOOD, "a0": BAD}))
    played = greenroom("eval", "run", "shop.py", "--min-pass-rate", "0.5", "-o", "first.md", *STORE)
    assert played.exit_code == 0
    assert Path("first.md").read_text().startswith("### ✅")
    [run] = json.loads(greenroom("runs", "list", "--json", *STORE).stdout)
    asked = [word for name, path in FORMATS.items() for word in ("-f", f"{name}={path}")]
    assert greenroom("runs", "show", run["id"], *asked, *STORE).exit_code == 0
    assert json.loads(Path("r.json").read_text())["gate"] is None
    assert not re.search("[✅❌⛔]", Path("r.md").read_text().splitlines()[0])
    assert not re.search("Gate (passed|missed)", Path("r.html").read_text())
    assert "gate" not in Path("r.xml").read_text()


def test_what_a_file_says_of_the_gate_does_not_keep_it_from_being_read(play):
    play({"a0": BAD})
    assert len(Report.load("r.json").results) == 16


def test_a_comparison_says_what_its_gate_says(play, greenroom):
    for name, plan in (("before", SWAPPED_BEFORE), ("now", SWAPPED)):
        play(plan, "--min-pass-rate", "0")
        Path("r.json").rename(f"{name}.json")
    words = ("eval", "compare", "before.json", "now.json", "--format")
    for strict, code, sign in (((), 0, "✅"), (("--fail-on", "unclear"), 1, "❌")):
        told = greenroom(*words, "markdown", *strict)
        data = greenroom(*words, "json", *strict)
        assert (told.exit_code, data.exit_code) == (code, code)
        assert told.stdout.startswith(f"### {sign}")
        assert json.loads(data.stdout)["gate"]["exit_code"] == code


def test_a_reporter_need_not_know_of_a_gate():
    report = Report([CaseResult(case_id="a", status="passed")])
    said = Gate().decide(report, report)
    told = FunctionReporter("count", lambda report: f"{len(report)} results")
    assert render_report(told, report, baseline=report, decision=said) == "1 results"
    seen = FunctionReporter("gate", lambda report, *, decision: str(decision.passed))
    assert render_report(seen, report, baseline=report, decision=said) == "True"
