"""What graphs inside a case remember: for their own trial, whatever saver their author gave them.

A saver or store of the author's would be shared between trials, and may write to a disk or a server.
"""

# The framework is half typed.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from typing import Any
from weakref import WeakKeyDictionary

from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.store.memory import InMemoryStore

from greenroom.backends.langgraph.memory import Memory
from greenroom.world.presence import Host, model_host

_kept: "WeakKeyDictionary[Host, dict[int, tuple[Any, Any]]]" = WeakKeyDictionary()


def with_own_memory(graph: Any) -> Any:
    """The graph as it is where nobody rehearses; else a copy that remembers for this trial alone."""
    saver, store, cache = graph.checkpointer, graph.store, graph.cache
    is_saving = isinstance(saver, BaseCheckpointSaver)
    if isinstance(saver, Memory) or not (is_saving or store is not None or cache is not None):
        return graph
    host = model_host()
    if host is None:
        return graph
    kept = _kept.setdefault(host, {})
    twin: Any = object.__new__(type(graph))
    vars(twin).update(vars(graph), cache=None)
    if is_saving:
        twin.checkpointer = _instead(kept, saver, InMemorySaver)
    if store is not None:
        twin.store = _instead(kept, store, InMemoryStore)
    return twin


def _instead(kept: dict[int, tuple[Any, Any]], real: Any, make: Any) -> Any:
    """What stands for the author's own in this trial; one that does is left as it is."""
    if any(real is own for _, own in kept.values()):
        return real
    # Kept together, so that the identity stays that of the one it was taken from.
    return kept.setdefault(id(real), (real, make()))[1]
