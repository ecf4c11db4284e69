"""A graph's memory: its newest checkpoints, kept by Greenroom and recorded as JSON.

The author's own saver is never used: it would share threads between cases, and may write to a disk or a
server. Graphs inside other code get their own savers and stores for each trial too.
"""

# The framework is only partly typed.
# pyright: reportUnknownArgumentType=false, reportUnknownMemberType=false, reportUnknownVariableType=false

import base64
from collections.abc import AsyncIterator, Iterator, Sequence
from copy import copy, deepcopy
from typing import Any, cast
from weakref import WeakKeyDictionary

from langchain_core.messages import BaseMessage, messages_from_dict
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import (
    WRITES_IDX_MAP,
    BaseCheckpointSaver,
    ChannelVersions,
    Checkpoint,
    CheckpointMetadata,
    CheckpointTuple,
    writes_sort_key,
)
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.store.memory import InMemoryStore
from pydantic_core import from_json

from greenroom.errors import AgentFailed, BadValue
from greenroom.ledger.plain import Json, plain
from greenroom.world.call_context import Host, model_host

THREAD = "greenroom"
_SERDE = JsonPlusSerializer(allowed_msgpack_modules=True)
_INSTEAD: "WeakKeyDictionary[Host, dict[int, tuple[Any, Any]]]" = WeakKeyDictionary()
"""The replacements of authors' savers and stores, by the host of each trial."""
_LEAVES = frozenset((str, int, bool, type(None)))

Version = str | int
Write = tuple[str, str, Any, str]
Items = list[Json]
Saved = tuple[Checkpoint, CheckpointMetadata, str | None]


class Memory(BaseCheckpointSaver[Any]):
    """The newest checkpoint of each graph and subgraph of one run, with its pending writes."""

    def __init__(self) -> None:
        super().__init__(serde=_SERDE)
        self.saved: dict[str, Saved] = {}
        self.pending: dict[str, dict[tuple[str, int], Write]] = {}

    @property
    def values(self) -> dict[str, Any]:
        """The values of the outermost graph's channels."""
        saved = self.saved.get("")
        return dict(saved[0]["channel_values"]) if saved else {}

    def get_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """The newest checkpoint of a namespace."""
        place = config.get("configurable", {})
        ns = place.get("checkpoint_ns", "")
        if ns not in self.saved:
            return None
        checkpoint, metadata, parent = self.saved[ns]
        if place.get("checkpoint_id") not in (None, checkpoint["id"]):
            return None
        writes = self.pending.get(ns, {})
        order = sorted(writes, key=lambda key: writes_sort_key(writes[key][3], *key))
        return CheckpointTuple(
            config=_config(ns, checkpoint["id"]),
            checkpoint={**checkpoint, "channel_values": dict(checkpoint["channel_values"])},
            metadata=metadata,
            parent_config=_config(ns, parent) if parent else None,
            pending_writes=[writes[key][:3] for key in order],
        )

    def list(self, config: RunnableConfig | None, **_: Any) -> Iterator[CheckpointTuple]:
        """Only the newest checkpoint: earlier ones are in the ledger."""
        found = self.get_tuple(config or _config("", None))
        if found is not None:
            yield found

    def put(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,  # noqa: ARG002
    ) -> RunnableConfig:
        """Keep a checkpoint instead of the one before it."""
        place = config.get("configurable", {})
        ns = place.get("checkpoint_ns", "")
        if ns in self.saved and self.saved[ns][0]["id"] != checkpoint["id"]:
            self.pending.pop(ns, None)
        self.saved[ns] = (checkpoint, metadata, place.get("checkpoint_id"))
        return _config(ns, checkpoint["id"])

    def put_writes(
        self,
        config: RunnableConfig,
        writes: Sequence[tuple[str, Any]],
        task_id: str,
        task_path: str = "",
    ) -> None:
        """Keep what tasks of a checkpoint have written before all of them are done."""
        kept = self.pending.setdefault(config.get("configurable", {}).get("checkpoint_ns", ""), {})
        for index, (channel, value) in enumerate(writes):
            key = (task_id, WRITES_IDX_MAP.get(channel, index))
            if key[1] < 0 or key not in kept:
                kept[key] = (task_id, channel, value, task_path)

    async def aget_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """The newest checkpoint of a namespace."""
        return self.get_tuple(config)

    async def alist(
        self, config: RunnableConfig | None, **options: Any
    ) -> AsyncIterator[CheckpointTuple]:
        """Only the newest."""
        for found in self.list(config, **options):
            yield found

    async def aput(self, *args: Any, **given: Any) -> RunnableConfig:
        """Keep a checkpoint."""
        return self.put(*args, **given)

    async def aput_writes(self, *args: Any, **given: Any) -> None:
        """Keep pending writes."""
        self.put_writes(*args, **given)

    def get_next_version(self, current: Version | None, channel: None) -> Version:  # noqa: ARG002
        """The next version: versions only need an order, and must be the same when a trial is repeated."""
        if isinstance(current, str):
            # Strings and numbers cannot be compared, so a run that has string versions keeps using them.
            return f"{int(current.partition('.')[0]) + 1:032}.0"
        return (current or 0) + 1

    def dump(self, more: dict[str, Json]) -> Items:
        """The memory as items: messages one by one, then the rest, so that earlier items stay unchanged.

        `load` restores all of it, and returns `more`.
        """
        items: Items = []
        graphs: dict[str, Json] = {}
        for ns, (checkpoint, metadata, parent) in self.saved.items():
            values: dict[str, Json] = {}
            for channel, value in checkpoint["channel_values"].items():
                if _is_messages(value):
                    items += [
                        {"ns": ns, "channel": channel, "message": _message_as_json(m)}
                        for m in value
                    ]
                    values[channel] = {"messages": len(value)}
                else:
                    values[channel] = _kept(value)
            bare = {key: part for key, part in checkpoint.items() if key != "channel_values"}
            graphs[ns] = {
                "checkpoint": _kept(bare),
                "metadata": _kept(metadata),
                "parent": parent,
                "values": values,
                "pending": [
                    [*key, channel, _kept(value), path]
                    for key, (_, channel, value, path) in self.pending.get(ns, {}).items()
                ],
            }
        return [*items, {"graphs": graphs, **more}]

    def load(self, items: Sequence[Any]) -> dict[str, Any]:
        """Restore what `dump` wrote, and return its `more`."""
        *messages, rest = items
        for ns, graph in rest["graphs"].items():
            values: dict[str, Any] = {}
            for channel, value in graph["values"].items():
                if "messages" in value:
                    values[channel] = [
                        _message(m["message"])
                        for m in messages
                        if (m["ns"], m["channel"]) == (ns, channel)
                    ]
                else:
                    values[channel] = _restored(value, channel)
            checkpoint = {**_restored(graph["checkpoint"], ns), "channel_values": values}
            metadata = _restored(graph["metadata"], ns)
            self.saved[ns] = (cast(Checkpoint, checkpoint), metadata, graph["parent"])
            self.pending[ns] = {
                (task, index): (task, channel, _restored(value, channel), path)
                for task, index, channel, value, path in graph["pending"]
            }
        return rest


def with_own_memory(graph: Any) -> Any:
    """The graph itself outside of rehearsals; else a copy whose memory belongs to this trial."""
    saver, store, cache = graph.checkpointer, graph.store, graph.cache
    is_saving = isinstance(saver, BaseCheckpointSaver)
    if isinstance(saver, Memory) or not (is_saving or store is not None or cache is not None):
        return graph
    host = model_host()
    if host is None:
        return graph
    kept = _INSTEAD.setdefault(host, {})
    twin = copy(graph)
    twin.cache = None
    if is_saving:
        twin.checkpointer = _instead(kept, saver, InMemorySaver)
    if store is not None:
        twin.store = _instead(kept, store, InMemoryStore)
    return twin


def _instead(kept: dict[int, tuple[Any, Any]], real: Any, make: Any) -> Any:
    """The replacement of the author's saver or store in this trial; a replacement itself is returned as is."""
    if any(real is own for _, own in kept.values()):
        return real
    # The original is kept too, so that its id() is not reused.
    return kept.setdefault(id(real), (real, make()))[1]


def _config(ns: str, id: str | None) -> RunnableConfig:
    place: dict[str, Any] = {"thread_id": THREAD, "checkpoint_ns": ns}
    return {"configurable": {**place, "checkpoint_id": id} if id else place}


def _is_messages(value: Any) -> bool:
    return (
        isinstance(value, list)
        and bool(value)
        and all(isinstance(item, BaseMessage) for item in cast("list[Any]", value))
    )


def _message_as_json(message: BaseMessage) -> Json:
    try:
        return plain({"type": message.type, "data": message.model_dump(exclude_none=True)})
    except BadValue:
        return _kept(message)


def _message(kept: Any) -> BaseMessage:
    if "type" not in kept:
        return _restored(kept, "messages")
    # A copy: the framework keeps some of what it is given, and must not edit the ledger through it.
    return messages_from_dict([deepcopy(kept)])[0]


def _is_plain(value: Any) -> bool:
    """Whether a value is plain JSON that survives a round trip."""
    kind = type(value)
    if kind is dict:
        return all(type(key) is str and _is_plain(part) for key, part in value.items())
    return kind in _LEAVES or (kind is list and all(map(_is_plain, value)))


def _kept(value: Any) -> Json:
    """A value as JSON, else as the framework's serializer writes it, else only its type's name."""
    if _is_plain(value):
        return {"json": plain(value)}
    try:
        kind, data = _SERDE.dumps_typed(value)
    except Exception:  # noqa: BLE001 - any object may be in a state, and fail in its own way
        return {"lost": type(value).__name__}
    return {"kind": kind, "data": base64.b64encode(data).decode()}


def _restored(kept: Any, where: str) -> Any:
    if "lost" in kept:
        raise AgentFailed(
            f"the graph's state holds a {kept['lost']} in {where!r}, which cannot be kept from one "
            f"turn to the next. Keep data in the state, and objects in the context."
        )
    if "text" in kept:  # written by earlier versions
        return from_json(kept["text"])
    if "json" in kept:
        return deepcopy(kept["json"])
    return _SERDE.loads_typed((kept["kind"], base64.b64decode(kept["data"])))
