"""Estimates as tables to read, alone and compared with real trials."""

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from greenroom.agents.costs.money import Amount, total
from greenroom.agents.costs.seen import checked_ledger
from greenroom.errors import BadInput
from greenroom.ledger.ledger import Ledger
from greenroom.ledger.plain import Json
from greenroom.ledger.questions import spending_by_node

if TYPE_CHECKING:
    from greenroom.agents.costs.estimates import Estimate, NodeEstimate

_NUMBERS_FROM = 2
"""The first columns are words, the others are numbers."""


def estimate_table(estimate: "Estimate") -> str:
    """The estimate by node, in total and per day, with what is unknown or guessed."""
    rows = [
        [
            node.node,
            ", ".join(node.models),
            f"{node.visits:.4g}",
            f"{node.calls:.4g}",
            _tokens(node.tokens_in),
            _tokens(node.tokens_out),
            str(node.cost),
        ]
        for node in estimate.nodes.values()
    ]
    words = ["node", "model", "visits", "calls", "tokens in", "tokens out", "cost"]
    tokens = [_tokens(estimate.tokens_in), _tokens(estimate.tokens_out)]
    whole = ["one conversation", "", "", f"{estimate.calls:.4g}", *tokens, str(estimate.cost)]
    lines = aligned([words, *rows, whole])
    if (many := estimate.conversations_per_day) is not None:
        per_day = Amount(estimate.at_least * many, estimate.unknown)
        lines.append(f"per day ({many:,.10g} conversations): {per_day}")
    if estimate.unknown:
        lines.append(f"not known: {', '.join(estimate.unknown)}")
    if estimate.trials_seen:
        lines.append(f"trials learnt from: {estimate.trials_seen:,}")
    lines += [f"assumed: {guess}" for guess in estimate.guesses]
    return "\n".join(lines)


def _tokens(number: float | None) -> str:
    return "unknown" if number is None else f"{number:,.0f}"


def aligned(rows: Sequence[Sequence[str]], numbers_from: int = _NUMBERS_FROM) -> list[str]:
    """Rows of a table, each as a line; numbers are aligned to the right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines: list[str] = []
    for row in rows:
        cells = [
            cell.rjust(width) if place >= numbers_from else cell.ljust(width)
            for place, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        lines.append("  ".join(cells).rstrip())
    return lines


class BesideNode(Struct, frozen=True, kw_only=True):
    """One node's estimate compared with what trials really cost, each for one conversation."""

    node: str
    calls: float
    actual_calls: float
    cost: Amount
    actual: Amount

    @property
    def difference(self) -> float | None:
        """How far the estimate is above what was paid, as a share of that; None if either is unknown."""
        if self.cost.usd is None or self.actual.usd is None:
            return None
        if self.cost.usd == self.actual.usd:
            return 0.0
        return self.cost.usd / self.actual.usd - 1 if self.actual.usd else None


class Beside(Struct, frozen=True):
    """An estimate compared with trials: by node, and in total."""

    nodes: Mapping[str, BesideNode]
    total: BesideNode
    trials: int

    def data(self) -> dict[str, Any]:
        """All of it as JSON."""
        return {
            "trials": self.trials,
            "nodes": [_data(node) for node in self.nodes.values()],
            "total": _data(self.total),
        }

    def __str__(self) -> str:
        words = ["node", "calls", "actual", "cost", "actual", "difference"]
        rows = [_row(node) for node in (*self.nodes.values(), self.total)]
        return "\n".join([*aligned([words, *rows], 1), f"trials compared: {self.trials:,}"])


def _data(row: BesideNode) -> dict[str, Json]:
    return {
        "node": row.node,
        "calls": row.calls,
        "actual_calls": row.actual_calls,
        "usd": row.cost.usd,
        "actual_usd": row.actual.usd,
        "difference": row.difference,
    }


def _row(row: BesideNode) -> list[str]:
    by = row.difference
    return [
        row.node or "unknown node",
        f"{row.calls:.4g}",
        f"{row.actual_calls:.4g}",
        str(row.cost),
        str(row.actual),
        "unknown" if by is None else f"{by:+.1%}",
    ]


def beside(estimated: "Mapping[str, NodeEstimate]", ledgers: Iterable[Ledger]) -> Beside:
    """These estimates compared with what the agent of these ledgers really cost."""
    trials, calls, paid = 0, dict[str, int](), dict[str, list[Amount]]()
    for ledger in ledgers:
        trials += 1
        for node, spent in spending_by_node(checked_ledger(ledger)).items():
            calls[node] = calls.get(node, 0) + spent.calls
            unknown = () if spent.cost is not None else (f"the cost of {node or 'some calls'}",)
            paid.setdefault(node, []).append(Amount(spent.known_cost, unknown))
    if not trials:
        raise BadInput("no trial was given to compare the estimate with; give one ledger or more.")
    rows: dict[str, BesideNode] = {}
    for node in {**estimated, **calls}:
        actual, guess = total(paid.get(node, ())), estimated.get(node)
        rows[node] = BesideNode(
            node=node,
            calls=0.0 if guess is None else guess.calls,
            actual_calls=calls.get(node, 0) / trials,
            cost=Amount() if guess is None else guess.cost,
            actual=Amount(actual.at_least / trials, actual.unknown),
        )
    whole = BesideNode(
        node="one conversation",
        calls=sum(row.calls for row in rows.values()),
        actual_calls=sum(row.actual_calls for row in rows.values()),
        cost=total(row.cost for row in rows.values()),
        actual=total(row.actual for row in rows.values()),
    )
    return Beside(rows, whole, trials)
