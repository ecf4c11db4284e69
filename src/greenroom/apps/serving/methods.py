"""The A2A methods that are offered, each for the agent with one user's conversations."""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import Final

from greenroom.apps.serving.requests import (
    INVALID_PARAMS,
    UNSUPPORTED,
    RpcError,
    number,
    read_message,
    text,
)
from greenroom.apps.serving.served import ServedAgent
from greenroom.apps.serving.work import Work
from greenroom.ledger.plain import Json, number_in

_PAGE = 50

Params = Mapping[str, Json]


async def _send(agent: ServedAgent, params: Params) -> Json:
    incoming = read_message(params)
    found = agent.send(incoming)
    if isinstance(found, Work):
        found = agent.task(found.task) if incoming.at_once else await agent.wait(found)
    return {"task": found.data(incoming.history)}


async def _get(agent: ServedAgent, params: Params) -> Json:
    return agent.task(text(params, "id")).data(number(params, "historyLength"))


async def _list(agent: ServedAgent, params: Params) -> Json:
    state = text(params, "status")
    tasks = [
        task
        for task in agent.tasks(text(params, "contextId"))
        if not state or f"TASK_STATE_{task.state}" == state
    ]
    size = min(number(params, "pageSize") or _PAGE, 100)
    begin = number_in(text(params, "pageToken") or "0")
    if begin is None:
        raise RpcError(INVALID_PARAMS, "pageToken does not come from this server.")
    history = number(params, "historyLength") or 0
    with_artifacts = params.get("includeArtifacts") is True
    shown = tasks[begin : begin + size]
    return {
        "tasks": [task.data(history, artifacts=with_artifacts) for task in shown],
        "nextPageToken": str(begin + size) if begin + size < len(tasks) else "",
        "pageSize": size,
        "totalSize": len(tasks),
    }


async def _cancel(agent: ServedAgent, params: Params) -> Json:
    return (await agent.cancel(text(params, "id"))).data()


async def _send_streaming(agent: ServedAgent, params: Params) -> AsyncIterator[Json]:
    found = agent.send(read_message(params))
    return agent.follow(found) if isinstance(found, Work) else _once(found.data())


async def _subscribe(agent: ServedAgent, params: Params) -> AsyncIterator[Json]:
    name = text(params, "id")
    task, work = agent.task(name), agent.work(name)
    if task.is_over:
        raise RpcError(UNSUPPORTED, f"task {name} is over: {task.state.lower()}.")
    return agent.follow(work) if work is not None else _once(task.data())


async def _once(task: Json) -> AsyncIterator[Json]:
    yield {"task": task}


ANSWERS: Final[Mapping[str, Callable[[ServedAgent, Params], Awaitable[Json]]]] = {
    "SendMessage": _send,
    "GetTask": _get,
    "ListTasks": _list,
    "CancelTask": _cancel,
}
"""Methods with a single answer."""
STREAMS: Final[Mapping[str, Callable[[ServedAgent, Params], Awaitable[AsyncIterator[Json]]]]] = {
    "SendStreamingMessage": _send_streaming,
    "SubscribeToTask": _subscribe,
}
"""Methods that answer with a stream of updates."""
