"""Remote agents: secrets that would be sent over the network unencrypted."""

from collections.abc import Iterator
from urllib.parse import urlsplit

from greenroom.agents.contracts.issues import Issue
from greenroom.agents.contracts.walk import Given
from greenroom.agents.graph import Graph
from greenroom.agents.remote import Remote

_THIS_MACHINE = ("localhost", "127.0.0.1", "::1")


def check_remotes(graph: Graph, schema: object, given: Given) -> Iterator[Issue]:  # noqa: ARG001
    """Tokens and keys that are sent to another machine without encryption."""
    for node in graph.nodes():
        if not isinstance(node.flow, Remote):
            continue
        address, parts = node.flow.address, urlsplit(node.flow.address.url)
        if parts.scheme == "http" and address.headers and parts.hostname not in _THIS_MACHINE:
            yield Issue(
                "OpenSecret",
                "warning",
                node.id,
                "",
                f"sends {', '.join(address.headers.values())} to {parts.netloc} without encryption.",
                "Give its address with https://.",
            )
