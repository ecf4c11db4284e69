"""`greenroom eval mutants`: whether worse versions of an agent fail its cases."""

from greenroom.apps.cli.event_loop import Signals, loaded, to_the_end
from greenroom.apps.cli.exits import (
    ENDINGS,
    GATE_MISSED,
    PASSED,
    RUN_ERRORS,
    aside,
    put_out,
    put_out_data,
)
from greenroom.apps.cli.progress import Watching
from greenroom.apps.cli.report_output import read_report
from greenroom.apps.cli.request import Order, chosen
from greenroom.ledger.redaction import redactor
from greenroom.reports.terminal import Terminal
from greenroom.results.words import number_of
from greenroom.suite.cancel import Cancel
from greenroom.suite.evaluation import on_own_loop
from greenroom.suite.mutation.mutation_results import MutationEstimate, MutationScore
from greenroom.suite.mutation.score import mutation_score

_PER_RUN = ("resume", "min_pass_rate", "keep_ledgers")
"""Settings of a single evaluation, which an order has too."""


def show_mutants(
    order: Order, *, run: str, rules: bool, no_tools: bool, min_score: float | None
) -> int:
    """Run the mutants, print their results, and compare the score with the minimum.

    After a signal, unfinished mutants are left out; a second signal ends the process at once.
    """
    cancel = Cancel()
    cases = chosen(order, order.aside).evalset
    settings = {name: v for name, v in order.settings().items() if name not in _PER_RUN}
    earlier = read_report(run, order.store) if run else None
    agent = to_the_end(lambda: loaded(order.agent))
    watching = Watching(Terminal(), 0 if run else len(cases), shown=order.talks)

    def estimated(found: MutationEstimate) -> None:
        watching.total += found.trials
        order.aside(f"{found}")

    async def played() -> MutationScore:
        return await mutation_score(
            agent,
            cases,
            run=earlier,
            tools=not no_tools,
            rules=rules,
            on_estimate=estimated,
            budget=order.money(()),
            on_case_complete=watching.take,
            cancel=cancel,
            **settings,
        )

    with watching, Signals(cancel, _say_how_it_ended, lambda: "", watching.stop) as signals:
        score = on_own_loop(played)
    if order.as_json:
        put_out_data(score.data())
    else:
        put_out(redactor().text(str(score)))
    if signals.code:
        _say_how_it_ended(signals.code)
        if score.run and not score.broken:
            aside(f"--run {score.run} continues without running the agent itself again")
        return signals.code
    return _code(score, min_score)


def _say_how_it_ended(code: int) -> None:
    aside(f"greenroom: {ENDINGS[code]}")


def _code(score: MutationScore, min_score: float | None) -> int:
    if score.broken or score.score is None:
        aside("greenroom: a case broke with the agent itself, or no mutant has a verdict")
        return RUN_ERRORS
    if score.unfinished:
        aside(
            f"greenroom: {number_of(len(score.unfinished), 'mutant')} left without a verdict, so the score may "
            f"change: raise --budget, or try again when the model can be reached"
        )
        return RUN_ERRORS
    if min_score is not None and score.score < min_score:
        aside(f"greenroom: the mutation score {score.score:.2f} is below {min_score:g}")
        return GATE_MISSED
    return PASSED
