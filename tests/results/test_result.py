"""What one result says of itself."""

from typing import Any

import pytest

from greenroom.cases import Case
from greenroom.cases.scores import NotApplicable, Outcome, Score, Unmeasured
from greenroom.errors import BadLedger
from greenroom.ledger import AgentSaid, Ledger, ModelReplied, RunEnded, RunStarted, Usage, UserSaid
from greenroom.ledger.questions import Spending
from greenroom.ledger.trajectory import Step
from greenroom.results import CaseResult
from greenroom.results.blame import Blame
from greenroom.results.endings import Problem
from greenroom.results.report import Report
from greenroom.results.summary import Summary
from greenroom.results.trial_verdict import UNSEEN, concluded
from greenroom.results.words import number_of


def played(*prices: float | None) -> CaseResult:
    cost, user, judge = prices
    return CaseResult(
        case_id="a", status="passed", ended="completed", cost=cost, user_cost=user, judge_cost=judge
    )


def test_what_a_result_cost_is_what_agent_user_and_judges_cost():
    assert played(0.5, 0.25, 0.0).spent == 0.75
    assert Report([played(0.5, 0.25, 0.0), played(1.0, 0.0, 0.125)]).spent == 1.875


@pytest.mark.parametrize("prices", [(None, 0.0, 0.0), (1.0, None, 0.0), (1.0, 0.0, None)])
def test_one_unknown_price_makes_the_whole_unknown(prices):
    assert played(*prices).spent is None
    assert Report([played(0.0, 0.0, 0.0), played(*prices)]).spent is None


def test_a_case_that_was_never_played_cost_nothing():
    result = CaseResult(case_id="a", status="skipped")
    assert result.spent == 0
    assert Report([result]).spent == 0


def test_only_further_trials_are_named_as_such():
    labels = [CaseResult(case_id="a", status="passed", trial=trial).label for trial in (1, 2)]
    assert labels == ["a", "a (trial 2)"]


def test_counts_of_statuses_are_a_summary():
    counts = {"passed": 1, "failed": 2, "error": 3, "terminated": 4, "skipped": 5}
    assert Summary.of(15, counts) == Summary(15, 1, 2, 3, 4, 5)
    assert Summary.of(7, {"error": 2}) == Summary(7, errors=2)


def test_only_one_is_singular():
    assert [number_of(count, "case") for count in range(3)] == ["0 cases", "1 case", "2 cases"]


def run(ended: Any = "completed", opaque: Any = (), **end: Any) -> Ledger:
    user = ModelReplied(voice="user", model="u-1", text="Hi.", usage=Usage(1, 2), cost=0.5)
    events = [
        RunStarted(run_id="r", opaque=opaque),
        user,
        UserSaid(text="Hi."),
        ModelReplied(model="m-1", text="Ho.", usage=Usage(3, 4), cost=0.25),
        AgentSaid(text="Ho."),
        RunEnded(reason=ended, **end),
    ]
    ledger = Ledger()
    for place, event in enumerate(events):
        ledger.append(event, at=float(place))
    return ledger


SCORES: dict[str, Outcome] = {"tone": Score(0.0, False, reason="rude")}


def test_what_nobody_could_see_is_told_by_the_first_beginning() -> None:
    ledger = Ledger()
    for event in (
        RunStarted(run_id="r", opaque=("tools", "models")),
        RunStarted(run_id="r"),
        UserSaid(text="Hi."),
        RunEnded(reason="completed"),
    ):
        ledger.append(event, at=0.0)
    result = concluded(Case("a", says="Hi."), ledger, SCORES)
    assert result.notes == (UNSEEN["tools"], UNSEEN["models"])
    assert result.cost is None


def test_a_run_is_told_with_all_that_is_known_of_it():
    case, judging = Case("a", says="Hi.", name="A case", tags=["smoke"]), Ledger()
    judging.append(ModelReplied(model="j-1", text="no", usage=Usage(5, 6), cost=1.0), at=0.0)
    ledger = run(opaque=("tools",))
    result = concluded(case, ledger, SCORES, judging=judging)
    assert result == CaseResult(
        case_id="a",
        status="failed",
        name="A case",
        tags=("smoke",),
        scores=SCORES,
        ended="completed",
        turns=1,
        seconds=5.0,
        usage=Usage(3, 4),
        cost=0.25,
        models={"m-1": 1},
        nodes={"": Spending(Usage(3, 4), 0.25, {"m-1": 1}, 0.25)},
        user_usage=Usage(1, 2),
        user_cost=0.5,
        user_models={"u-1": 1},
        judge_usage=Usage(5, 6),
        judge_cost=1.0,
        judge_models={"j-1": 1},
        notes=(UNSEEN["tools"],),
    )
    assert (result.kept, result.asked, result.steps, result.blamed) == (ledger, case, (), None)
    assert result.scores is not SCORES


def test_of_a_run_whose_ledger_is_not_kept_the_steps_and_the_blame_are():
    result = concluded(Case("a", says="Hi."), run(), SCORES, keep_ledger=False)
    assert result.kept is None
    assert result.blame == Blame("agent", ["tone: rude"])
    said = [Step("message", "user", "Hi.", 2.0), Step("message", "assistant", "Ho.", 4.0)]
    assert result.trajectory == said


def test_of_a_case_that_never_began_the_reason_is_given_in_place_of_its_ledger():
    never = CaseResult(case_id="a", status="error", error=Problem("system", "No such tool."))
    with pytest.raises(BadLedger, match=r"nothing was recorded before it ended\. No such tool\."):
        _ = never.ledger
    unkept = CaseResult(case_id="a", status="passed", ended="completed")
    with pytest.raises(BadLedger, match="was not kept with its result"):
        _ = unkept.ledger


def test_a_user_and_judges_that_asked_no_model_cost_nothing():
    ledger = Ledger([UserSaid(text="Hi."), AgentSaid(text="Ho.")])
    one, other = (concluded(Case("a", says="Hi."), ledger, SCORES) for _ in range(2))
    assert (one.user_usage, one.user_cost, one.user_models) == (Usage(), 0.0, {})
    assert (one.judge_usage, one.judge_cost, one.judge_models) == (Usage(), 0.0, {})
    assert one.user_models is not other.user_models


GOOD, BAD = Score(1.0, True), Score(0.0, False)
BROKEN, SPOILED = Unmeasured("broke"), Unmeasured("out of character", "user_agent")


@pytest.mark.parametrize(
    "ended, outcomes, status, told",
    [
        ("completed", [GOOD, GOOD], "passed", None),
        ("completed", [GOOD, BAD], "failed", None),
        ("completed", [BAD, GOOD, NotApplicable("no")], "failed", None),
        ("completed", [NotApplicable("no"), GOOD], "passed", None),
        ("completed", [], "error", "nothing was evaluated. Give"),
        ("completed", [NotApplicable("no")], "error", "nothing was evaluated (0: no). Give"),
        ("completed", [GOOD, BROKEN], "error", "1: broke"),
        ("completed", [BROKEN, GOOD, BAD, SPOILED], "error", "0: broke; 3: out of character"),
        ("max_turns", [GOOD], "terminated", None),
        ("max_seconds", [BAD], "terminated", None),
        ("max_turns", [], "terminated", "nothing was evaluated. Give"),
        ("max_turns", [BROKEN], "terminated", "0: broke"),
        ("max_turns", [BROKEN, SPOILED], "error", "0: broke; 1: out of character"),
        ("error", [GOOD], "error", "the model is gone"),
        ("error", [BROKEN], "error", "the model is gone"),
    ],
)
def test_a_verdict_rests_on_how_a_run_ended_and_what_it_scored(ended, outcomes, status, told):
    error = "the model is gone" if ended == "error" else ""
    scores = {str(place): outcome for place, outcome in enumerate(outcomes)}
    result = concluded(Case("a", says="Hi."), run(ended, error=error), scores)
    assert result.status == status
    assert (result.error and result.error.message.startswith(told)) if told else not result.error
