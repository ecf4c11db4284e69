"""The rules of flows, which put other nodes together."""

from typing import cast

from greenroom.agents.approvals import Approved
from greenroom.agents.contracts.access import Read, decider_reads, question_places
from greenroom.agents.contracts.effects import Known, Outcome, either, in_turn
from greenroom.agents.contracts.places import Places
from greenroom.agents.contracts.rule import Outcomes, Reads, Rule
from greenroom.agents.flow import Loop, Route
from greenroom.agents.graph import Node


class ParallelRule(Rule):
    """Branches begin with the same state, do not see each other, and are merged in their order."""

    def outcome(self, node: Node, parts: Outcomes, places: Places) -> Outcome:  # noqa: ARG002
        """All that the branches did; if one fails, nothing is merged."""
        return Outcome(in_turn(part.done.merged for part in parts.values()))

    def entries(self, node: Node, known: Known, parts: Outcomes) -> dict[str, Known]:  # noqa: ARG002
        """The same for all."""
        return dict.fromkeys(node.children, known)


class LoopRule(Rule):
    """The body runs once or more."""

    def outcome(self, node: Node, parts: Outcomes, places: Places) -> Outcome:  # noqa: ARG002
        """What one round does; one that fails comes after any number of rounds."""
        body = parts["body"]
        return Outcome(body.done, body.done.perhaps.then(body.failed).perhaps)

    def entries(self, node: Node, known: Known, parts: Outcomes) -> dict[str, Known]:  # noqa: ARG002
        """A round begins behind nothing, or behind another one."""
        return {"body": known.repeated(parts["body"].done)}

    def reads(self, node: Node, known: Known, parts: Outcomes, places: Places) -> Reads:  # noqa: ARG002
        """What its `until` asks about, after each round."""
        body = parts["body"].done
        for read in decider_reads(cast("Loop", node.flow).until, "`until`"):
            yield read, known.repeated(body).after(body)


class RouteRule(Rule):
    """One of the branches runs."""

    def outcome(self, node: Node, parts: Outcomes, places: Places) -> Outcome:  # noqa: ARG002
        """Sure is what every branch does."""
        return Outcome(
            either(part.done for part in parts.values()),
            either(part.failed for part in parts.values()).perhaps,
        )

    def entries(self, node: Node, known: Known, parts: Outcomes) -> dict[str, Known]:  # noqa: ARG002
        """The same for all, and none is sure to run."""
        return dict.fromkeys(node.children, known.unsure())

    def reads(self, node: Node, known: Known, parts: Outcomes, places: Places) -> Reads:  # noqa: ARG002
        """The place that decides; without it the run fails, unless there is an `otherwise`."""
        route = cast("Route", node.flow)
        for read in decider_reads(route.on, may_miss=bool(route.otherwise)):
            yield read, known


class ApprovedRule(RouteRule):
    """What is guarded, or what happens instead; neither is sure to run."""

    def reads(self, node: Node, known: Known, parts: Outcomes, places: Places) -> Reads:  # noqa: ARG002
        """What decides whether it is asked, which need not be there, and what the question mentions."""
        flow = cast("Approved", node.flow)
        for read in decider_reads(flow.when, "`when`"):
            yield read, known
        for place in question_places(flow):
            yield Read(place, "the question"), known if flow.when is None else known.unsure()
