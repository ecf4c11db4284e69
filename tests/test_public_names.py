"""What `greenroom` offers by name, and what importing it costs."""

import subprocess
import sys

import pytest

import greenroom

NAMES = [
    "Agent",
    "tool",
    "step",
    "loop",
    "route",
    "call",
    "StateSchema",
    "Scripted",
    "Case",
    "Turn",
    "Expect",
    "EvalSet",
    "Stop",
    "Lines",
    "SimulatedUser",
    "UserAgents",
    "Bridge",
    "with_state_change",
    "attach",
    "live",
    "fault",
    "metric",
    "per_case",
    "perform",
    "Score",
    "NotApplicable",
    "Unmeasured",
    "evaluate",
    "rehearse",
    "simulate",
    "score",
    "Ledger",
    "Report",
    "GreenroomError",
]


def loaded_after(statement: str) -> set[str]:
    code = f"import sys\n{statement}\nprint(*sys.modules)"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return {name.split(".")[0] for name in run.stdout.split()}


def test_the_public_names_are_these_and_no_others() -> None:
    assert sorted(greenroom.__all__) == sorted(NAMES)


def test_every_public_name_can_be_had() -> None:
    assert all(getattr(greenroom, name) is not None for name in NAMES)
    assert set(NAMES) <= set(dir(greenroom))


def test_an_unknown_name_is_an_attribute_error() -> None:
    assert not hasattr(greenroom, "EvalManager")


def test_importing_loads_no_room() -> None:
    code = "import sys, greenroom; print([n for n in sys.modules if n.startswith('greenroom.')])"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"


def test_all_public_names_load_no_optional_package() -> None:
    heavy = {
        "pydantic",
        "yaml",
        "click",
        "rich",
        "google",
        "pydantic_ai",
        "httpx",
        "uvloop",
        "jsonschema_rs",
    }
    names = ", ".join(NAMES)
    assert not loaded_after(f"from greenroom import {names}") & heavy


def test_no_name_brings_a_package_along_but_the_one_that_records_are_made_of() -> None:
    code = (
        "import sys, greenroom\n"
        "before = set(sys.modules)\n"
        "for name in greenroom.__all__: getattr(greenroom, name)\n"
        "new = {name.partition('.')[0] for name in set(sys.modules) - before}\n"
        "ours = {'greenroom', 'msgspec', 'typing_extensions'}\n"
        "print(sorted(new - sys.stdlib_module_names - ours), 'sqlite3' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[] False"


RARE = {
    "difflib",
    "greenroom.agents.cards",
    "greenroom.cases.files",
    "greenroom.cases.from_runs",
    "greenroom.cases.reader",
    "greenroom.ledger.difference",
    "greenroom.ledger.redaction",
    "greenroom.metrics.calls",
    "greenroom.reports",
    "greenroom.results.comparisons",
    "greenroom.results.statistics.exact",
    "greenroom.results.text",
    "greenroom.simulation.recorded",
    "greenroom.simulation.summary",
    "greenroom.results.adaptive",
    "greenroom.suite.adaptive",
    "greenroom.suite.suspects",
}
"""What only some programs use: eval-set files, comparisons, recorded trials, text without secrets."""

REHEARSAL = """
from greenroom import Agent, Case, Expect, Scripted, rehearse
case = Case("hi", says="Hi", expect=Expect(contains="Hello"))
assert rehearse(Agent("clerk", model=Scripted("Hello.")), [case], store=False).passed
"""


@pytest.mark.parametrize(
    "program",
    ["import greenroom\nfor name in greenroom.__all__: getattr(greenroom, name)", REHEARSAL],
    ids=["the names", "a rehearsal"],
)
def test_neither_the_names_nor_a_small_rehearsal_load_what_few_programs_use(program: str) -> None:
    code = f"import sys\n{program}\nprint(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not RARE.intersection(done.stdout.split())
