"""The seams where LangGraph runs its nodes, tools and graphs, in addition to those of LangChain's classes.

A compiled graph keeps its models and tools in closures, out of reach. So the classes themselves ask who
answers for the running code; outside of rehearsals they behave as usual.
"""

# The framework is only partly typed, and the seams use its private names.
# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false, reportUnknownArgumentType=false, reportPrivateUsage=false

from contextlib import nullcontext
from functools import cache, partial
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.language_models.llms import BaseLLM
from langchain_core.messages import ToolMessage
from langchain_core.tools import BaseTool
from langgraph.prebuilt import ToolNode
from langgraph.pregel import Pregel, _retry, _runner  # pyright: ignore[reportPrivateUsage]

from greenroom.backends.langchain import graphs, guard, is_own, models, tools
from greenroom.backends.langgraph.gates import Fault
from greenroom.backends.langgraph.run import IN_TOOL_NODE, RUN, AtWork
from greenroom.backends.seams import Call, Wrap, wrap
from greenroom.world.call_context import ContextSetting

_ABOVE = {BaseChatModel: models.ABOVE, BaseTool: tools.ABOVE}


@cache
def install() -> None:
    """Install the seams, once."""
    tools.install()
    models.install()
    graphs.install()
    completions: list[tuple[Any, str, Wrap]] = [
        (BaseLLM, name, partial(guard, what="a text completion model", is_model=True))
        for name in ("generate", "agenerate", "stream", "astream")
    ]
    wrap(
        [
            *completions,
            (Pregel, "invoke", _blocking_seam),
            (ToolNode, "_run_one", _call_seam),
            (ToolNode, "_arun_one", _async_call_seam),
            (_runner, "run_with_retry", _task_seam),
            (_runner, "arun_with_retry", _async_task_seam),
            (_retry, "_should_retry_on", _retry_seam),
        ]
    )


def overrides(cls: type) -> str | None:
    """The method by which a model or tool class would bypass the seams, if it has one."""
    for base, names in _ABOVE.items():
        if issubclass(cls, base):
            for name in names:
                owner = next(kind for kind in cls.__mro__ if name in vars(kind))
                if owner is not base and not is_own(vars(owner)[name]):
                    return name
    return None


def _task_seam(real: Call) -> Call:
    def seam(task: Any, *args: Any, **given: Any) -> Any:
        with _at_work(task):
            return real(task, *args, **given)

    return seam


def _async_task_seam(real: Call) -> Call:
    async def seam(task: Any, *args: Any, **given: Any) -> Any:
        with _at_work(task):
            return await real(task, *args, **given)

    return seam


def _blocking_seam(real: Call) -> Call:
    """For a graph that is run synchronously, perhaps on the event loop that its models need."""

    def invoke(self: Any, *args: Any, **given: Any) -> Any:
        run = RUN.get()
        with nullcontext() if run is None else run.bridge.blocked():
            return real(self, *args, **given)

    return invoke


def _call_seam(real: Call) -> Call:
    """Gives a mock's failure that no handler took to the model, instead of ending the run."""

    def seam(self: ToolNode, call: Any, *args: Any, **given: Any) -> Any:
        try:
            with ContextSetting(IN_TOOL_NODE, True):
                return real(self, call, *args, **given)
        except Fault as fault:
            return _failed(call, fault)

    return seam


def _async_call_seam(real: Call) -> Call:
    async def seam(self: ToolNode, call: Any, *args: Any, **given: Any) -> Any:
        try:
            with ContextSetting(IN_TOOL_NODE, True):
                return await real(self, call, *args, **given)
        except Fault as fault:
            return _failed(call, fault)

    return seam


def _retry_seam(real: Call) -> Call:
    """Where the framework decides whether a node that has failed is tried again."""

    def should_retry(policy: Any, error: Exception) -> bool:
        is_retried, run = real(policy, error), RUN.get()
        if is_retried and run is not None:
            run.retry(error, policy.max_attempts)
        return is_retried

    return should_retry


def _failed(call: Any, fault: Fault) -> ToolMessage:
    return ToolMessage(
        f"Error: {fault}", name=call["name"], tool_call_id=call["id"], status="error"
    )


def _at_work(task: Any) -> Any:
    run = RUN.get()
    if run is None or task.name.startswith("__"):
        return nullcontext()
    return AtWork(run, task)
