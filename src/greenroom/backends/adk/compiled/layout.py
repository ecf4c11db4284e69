"""The names of a flow's parts in google-adk, and how to get from them back to our paths."""

import re
from collections import Counter

from msgspec import Struct, field

from greenroom.agents.graph import Node

_NOT_IN_NAMES = re.compile(r"\W")
_TAKEN = ("user", "START")


class Hop(Struct, frozen=True):
    """How a node's name in google-adk appears in our paths; `{run}` is the number of its run."""

    joint: str
    segment: str
    counts: bool = False
    """Whether it is entered again and again at one place, as the agents of a team are."""

    def step(self, run: str) -> str:
        """The step that it adds to a path."""
        number = "".join(filter(str.isdigit, run))
        again = f"#{number}" if self.counts and number != "1" else ""
        return f"{self.joint.replace('{run}', number)}/{self.segment}{again}"


class Layout(Struct, eq=False):
    """The names that a compiled flow has taken, each once in the whole app."""

    hops: dict[str, Hop] = field(default_factory=dict)
    taken: Counter[str] = field(default_factory=Counter)

    def name(self, wanted: str) -> str:
        """A name for a node; the framework requires unique identifiers."""
        base = _NOT_IN_NAMES.sub("_", wanted)
        while True:
            self.taken[base] += 1
            count = self.taken[base]
            name = base if count == 1 and base not in _TAKEN else f"{base}_{count}"
            if name == base or not self.taken[name]:
                self.taken[name] = max(self.taken[name], 1)
                return name

    def place(self, node: Node, joint: str, *, wanted: str = "", counts: bool = False) -> str:
        """The name of the node that runs this part; its path is found by it."""
        name = self.name(wanted or node.segment)
        self.hops[name] = Hop(joint, node.segment, counts)
        return name

    def path_of(self, adk_path: str, root: str) -> str:
        """The path of a node in a ledger: `app@1/loop@1/clerk@3` is `@1/loop#3/clerk`."""
        path = root
        for part in adk_path.split("/"):
            name, _, run = part.partition("@")
            if hop := self.hops.get(name):
                path += hop.step(run)
        return path
