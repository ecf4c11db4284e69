"""What a thousand cases of an eval-set file cost as pytest tests, beside as many tests that do nothing.

python benchmarks/as_tests.py    all of it, as JSON
"""

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from goals import Goal
from plan import QUICK, Plan
from scenario import rows
from turns import Figures, cpu_of, in_turns

from greenroom import Case, EvalSet, Expect, call

CASES = 1000
AGENT = """
import json
from greenroom import Agent, Scripted, call, tool

@tool
def get_weather(city: str) -> dict[str, object]:
    raise RuntimeError("never reached in a rehearsal")

def asks(request):
    return call("get_weather", city=request.messages[0].text)

def answers(request):
    return f"In {request.messages[0].text} it is {json.loads(request.messages[-1].text)['sky']}."

agent = Agent("weather", model=Scripted(asks, answers), tools=[get_weather])
"""
NOTHING = "import pytest\n@pytest.mark.parametrize('n', range({}))\ndef test_nothing(n): pass\n"


def measured(plan: Plan) -> Figures:
    """CPU seconds of a pytest run with the cases, and of one with tests that do nothing."""
    with TemporaryDirectory() as folder:
        cases, tests = _written(Path(folder))
        pytest = [
            sys.executable,
            "-m",
            "pytest",
            "-q",
            "-p",
            "no:langsmith_plugin",
            "--rootdir",
            folder,
        ]
        runs = {"cases": [*pytest, cases], "tests": [*pytest, tests]}
        timed = {name: lambda line=line: {"cpu": cpu_of(line)} for name, line in runs.items()}
        return {name: one["cpu"] for name, one in in_turns("tests", timed, plan.rounds).items()}


def _written(folder: Path) -> tuple[Path, Path]:
    (folder / "agent.py").write_text(AGENT)
    found = [
        Case(
            row.id,
            says=row.asked_city,
            mocks={"get_weather": {"sky": "grey"}},
            expect=Expect(tools=[call("get_weather", city=row.asked_city)], contains="grey"),
        )
        for row in rows(CASES)
    ]
    EvalSet("many", found).save(cases := folder / "many.evalset.yaml")
    (tests := folder / "test_nothing.py").write_text(NOTHING.format(CASES))
    return cases, tests


def goals(found: Figures) -> Sequence[Goal]:
    """A suite of a thousand cases is run before a coffee is poured."""
    return [Goal(f"{CASES} cases as pytest tests", found["cases"], 10, "s")]


def lines(found: Figures) -> list[str]:
    """What pytest itself takes."""
    return [f"  {CASES} tests that do nothing: {found['tests']:.1f} s"]


if __name__ == "__main__":
    print(json.dumps(measured(QUICK)))
