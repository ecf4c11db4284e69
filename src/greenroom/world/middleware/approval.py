"""Tools that run only if the user approves."""

from collections.abc import Callable

from greenroom.errors import BadInput
from greenroom.ledger.plain import Json, is_object
from greenroom.world.middleware.current import current_run
from greenroom.world.middleware.protocol import Middleware
from greenroom.world.world import Pending, Returned, ToolRequest


def tool_approval(*tools: str, when: Callable[[ToolRequest], bool] | None = None) -> "ToolApproval":
    """Asks the user before one of these tools is called, if `when(call)` holds.

    The user answers true or false, or {"approved": false, "reason": "..."}, under the name of the
    tool. A denied call is an error that the agent sees. Only Greenroom's own agents can wait here.
    """
    return ToolApproval(tools, when)


class ToolApproval(Middleware):
    """The tools to ask about."""

    name = "tool_approval"
    needs = ("before_tool", "approvals")

    def __init__(self, tools: tuple[str, ...], when: Callable[[ToolRequest], bool] | None) -> None:
        if not tools or not all(isinstance(tool, str) for tool in tools):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise BadInput('tool_approval() names no tool; write tool_approval("refund").')
        self.approves = frozenset(tools)
        self._when = when

    async def before_tool(self, call: ToolRequest) -> Json | Returned | Pending:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Continue if the user said yes, return an error if they said no, else ask."""
        if call.tool not in self.approves or (self._when is not None and not self._when(call)):
            return None
        if call.visits:
            return Returned(error=f"{call.tool} needs an approval, and no user can be asked here")
        asked = approval_id(call.id)
        answers = current_run().ledger.index_of().answers
        if asked not in answers:
            return Pending(call.id, asked)
        said = answers[asked].value
        if said is True or (is_object(said) and said.get("approved") is True):
            return None
        reason = said.get("reason") if is_object(said) else ""
        return Returned(error=f"the user did not approve{f': {reason}' if reason else ''}")


def approval_id(call_id: str) -> str:
    """The id of the wait for an approval; not the call's own id, since the approval is not the call's answer."""
    return f"approve-{call_id}"
