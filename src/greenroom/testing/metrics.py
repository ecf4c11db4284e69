"""The suite for authors of metrics: a metric that passes it can be trusted with a verdict.

    from greenroom.testing import MetricContract, rehearsed

    class TestPolite(MetricContract):
        def metric(self):
            return polite()

        def good(self):
            return rehearsed(Case("kind", says="Hi"), Agent("a", model=Scripted("Thank you!")))

        def bad(self):
            return rehearsed(Case("rude", says="Hi"), Agent("a", model=Scripted("No.")))

The tests are plain functions, so no plug-in for async tests is needed.
"""

import asyncio
import inspect
from typing import Any, get_args

from msgspec import structs

from greenroom.cases.case import Case
from greenroom.cases.data import case_data
from greenroom.cases.parts import Metric
from greenroom.cases.scores import Outcome, Score, Unmeasured
from greenroom.ledger.events import Event, Unseen
from greenroom.ledger.ledger import Ledger
from greenroom.ledger.plain import plain
from greenroom.metrics.definition import OUTCOMES, as_metric, as_outcome
from greenroom.metrics.scores import await_unguarded, measure_trial
from greenroom.simulation.conversation import simulate
from greenroom.suite.options import METRIC_ATTEMPTS, METRIC_SECONDS
from greenroom.testing.unseen import unseen_in
from greenroom.world.live import LiveWorld

_AT_ONCE = 16

Sample = tuple[Case, Ledger]
"""A case and the ledger of a trial of it."""


def rehearsed(case: Case, agent: Any) -> Sample:
    """A case and its trial with an agent; a scripted agent is enough."""
    return case, asyncio.run(simulate(case, agent))


class MetricContract:
    """Subclass it with a `metric`, a `good` and a `bad` trial, and pytest collects the suite for it."""

    def metric(self) -> Any:
        """A new metric: anything that `metrics=[...]` accepts."""
        raise NotImplementedError("give the metric to test")

    def good(self) -> Sample:
        """A case and a trial of it that the metric passes."""
        raise NotImplementedError("give a case and a run that passes")

    def bad(self) -> Sample:
        """A case and a trial of it that the metric does not pass."""
        raise NotImplementedError("give a case and a run that does not pass")

    def test_it_passes_a_good_run_and_fails_a_bad_one(self) -> None:
        """A metric that cannot fail measures nothing."""
        good, bad = self._outcome(*self.good()), self._outcome(*self.bad())
        assert isinstance(good, Score), f"the good run has no score: {good}"
        assert isinstance(bad, Score), f"the bad run has no score: {bad}"
        assert (good.passed, bad.passed) == (True, False), (good, bad)

    def test_it_has_a_name_that_stays(self) -> None:
        """Results of two runs are compared by it."""
        first, second = as_metric(self.metric()), as_metric(self.metric())
        assert isinstance(first.name, str), first.name
        assert first.name.strip(), "a metric needs a name"
        assert first.name == second.name, "the name must not differ from one to the next"

    def test_the_same_run_has_the_same_outcome(self) -> None:
        """Even if it is measured again, by another metric object, or from a file."""
        for case, ledger in (self.good(), self.bad()):
            metric = as_metric(self.metric())
            first = self._outcome(case, ledger, metric)
            assert self._outcome(case, ledger, metric) == first, "it was measured twice"
            assert self._outcome(case, ledger) == first, "it was measured by a new metric object"
            again = Ledger.loads(ledger.dumps())
            assert self._outcome(case, again) == first, "it was written down and read again"

    def test_runs_measured_at_once_do_not_disturb_each_other(self) -> None:
        """One metric object measures many trials."""
        metric, samples = as_metric(self.metric()), [self.good(), self.bad()] * (_AT_ONCE // 2)
        alone = [self._outcome(*sample) for sample in samples]

        async def at_once() -> list[Outcome]:
            return await asyncio.gather(*[_measured(metric, *sample) for sample in samples])

        assert asyncio.run(at_once()) == alone

    def test_it_leaves_the_case_and_the_run_as_they_were(self) -> None:
        """Other metrics measure the same trial."""
        for case, ledger in (self.good(), self.bad()):
            before = case_data(case), ledger.dumps()
            self._outcome(case, ledger)
            assert (case_data(case), ledger.dumps()) == before

    def test_a_run_that_lacks_something_is_no_error_of_its_own(self) -> None:
        """Whatever is missing, it returns a score or says why there is none."""
        case, ledger = self.good()
        for cut in range(1, len(ledger)):
            for part in (ledger.events[:cut], _without(ledger, cut)):
                returned = asyncio.run(_called(as_metric(self.metric()), case, Ledger(part)))
                assert not isinstance(returned, BaseException), f"event {cut}: {returned!r}"
                found = as_outcome(returned, "it")
                meant = isinstance(returned, OUTCOMES) or not isinstance(found, Unmeasured)
                assert meant, f"event {cut}: {found}"
                if isinstance(found, Score):
                    assert 0 <= found.value <= 1, f"event {cut}: {found.value} is not from 0 to 1"
                    plain(found.details, "details")

    def test_what_could_not_be_seen_changes_no_verdict(self) -> None:
        """Without unseen parts the outcome is the same, or there is none.

        A metric declares what it reads with `needs = {"tools", "words"}`; without that it needs everything.
        """
        for case, ledger in (self.good(), self.bad()):
            for name in get_args(Unseen):
                seen, unseen = (
                    self._outcome(case, ledger),
                    self._outcome(case, unseen_in(ledger, [name])),
                )
                if isinstance(unseen, Score):
                    assert isinstance(seen, Score), f"a score comes only of unseen {name}"
                    assert (unseen.value, unseen.passed) == (seen.value, seen.passed), (
                        f"{name} could not be seen, but it measures anyway"
                    )

    def _outcome(self, case: Case, ledger: Ledger, metric: Metric | None = None) -> Outcome:
        return asyncio.run(_measured(metric or as_metric(self.metric()), case, ledger))


async def _measured(metric: Metric, case: Case, ledger: Ledger) -> Outcome:
    """The outcome, measured as in an evaluation."""
    world = LiveWorld(Ledger())
    return (
        await measure_trial(
            ledger,
            case,
            {"it": metric},
            world,
            await_unguarded,
            METRIC_SECONDS,
            attempts=METRIC_ATTEMPTS,
        )
    )["it"]


async def _called(metric: Metric, case: Case, ledger: Ledger) -> object:
    """What the metric itself returns or raises."""
    try:
        found: object = metric.measure(case, ledger, LiveWorld(Ledger()))
        return await found if inspect.isawaitable(found) else found
    except Exception as error:  # noqa: BLE001 - the author's code
        return error


def _without(ledger: Ledger, at: int) -> list[Event]:
    return [structs.replace(event, seq=-1) for event in ledger if event.seq != at]
