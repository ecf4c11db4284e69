"""`greenroom agent graph`: what an agent consists of, as a picture."""

from greenroom.agents.mermaid import mermaid
from greenroom.apps.cli.event_loop import loaded, to_the_end
from greenroom.apps.cli.exits import PASSED, put_out, telling
from greenroom.backends.registry import backend_for


def draw(agent: str, verbose: bool) -> int:
    """Print the chart of the agent that a reference names."""
    with telling(verbose):
        found = to_the_end(lambda: loaded(agent, None, verbose))
        put_out(mermaid(backend_for(found).snapshot))
    return PASSED
