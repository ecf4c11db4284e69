"""`greenroom demo`: a real rehearsal of `greenroom.apps.demo.clinic`, with words around it."""

import click

from greenroom.apps.cli.event_loop import play
from greenroom.apps.cli.exits import PASSED, RUN_ERRORS, Stopped, telling
from greenroom.apps.cli.progress import Watching
from greenroom.apps.demo import AS_DESIGNED, SOURCE
from greenroom.reports.console import ConsoleReport
from greenroom.reports.terminal import Terminal
from greenroom.results import Report

_BEFORE = (
    "Three patients call a clinic's triage agent: scripted models play both sides, tools are "
    "mocked, nothing leaves this machine, and one case fails on purpose.\n"
)

_AFTER = """
Where to look next
  greenroom demo --source > clinic.py   its one file: agent, patients, mocks, metrics
  greenroom eval run clinic.py          run it yourself, then change it
  greenroom eval run clinic.py clinic.py:headache -v    one case, in full
  greenroom eval run --help             options and exit codes
  README.md and docs/                   how to rehearse an agent of your own"""


def show() -> int:
    """Rehearse the clinic, explain what came of it, and check that it came as designed."""
    terminal = Terminal()
    with telling(verbose=False):
        terminal.say(_BEFORE)
        report = _rehearsed(terminal)
        ConsoleReport(terminal).show(report)
    click.echo(_AFTER)
    ended = {result.case_id: result.status for result in report}
    if ended != AS_DESIGNED:
        raise Stopped(f"the demo ended as {ended}, but should as {AS_DESIGNED}", RUN_ERRORS)
    return PASSED


def _rehearsed(terminal: Terminal) -> Report:
    from greenroom.apps.demo.clinic import agent, chest_pain, headache, routine_appointment
    from greenroom.cases import EvalSet

    cases = EvalSet("clinic", [chest_pain, headache, routine_appointment])
    return play(agent, cases, Watching(terminal, len(cases)), store=False)


def print_source() -> int:
    """Print the file with the demo's agent and cases."""
    click.echo(SOURCE.read_text(encoding="utf-8"), nl=False)
    return PASSED
