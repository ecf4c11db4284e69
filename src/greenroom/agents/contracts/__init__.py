"""Contracts: problems of an agent, found before its first model call.

The walk over the graph knows for every place in the state whether it has surely or possibly been written
when a node reads it. Each check is a plug-in of the group `greenroom.checks`.
"""

from greenroom.agents.contracts.dataflow import Edge, data_edges
from greenroom.agents.contracts.issues import Contracts, Issue, Severity
from greenroom.agents.contracts.registry import Check, check, forget_check, register_check
from greenroom.agents.contracts.walk import Given

__all__ = [
    "Check",
    "Contracts",
    "Edge",
    "Given",
    "Issue",
    "Severity",
    "check",
    "data_edges",
    "forget_check",
    "register_check",
]
