"""Class-level seams of LangChain and LangGraph, put in by the first rehearsal that needs them.

A compiled graph keeps its models and tools in closures, out of reach. So the classes themselves ask
whether the running context belongs to a rehearsal; where it does not, everything is as it was.
"""

# The framework is half typed, and its seams are its own affair.
# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false, reportUnknownArgumentType=false, reportPrivateUsage=false

import functools
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any
from weakref import WeakSet

from langchain_core.language_models import BaseChatModel
from langchain_core.language_models.llms import BaseLLM
from langchain_core.messages import ToolMessage
from langchain_core.tools import BaseTool
from langgraph.prebuilt import ToolNode
from langgraph.pregel import Pregel, _runner  # pyright: ignore[reportPrivateUsage]
from langgraph.pregel._executor import AsyncBackgroundExecutor

from greenroom.backends.foreign import held
from greenroom.backends.langgraph.gates import MARK, Fault, gated_model, gated_tool, origin_of
from greenroom.backends.langgraph.memory import remembered
from greenroom.backends.langgraph.stage import IN_MODEL, IN_TOOL_NODE, STAGE, AtWork
from greenroom.errors import Refusal, ToolRefused
from greenroom.world.bodies import check_direct_call

Call = Callable[..., Any]

_MODEL_SEAMS = (
    "_generate_with_cache",
    "_agenerate_with_cache",
    "stream",
    "astream",
    "_iter_v2_events",
    "_aiter_v2_events",
)
_LLM_SEAMS = ("generate", "agenerate", "stream", "astream")
# What stands above the seams: a class that replaces one of these does its work out of their sight.
_ABOVE = {
    BaseChatModel: ("invoke", "ainvoke", "generate", "agenerate", *_MODEL_SEAMS),
    BaseTool: ("invoke", "ainvoke", "run", "arun"),
}
_OWN = ("langchain_core.", "langchain.", "langgraph.")
_installed: list[bool] = []
_seen: WeakSet[type] = WeakSet()


def install() -> None:
    """Put the seams in, once, and a guard on every class that would go around them."""
    if not _installed:
        _installed.append(True)
        for name in _MODEL_SEAMS:
            setattr(BaseChatModel, name, _model_seam(getattr(BaseChatModel, name)))
        for name in _LLM_SEAMS:
            setattr(BaseLLM, name, _guard(getattr(BaseLLM, name), "a text completion model"))
        BaseTool.run = _tool_seam(BaseTool.run)
        BaseTool.arun = _tool_seam(BaseTool.arun)
        Pregel.invoke = _blocking_seam(Pregel.invoke)
        ToolNode._run_one = _call_seam(ToolNode._run_one)
        ToolNode._arun_one = _async_call_seam(ToolNode._arun_one)
        AsyncBackgroundExecutor.submit = _errand_seam(AsyncBackgroundExecutor.submit)
        _runner.run_with_retry = _task_seam(_runner.run_with_retry)
        _runner.arun_with_retry = _async_task_seam(_runner.arun_with_retry)
    for base in _ABOVE:
        kinds = [base]
        for kind in kinds:
            for cls in kind.__subclasses__():
                kinds.append(cls)
                if cls not in _seen:
                    _seen.add(cls)
                    _watch(cls, base)


def overrides(cls: type) -> str | None:
    """The method by which a model or tool class would go around the seams, if it has one."""
    for base, names in _ABOVE.items():
        if issubclass(cls, base):
            for name in names:
                owner = next(kind for kind in cls.__mro__ if name in vars(kind))
                if owner is not base and not _is_own(owner):
                    return name
    return None


def _watch(cls: type, base: type) -> None:
    if _is_own(cls):
        return
    for name in _ABOVE[base]:
        if name in vars(cls):
            setattr(cls, name, _guard(vars(cls)[name], f"{cls.__name__}, with its own {name}()"))


def _is_own(cls: type) -> bool:
    return f"{cls.__module__}.".startswith(_OWN)


def _model_seam(real: Call) -> Call:
    @functools.wraps(real)
    def seam(self: BaseChatModel, *args: Any, **given: Any) -> Any:
        stage = STAGE.get()
        if stage is None:
            check_direct_call(self, type(self).__name__)
        elif MARK not in self.__dict__ and not IN_MODEL.get():
            self = gated_model(stage, self)
        return real(self, *args, **given)

    return seam


def _tool_seam(real: Call) -> Call:
    @functools.wraps(real)
    def seam(self: BaseTool, tool_input: Any, *args: Any, **given: Any) -> Any:
        stage = STAGE.get()
        if stage is None:
            check_direct_call(origin_of(self), self.name)
        elif MARK not in self.__dict__:
            self = gated_tool(stage, self, tool_input, given.get("tool_call_id"))
        return real(self, tool_input, *args, **given)

    return seam


def _guard(real: Call, what: str) -> Call:
    """Refuse a way around the seams while a rehearsal asks for it."""

    @functools.wraps(real)
    def guard(self: Any, *args: Any, **given: Any) -> Any:
        stage = STAGE.get()
        # A model may do its own work in its own way once it is asked; a tool never may.
        excused = IN_MODEL.get() and not isinstance(self, BaseTool)
        if stage is not None and MARK not in self.__dict__ and not excused:
            raise stage.invocation.keep(_around(what))
        if stage is None:
            check_direct_call(self, getattr(self, "name", "") or type(self).__name__)
        return real(self, *args, **given)

    return guard


def _around(what: str) -> Refusal:
    return ToolRefused(
        f"the agent uses {what}, whose work no gate can see; it was not asked. Rehearse with a "
        f"chat model or tool that leaves these methods to LangChain."
    )


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
    """What nobody handled of a mock's failure is told to the model, not the end of the run."""

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
