"""One thing that keeps the gate shut."""

from typing import Literal

from greenroom.ledger.records import record

Kind = Literal[
    "errors", "pass_rate", "regression", "unclear", "removed", "incomparable", "skipped", "cost"
]


@record
class Missed:
    """One thing that keeps the gate shut."""

    kind: Kind
    why: str
