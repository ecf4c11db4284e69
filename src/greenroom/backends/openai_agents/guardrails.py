"""Guardrails that stop an agent: the framework raises an error, and a case may expect it."""

# The framework is only partly typed.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false

from typing import Any

from agents.exceptions import (
    InputGuardrailTripwireTriggered,
    OutputGuardrailTripwireTriggered,
    ToolInputGuardrailTripwireTriggered,
    ToolOutputGuardrailTripwireTriggered,
)

from greenroom.backends.foreign import jsonable
from greenroom.backends.invocation import Invocation
from greenroom.errors import GuardrailTripped
from greenroom.ledger.events import STOPPED, Noted

TRIPPED = (
    InputGuardrailTripwireTriggered,
    OutputGuardrailTripwireTriggered,
    ToolInputGuardrailTripwireTriggered,
    ToolOutputGuardrailTripwireTriggered,
)


def stopped_by(error: Any, invocation: Invocation) -> GuardrailTripped:
    """The error for a triggered guardrail; the ledger notes which one it was, and what it said."""
    result: Any = getattr(error, "guardrail_result", None)
    guardrail: Any = getattr(error, "guardrail", None) or getattr(result, "guardrail", None)
    name = str(guardrail.get_name())
    info: Any = getattr(getattr(error, "output", None) or result.output, "output_info", None)
    data = {"by": "guardrail", "name": name, "info": jsonable(info)}
    invocation.world.record(Noted(path=invocation.root, name=STOPPED, data=data))
    return GuardrailTripped(
        f"the guardrail {name!r} stopped the agent. If it should, expect that: "
        f'Expect(stopped_by="guardrail").'
    )
