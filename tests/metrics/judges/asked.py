"""Scripted judges and the runs they judge."""

import json
import re
from typing import Any

from greenroom import score
from greenroom.cases import Case, Expect
from greenroom.ledger import Ledger
from greenroom.models import ModelRequest, Scripted
from metrics.runs import agent, run, tool, user

CASE = Case(
    "order",
    says="Where is order 7?",
    expect=Expect(reference="It is in Lyon."),
    metadata={"carrier": "ACME"},
)


def order(text: str = "It is in Lyon.", case: Case = CASE) -> Ledger:
    return run(
        user("Where is order 7?"),
        tool("track", order=7, result={"place": "Lyon"}),
        agent(text),
        case=case,
    )


def yes(key: str = "verdict", why: str = "Fine.") -> dict[str, Any]:
    return {"reasoning": why, key: True}


def no(key: str = "verdict", why: str = "Not so.") -> dict[str, Any]:
    return {"reasoning": why, key: False}


class Asked:
    """A model that answers in succession and remembers what it was asked."""

    name = "asked"

    def __init__(self, *answers: Any, then: Any = None) -> None:
        self.requests: list[ModelRequest] = []
        self._script = Scripted(*answers, then=then, name="asked")

    async def respond(self, request: ModelRequest, on_delta: Any = None) -> Any:
        self.requests.append(request)
        return await self._script.respond(request, on_delta)

    @property
    def calls(self) -> int:
        return len(self.requests)


def evidence_in(request: ModelRequest) -> dict[str, Any]:
    """The record a request holds, as a reader of it would find it."""
    found = re.search(r"<<<EVIDENCE (\w+)>>>\n(.*)\n<<<END \1>>>", request.last, re.DOTALL)
    assert found
    return json.loads(found[2])


async def measured(metric: Any, ledger: Ledger | None = None, **options: Any) -> Any:
    """What one metric makes of a run."""
    outcomes = await score(order() if ledger is None else ledger, [metric], **options)
    return next(o for name, o in outcomes.items() if name == metric.name)
