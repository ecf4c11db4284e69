"""When a critical metric falls short, the others are not measured, and no judge is paid."""

from functools import partial
from typing import Any

import pytest

from greenroom import Agent, Case, Scripted, evaluate, score, simulate, step
from greenroom.cases import Criterion
from greenroom.cases.config import read_config
from greenroom.cases.criteria import criterion_data, criterion_from
from greenroom.cases.scores import NotApplicable, Score, Unmeasured
from greenroom.errors import BadMetric
from greenroom.metrics import as_metric, metric
from greenroom.metrics.definition import is_critical

AGENT = step(lambda: "Done.")


class Gate:
    """A metric of one's own that calls itself critical."""

    name = "gate"
    critical = True

    def __init__(self, outcome: Any) -> None:
        self.outcome = outcome

    def measure(self, case: Case, ledger: Any, world: Any) -> Any:
        if isinstance(self.outcome, Exception):
            raise self.outcome
        return self.outcome


async def measured(*metrics: Any) -> dict[str, Any]:
    ledger = await simulate(Case("c", "Hi"), AGENT)
    return await score(ledger, metrics)


asked: list[str] = []


def dear(case: Case) -> bool:
    asked.append(case.id)
    return True


@pytest.mark.parametrize("outcome", [Score(0.0), Unmeasured("blind"), ValueError("broken")])
async def test_nothing_is_asked_once_a_critical_metric_fell_short(outcome):
    asked.clear()
    found = await measured(dear, Gate(outcome))
    assert list(found) == ["dear", "gate"]  # the order of asking, not of measuring
    assert found["dear"] == NotApplicable("not measured: 'gate', which is critical, failed")
    assert asked == []


@pytest.mark.parametrize("outcome", [Score(1.0), NotApplicable("nothing expected")])
async def test_a_critical_metric_that_passes_or_does_not_apply_stops_nobody(outcome):
    found = await measured(dear, Gate(outcome))
    assert found["dear"].passed
    assert type(found["gate"]) is type(outcome)


def refuses(case: Case) -> bool:
    return False


vars(refuses)["critical"] = True


class Refusing:
    """An evaluator that calls itself critical."""

    name = "refuses"
    critical = True

    def evaluate(self, case: Case) -> bool:
        return False


@pytest.mark.parametrize(
    "gate",
    [refuses, metric(refuses), partial(refuses), Refusing, Refusing(), metric(Refusing)],
    ids=["function", "@metric", "partial", "class", "object", "@metric class"],
)
async def test_functions_and_evaluators_may_call_themselves_critical(gate):
    asked.clear()
    found = await measured(dear, gate)
    assert not found["refuses"].passed
    assert found["dear"] == NotApplicable("not measured: 'refuses', which is critical, failed")
    assert asked == []


def test_a_name_given_later_leaves_a_metric_critical():
    assert is_critical(metric(metric(refuses), name="other"))
    assert not is_critical(as_metric(dear))


async def test_a_metric_that_is_not_critical_stops_nobody():
    found = await measured(lambda_fails, dear)
    assert not found["lambda_fails"].passed
    assert found["dear"].passed


def lambda_fails(case: Case) -> bool:
    return False


@pytest.mark.parametrize("critical, asks", [(True, 0), (False, 2)])
async def test_a_criterion_may_be_critical_and_saves_the_judge(critical, asks):
    asked.clear()
    gate = Criterion("contains", options={"texts": ["nowhere"]}, critical=critical)
    cases = [Case(f"c{n}", "Hi", metrics=[dear, gate]) for n in range(2)]
    report = await evaluate(Agent("clerk", model=Scripted("Done.")), cases)
    assert [result.status for result in report] == ["failed", "failed"]
    assert len(asked) == asks


@pytest.mark.parametrize(
    "criterion",
    [Criterion("m", critical=True), Criterion("m", threshold=0.5, critical=True), Criterion("m")],
)
def test_a_critical_criterion_survives_being_written_down(criterion):
    assert criterion_from(criterion_data(criterion), "here") == criterion


def test_a_config_may_say_so_in_any_of_its_shapes(tmp_path):
    path = tmp_path / "config.json"
    path.write_text('{"criteria": {"contains": {"threshold": 0.5, "critical": true}}}')
    [criterion] = read_config(path).criteria
    assert criterion == Criterion("contains", threshold=0.5, critical=True)


def test_critical_is_yes_or_no():
    with pytest.raises(BadMetric, match="critical='very'"):
        criterion_from({"criterion": "m", "critical": "very"}, "here")


@pytest.mark.parametrize("given", ["no", 1, None])
def test_critical_is_true_or_false(given: object):
    gate = Gate(Score(1.0))
    gate.critical = given  # pyright: ignore[reportAttributeAccessIssue]
    with pytest.raises(BadMetric, match=r"'gate' has critical=.*give True or False"):
        as_metric(gate)
