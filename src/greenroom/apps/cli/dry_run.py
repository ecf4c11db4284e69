"""`greenroom eval run --dry-run`: what a run would cost, without running anything."""

from collections.abc import Iterable, Sequence

from greenroom.apps.cli import report_output
from greenroom.apps.cli.event_loop import loaded, to_the_end
from greenroom.apps.cli.exits import put_out, put_out_data
from greenroom.apps.cli.request import Order
from greenroom.cases import EvalSet
from greenroom.ledger.money import money
from greenroom.results import Report
from greenroom.suite.forecasts import Forecast, forecast, sum_of


def show_forecasts(order: Order, cases: EvalSet, baseline: Report | None) -> None:
    """Print what each agent's run would cost; no model is asked, and nothing is written."""
    earlier = [report_output.read_report(name, order.store) for name in order.learnt]
    found = {agent: _forecast(order, agent, cases, baseline, earlier) for agent in order.agents}
    enough = _budget(order, found.values())
    if order.as_json:
        data = [{**one.data(), "agent": agent} for agent, one in found.items()]
        put_out_data({"forecasts": data, "notes": enough})
        return
    for agent, one in found.items():
        if order.quiet:
            put_out(f"{agent}: {one.whole.cells()[0]} calls, {one.whole.cost}")
            continue
        put_out(f"{agent}: {one}" if len(found) > 1 else str(one))
    for line in enough:
        put_out(line)


def _forecast(
    order: Order,
    agent: str,
    cases: EvalSet,
    baseline: Report | None,
    earlier: Sequence[Report],
) -> Forecast:
    settings = order.settings()

    async def found() -> Forecast:
        known = await loaded(agent)
        return await forecast(
            known,
            cases,
            earlier=earlier,
            budget=order.money(()),
            workers=order.workers_for(agent),
            **settings,
            **order.against(agent, baseline),
        )

    return to_the_end(found)


def _budget(order: Order, forecasts: Iterable[Forecast]) -> list[str]:
    """Whether the budget would be enough."""
    if order.budget is None:
        return []
    cost = sum_of(one.whole for one in forecasts).cost
    if cost.at_least > order.budget:
        return [f"the budget of ${money(order.budget)} would not be enough"]
    if cost.usd is None:
        return [f"whether the budget of ${money(order.budget)} would be enough is unknown"]
    return [f"the budget of ${money(order.budget)} would be enough"]
