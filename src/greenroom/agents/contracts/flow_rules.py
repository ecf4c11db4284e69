"""The rules of flows, which put other nodes together."""

from typing import cast

from greenroom.agents.approvals import Approved
from greenroom.agents.contracts.access import Read, decider_reads, question_places, read_of
from greenroom.agents.contracts.effects import NO_EFFECT, Effect, Known, Outcome, either, in_turn
from greenroom.agents.contracts.places import Places
from greenroom.agents.contracts.rule import Outcomes, Reads, Rule
from greenroom.agents.flow import Loop, Route
from greenroom.agents.forks import MapOver
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


class RaceRule(ParallelRule):
    """Branches begin with the same state; of the winner's changes all are merged, of the others' none."""

    def outcome(self, node: Node, parts: Outcomes, places: Places) -> Outcome:  # noqa: ARG002
        """Sure is what every branch does, for any may win; if all fail, nothing is merged."""
        return Outcome(either(part.done for part in parts.values()))

    def entries(self, node: Node, known: Known, parts: Outcomes) -> dict[str, Known]:  # noqa: ARG002
        """The same for all; one that fails has lost, and that is no failure of the run."""
        return dict.fromkeys(node.children, known.unsure())


class MapRule(Rule):
    """The body runs for each item of a list, which may be empty; items do not see each other."""

    def outcome(self, node: Node, parts: Outcomes, places: Places) -> Outcome:  # noqa: ARG002
        """Nothing is sure; if an item fails, nothing is merged."""
        return Outcome(parts["body"].done.perhaps)

    def entries(self, node: Node, known: Known, parts: Outcomes) -> dict[str, Known]:  # noqa: ARG002
        """The same for all items."""
        return {"body": known.unsure()}

    def reads(self, node: Node, known: Known, parts: Outcomes, places: Places) -> Reads:  # noqa: ARG002
        """The place of the list, if it is in the state."""
        for place in cast("MapOver", node.flow).reads:
            yield read_of(place, "the list"), known


class FallbackRule(Rule):
    """The first part that does not fail; what those before it have done stays."""

    def outcome(self, node: Node, parts: Outcomes, places: Places) -> Outcome:  # noqa: ARG002
        """Sure is what every part does that may be the one."""
        failed, done = NO_EFFECT, list[Effect]()
        for part in parts.values():
            done.append(failed.then(part.done))
            failed = failed.then(part.failed)
        return Outcome(either(done), failed)

    def entries(self, node: Node, known: Known, parts: Outcomes) -> dict[str, Known]:
        """The first begins at once, each other one behind those that failed."""
        found: dict[str, Known] = {}
        for key in node.children:
            found[key] = known
            known = known.after(parts[key].failed).unsure()
        return found


class TimeoutRule(Rule):
    """The body as it is, unless it is cut."""

    def outcome(self, node: Node, parts: Outcomes, places: Places) -> Outcome:  # noqa: ARG002
        """It may be cut at any moment, the last one included."""
        body = parts["body"]
        return Outcome(body.done, either([body.failed, body.done]).perhaps)
