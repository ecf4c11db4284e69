"""What an agent will cost: its traffic, the estimate, and the estimate compared with real trials."""

from greenroom.agents.costs.estimates import Estimate, NodeEstimate, estimate
from greenroom.agents.costs.money import Amount
from greenroom.agents.costs.tables import Beside, BesideNode
from greenroom.agents.costs.traffic import Traffic

__all__ = [
    "Amount",
    "Beside",
    "BesideNode",
    "Estimate",
    "NodeEstimate",
    "Traffic",
    "estimate",
]
