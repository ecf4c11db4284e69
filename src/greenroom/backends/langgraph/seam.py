"""Where LangGraph runs its nodes, tools and graphs, beside the seams of LangChain's own classes.

A compiled graph keeps its models and tools in closures, out of reach. So the classes themselves ask
who answers for the running work; outside of rehearsals, everything is as it was.
"""

# The framework is half typed, and its seams are its own affair.
# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false, reportUnknownArgumentType=false, reportPrivateUsage=false

import functools
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.language_models.llms import BaseLLM
from langchain_core.messages import ToolMessage
from langchain_core.tools import BaseTool
from langgraph.prebuilt import ToolNode
from langgraph.pregel import Pregel, _runner  # pyright: ignore[reportPrivateUsage]
from langgraph.pregel._executor import AsyncBackgroundExecutor

from greenroom.backends.foreign import held
from greenroom.backends.langchain import graphs, models, tools
from greenroom.backends.langchain.subclasses import guard, is_own
from greenroom.backends.langgraph.gates import Fault
from greenroom.backends.langgraph.memory import remembered
from greenroom.backends.langgraph.run import IN_TOOL_NODE, STAGE, AtWork
from greenroom.backends.seams import original

Call = Callable[..., Any]

_LLM_SEAMS = ("generate", "agenerate", "stream", "astream")
_ABOVE = {BaseChatModel: models.ABOVE, BaseTool: tools.ABOVE}
_installed: list[bool] = []


def install() -> None:
    """Put the seams in, once."""
    if _installed:
        return
    tools.install()
    models.install()
    graphs.install()
    places: list[tuple[Any, str, Callable[[Call], Call]]] = [
        *((BaseLLM, name, _llm_seam) for name in _LLM_SEAMS),
        (Pregel, "invoke", _blocking_seam),
        (ToolNode, "_run_one", _call_seam),
        (ToolNode, "_arun_one", _async_call_seam),
        (AsyncBackgroundExecutor, "submit", _errand_seam),
        (_runner, "run_with_retry", _task_seam),
        (_runner, "arun_with_retry", _async_task_seam),
    ]
    # All are looked up before the first goes in: a version that lacks one is left as it is.
    found = [(owner, name, seam(original(owner, name))) for owner, name, seam in places]
    for owner, name, seam in found:
        setattr(owner, name, seam)
    _installed.append(True)


def overrides(cls: type) -> str | None:
    """The method by which a model or tool class would go around the seams, if it has one."""
    for base, names in _ABOVE.items():
        if issubclass(cls, base):
            for name in names:
                owner = next(kind for kind in cls.__mro__ if name in vars(kind))
                if owner is not base and not is_own(vars(owner)[name]):
                    return name
    return None


def _llm_seam(real: Call) -> Call:
    return guard(real, "a text completion model", is_model=True)


def _task_seam(real: Call) -> Call:
    @functools.wraps(real)
    def seam(task: Any, *args: Any, **given: Any) -> Any:
        with _at_work(task):
            return real(task, *args, **given)

    return seam


def _async_task_seam(real: Call) -> Call:
    @functools.wraps(real)
    async def seam(task: Any, *args: Any, **given: Any) -> Any:
        with _at_work(task):
            return await real(task, *args, **given)

    return seam


def _errand_seam(real: Call) -> Call:
    """Our own memory is told at once: a task for it would cost more than all that it does."""

    @functools.wraps(real)
    def submit(self: AsyncBackgroundExecutor, work: Call, *args: Any, **given: Any) -> Any:
        if not remembered(work, args):
            return real(self, work, *args, **given)
        done = self.loop.create_future()
        done.set_result(None)
        return done

    return submit


def _blocking_seam(real: Call) -> Call:
    """A graph that is run without awaiting, perhaps on the very loop its models need."""

    @functools.wraps(real)
    def invoke(self: Any, *args: Any, **given: Any) -> Any:
        stage = STAGE.get()
        with nullcontext() if stage is None else stage.bridge.blocked():
            return real(self, *args, **given)

    return invoke


def _call_seam(real: Call) -> Call:
    """A mock's failure that no handler took is given to the model, and does not end the run."""

    @functools.wraps(real)
    def seam(self: ToolNode, call: Any, *args: Any, **given: Any) -> Any:
        try:
            with held(IN_TOOL_NODE, True):
                return real(self, call, *args, **given)
        except Fault as fault:
            return _failed(call, fault)

    return seam


def _async_call_seam(real: Call) -> Call:
    @functools.wraps(real)
    async def seam(self: ToolNode, call: Any, *args: Any, **given: Any) -> Any:
        try:
            with held(IN_TOOL_NODE, True):
                return await real(self, call, *args, **given)
        except Fault as fault:
            return _failed(call, fault)

    return seam


def _failed(call: Any, fault: Fault) -> ToolMessage:
    return ToolMessage(
        f"Error: {fault}", name=call["name"], tool_call_id=call["id"], status="error"
    )


def _at_work(task: Any) -> Any:
    stage = STAGE.get()
    if stage is None or task.name.startswith("__"):
        return nullcontext()
    return AtWork(stage, task)
