"""The cases of `evals/` as tests, and one more that is written in Python. `pytest` runs them."""

from pathlib import Path

from greenroom import Case, Lines, rehearse
from greenroom.metrics import called, contains

PROJECT = Path(__file__).parent.parent
AGENT = str(PROJECT / "agent.py")


def test_the_eval_set_passes():
    report = rehearse(AGENT, PROJECT / "evals" / "desk.evalset.yaml")
    assert report.passed, str(report)


def test_a_customer_who_answers_gets_an_answer():
    """A case may also be written in Python, where mocks, users and metrics can be code."""
    case = Case(
        "answers-later",
        says="Hello?",
        user=Lines("Order 3, please."),
        mocks={"find_order": {"status": "packed"}},
        metrics=[called("find_order", {"number": 3}), contains("packed")],
    )
    report = rehearse(AGENT, [case])
    assert report.passed, str(report)
