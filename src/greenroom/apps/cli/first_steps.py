"""`greenroom demo` and `greenroom init`: the first rehearsal to watch, and the first project to write."""

from pathlib import Path

import click

from greenroom.apps.cli.event_loop import run_cases
from greenroom.apps.cli.exits import RUN_ERRORS, Stopped, put_out
from greenroom.apps.cli.progress import Watching
from greenroom.apps.demo import AS_DESIGNED, SOURCE
from greenroom.errors import BadFile
from greenroom.installation import local_path, requirement
from greenroom.reports.console import ConsoleReport
from greenroom.reports.terminal import Terminal

_BEFORE_DEMO = (
    "Three patients call a clinic's triage agent: scripted models play both sides, tools are "
    "mocked, nothing leaves this machine, and one case fails on purpose.\n"
)

_AFTER_DEMO = """
Where to look next
  greenroom demo --source > clinic.py   its one file: agent, patients, mocks, metrics
  greenroom eval run clinic.py          run it yourself, then change it
  greenroom eval run clinic.py clinic.py:headache -v    one case, in full
  greenroom eval run --help             options and exit codes
  README.md and docs/                   how to rehearse your own agent"""


def show_demo() -> None:
    """Rehearse the clinic, explain the results, and check that they are as designed."""
    terminal = Terminal()
    terminal.say(_BEFORE_DEMO)
    from greenroom.apps.demo.clinic import agent, chest_pain, headache, routine_appointment
    from greenroom.cases import EvalSet

    cases = EvalSet("clinic", [chest_pain, headache, routine_appointment])
    report = run_cases(agent, cases, Watching(terminal, len(cases)), store=False)
    ConsoleReport(terminal).show(report)
    click.echo(_AFTER_DEMO)
    ended = {result.case_id: result.status for result in report}
    if ended != AS_DESIGNED:
        raise Stopped(f"the demo ended as {ended}, but should end as {AS_DESIGNED}", RUN_ERRORS)


def print_source() -> None:
    """Print the file with the demo's agent and cases."""
    click.echo(SOURCE.read_text(encoding="utf-8"), nl=False)


# The starter project

_STARTER = Path(__file__).parent.parent / "starter"
_FILES = {
    "agent.py": "agent.py",
    "evals/desk.evalset.yaml": "evals/desk.evalset.yaml",
    "tests/test_agent.py": "tests/test_agent.py",
    "workflow.yml": ".github/workflows/evals.yml",
}
_AFTER_INIT = """
What to do next{where}
  greenroom eval run agent.py          run the cases
  pip install -r requirements.txt      what the tests need: pytest
  pytest                               the same as tests
  greenroom eval watch agent.py        run them again whenever you save; needs the extra `watch`"""
_REQUIREMENTS = """\
# Greenroom, as it was installed where this project was begun. Extras go in brackets after its name
# or path: {example}
{note}{line}
pytest>=8.3
"""
_LOCAL = """\
# That is a place on one machine. For CI, and for others, write where they can get it, such as
# greenroom @ git+https://HOST/PATH/greenroom.git, or a wheel kept in this repository.
"""


def write_project(folder: str) -> None:
    """Write the starter's files; existing ones are left alone, and named."""
    home = Path(folder)
    for source, target in _FILES.items():
        text = (_STARTER / source).read_text(encoding="utf-8")
        put_out(_write(text, home / target))
    put_out(_write(_requirements(), home / "requirements.txt"))
    where = "" if home == Path() else f", in {home}"
    put_out(_AFTER_INIT.format(where=where))
    if place := local_path():
        put_out(
            f"\nrequirements.txt installs Greenroom from {place}, which CI does not have: change that "
            f"line before you push."
        )


def _requirements() -> str:
    """Requirements that install Greenroom as it is installed here, and what the tests need."""
    note = _LOCAL if local_path() else ""
    return _REQUIREMENTS.format(note=note, line=requirement(), example=requirement("openai"))


def _write(text: str, target: Path) -> str:
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise BadFile(f"cannot write {target}: {error}. Name another folder.") from error
    try:
        # Opening it this way fails if it exists, even if it was made a moment ago.
        with target.open("x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        return f"kept   {target}, which was already there"
    except OSError as error:
        raise BadFile(f"cannot write {target}: {error}.") from error
    return f"wrote  {target}"
