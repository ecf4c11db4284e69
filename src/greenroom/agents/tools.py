"""Tools: functions that an agent may call."""

import functools
import inspect
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from types import FunctionType, MethodType
from typing import Any, Final, overload
from weakref import WeakValueDictionary

from greenroom.agents.flow import checked_name
from greenroom.agents.places import Places, declared_places
from greenroom.agents.signature import (
    called_of,
    checked_arguments,
    context_parameter,
    function_name,
    given_by_model,
    input_schema,
    output_adapter,
    resource_parameters,
    return_annotation,
    signature_text,
    view_parameters,
    without_partials,
)
from greenroom.errors import BadAgent
from greenroom.ledger.changes import unwrapped
from greenroom.ledger.plain import Json
from greenroom.ledger.records import json_fallback
from greenroom.world.call_context import (
    Host,
    check_direct_call,
    guard_here,
    route_of_calls,
    tool_host,
)
from greenroom.world.records import ToolError
from greenroom.world.resources import Resources
from greenroom.world.threads import Here, call_blocking, has_loop, in_thread
from greenroom.world.world import Context, SealedBody, ToolRequest


class _Signature:
    """The signature of a tool's function, for `inspect.signature`; the class `Tool` has its own."""

    def __get__(self, instance: "Tool | None", owner: type) -> inspect.Signature:
        if instance is None:
            raise AttributeError("__signature__")
        return inspect.signature(instance.fn)


@dataclass(frozen=True, eq=False)
class Tool:
    """A function with a name, a description and a schema; `yields` leaves its answer to the user."""

    name: str
    fn: Callable[..., Any]
    description: str = ""
    yields: bool = False
    read_only: bool = False
    _context: str | None = field(default=None, repr=False)
    reads: Places = ()
    writes: Places = ()

    __signature__ = _Signature()

    def __post_init__(self) -> None:
        for name in ("reads", "writes"):
            places = declared_places(getattr(self, name), f"{name}= of tool {self.name!r}")
            object.__setattr__(self, name, places)

    def __get__(self, instance: object, owner: type | None = None) -> "Tool":
        """The tool of one object, if `@tool` decorates a method; each access returns the same tool."""
        if instance is None or not _is_method_of(type(instance), self.fn):
            return self
        key = (id(self), id(instance))
        found = _OF_OBJECTS.get(key)
        if found is None:
            bound = replace(self, fn=MethodType(self.fn, instance))
            found = _OF_OBJECTS.setdefault(key, bound)
        return found

    def __call__(self, *args: object, **kwargs: object) -> Any:
        """Call the function directly; in a rehearsal the case answers, or refuses."""
        route = route_of_calls()
        if route is not None:
            return route(self, args, kwargs)
        if guard_here() is not None:
            check_direct_call(self, self.name)
            return self.fn(*args, **kwargs)
        host = tool_host(self, self.name)
        if host is None:
            return self.fn(*args, **kwargs)
        given = self.bound(args, kwargs)
        if self.is_awaited:
            return self._visit(host, given, _on_this_loop)
        return call_blocking(lambda here: self._visit(host, given, here))

    @property
    def is_awaited(self) -> bool:
        """Whether a direct call, made here, returns something to await.

        A plain function around an async one returns its coroutine, or runs it, which needs a thread without a loop.
        """
        if inspect.iscoroutinefunction(self.fn):
            return True
        inner = inspect.unwrap(without_partials(self.fn))
        return inspect.iscoroutinefunction(inner) and has_loop()

    def bound(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> dict[str, Any]:
        """The arguments of a direct call by name; misnamed or missing ones raise TypeError as usual."""
        names = [n for n in inspect.signature(self.fn).parameters if n != self._context]
        if len(args) > len(names):
            raise TypeError(
                f"{self.name}() takes {len(names)} arguments, but {len(args)} were given"
            )
        given = {**dict(zip(names, args, strict=False)), **kwargs}
        # In a run, the run provides resources and the state, whatever code calls.
        return self.checked({n: v for n, v in given.items() if n not in self._lent})

    async def visit(self, host: Host, args: Mapping[str, Json]) -> Any:
        """The case's answer to a direct call that was made in another process."""
        return await self._visit(host, self.checked(args), self._here)

    async def _visit(self, host: Host, given: dict[str, Any], here: Here) -> Any:
        """The case's answer to a direct call; the real value if its own body gave it."""
        # Slow to load, and tools are rarely called directly.
        from pydantic_core import to_jsonable_python

        real: list[Any] = []

        async def body(context: Context) -> Json:
            args = await self._completed(given, context)
            try:
                real.append(await self._finished(await here(self.fn, **args)))
            except Exception as error:
                real.append(error)
                raise
            is_asking = bool(unwrapped(real[0])[1])
            return real[0] if is_asking else to_jsonable_python(real[0], fallback=json_fallback)

        args = to_jsonable_python(given, fallback=json_fallback)
        request = ToolRequest("", self.name, args, "", self.yields, self.read_only, self)
        outcome = await host.call_tool(request, SealedBody(body))
        if not outcome.error:
            is_own = bool(real) and outcome.source != "middleware"
            return real[0] if is_own else outcome.value
        if real:
            raise real[0]
        raise ToolError(outcome.error)

    @property
    def parameters(self) -> Mapping[str, Any]:
        """JSON schema of the arguments."""
        return input_schema(self.fn)

    @property
    def takes(self) -> str:
        """The signature of its function as text: "(order: int) -> str"."""
        return signature_text(self.fn)

    @functools.cached_property
    def argument_names(self) -> tuple[str, ...]:
        """The arguments a model may give, in order."""
        return tuple(given_by_model(self.fn))

    @property
    def resources(self) -> tuple[str, ...]:
        """The parameters that the run provides, such as a connection."""
        return tuple(resource_parameters(self.fn))

    @property
    def required_resources(self) -> tuple[str, ...]:
        """The resources that the body requires."""
        return tuple(n for n, is_required in resource_parameters(self.fn).items() if is_required)

    @property
    def _lent(self) -> tuple[str, ...]:
        return (*self.resources, *view_parameters(self.fn))

    def checked(self, args: Mapping[str, Json]) -> dict[str, Any]:
        """The arguments converted to what the annotations say; ValueError if they do not fit."""
        return checked_arguments(self.fn, args)

    def checked_answer(self, value: Json, *, strict: bool = True) -> Json:
        """A user's answer, converted to the return annotation; ValueError if it does not fit."""
        adapter = output_adapter(return_annotation(self.fn))
        if adapter is None:
            return value
        try:
            found = adapter.validate_json(json.dumps(value), strict=strict)
        except ValueError:
            if not isinstance(value, str):
                raise
            # A model that plays the user answers with text, which may be the JSON asked for.
            found = adapter.validate_json(value, strict=strict)
        return adapter.dump_python(found, mode="json")

    async def run(self, args: Mapping[str, object], context: Context) -> Any:
        """Run the body. Only a World that answers calls for real uses this."""
        check_direct_call(self, self.name)
        given = await self._completed(args, context)
        return await self._finished(await self._here(self.fn, **given))

    @property
    def _here(self) -> Here:
        return _on_this_loop if inspect.iscoroutinefunction(self.fn) else in_thread

    async def _finished(self, found: object) -> Any:
        """The answer of the body, awaited if what it returned has still to run."""
        answer = await found if inspect.isawaitable(found) else found
        if inspect.isasyncgen(answer):
            raise BadAgent(f"tool {self.name!r} returned an async generator. {_COLLECT}")
        if inspect.isawaitable(answer):
            raise BadAgent(
                f"tool {self.name!r} returned a {type(answer).__name__} that has still to run. "
                f"Await it, and return its result."
            )
        return answer

    async def _completed(self, args: Mapping[str, object], context: Context) -> dict[str, Any]:
        """The arguments with the run's resources, opened now if they are not open yet."""
        given = {**args, self._context: context} if self._context else dict(args)
        for name, is_required in resource_parameters(self.fn).items():
            lent = context.resources or Resources()
            if is_required or name in lent:
                given[name] = await lent.open(name, self.name)
        views = {name: schema.bind(context) for name, schema in view_parameters(self.fn).items()}
        return {**given, **views}

    @property
    def __name__(self) -> str:
        return self.name

    def __repr__(self) -> str:
        return self.name


_OF_OBJECTS: WeakValueDictionary[tuple[int, int], Tool] = WeakValueDictionary()
"""Tools of objects, by the ids of both. A tool keeps its object alive, so that no other object gets its id."""


def _is_method_of(kind: type, fn: object) -> bool:
    """Whether a function was written in the body of this class or of one that it inherits from."""
    home = fn.__qualname__.rpartition(".")[0] if isinstance(fn, FunctionType) else ""
    return bool(home) and any(home == one.__qualname__ for one in kind.__mro__)


_COLLECT: Final = (
    "An agent takes one answer: collect the pieces and return them, as in "
    "`return [piece async for piece in pieces()]`."
)


async def _on_this_loop(function: Callable[..., object], /, **kwargs: object) -> object:
    """What the function returns, which may be still to await."""
    return function(**kwargs)


@overload
def tool(fn: Callable[..., object], /) -> Tool: ...
@overload
def tool(
    *,
    name: str = "",
    description: str = "",
    yields: bool = False,
    read_only: bool = False,
    reads: Places = (),
    writes: Places = (),
) -> Callable[[Callable[..., Any]], Tool]: ...
def tool(
    fn: Callable[..., object] | None = None,
    /,
    *,
    name: str = "",
    description: str = "",
    yields: bool = False,
    read_only: bool = False,
    reads: Places = (),
    writes: Places = (),
) -> Tool | Callable[[Callable[..., Any]], Tool]:
    """Make a function a tool; its signature and docstring are what the model sees.

    A parameter named `ctx` receives the call's context and stays hidden from the model, and so do
    resources that the run provides (`db: Annotated[Db, resource]`) and the state by a schema
    (`state: Billing`). With `yields=True` the body never runs: the call waits, and the user's answer is its
    result. `reads` and `writes` are the places of the state that the body looks at and changes.
    """
    if fn is None:
        options: dict[str, Any] = {"name": name, "description": description, "yields": yields}
        options |= {"read_only": read_only, "reads": reads, "writes": writes}
        return functools.partial(tool, **options)
    if isinstance(fn, Tool):
        raise BadAgent(f"{fn.name!r} is a tool already; use it as it is.")
    if not callable(fn):
        raise BadAgent(f"@tool needs a function, but got {fn!r}.")
    inner = inspect.unwrap(without_partials(fn))
    if isinstance(inner, Tool):
        raise BadAgent(
            f"{fn!r} has the tool {inner.name!r} inside it. Put @tool on top: decorate the plain function, "
            f"or bind its arguments, and make the outermost function the tool."
        )
    called = checked_name(name or function_name(fn), "a tool", reserved=())
    text = description or inspect.cleandoc(without_partials(fn).__doc__ or "")
    body = called_of(fn)
    if inspect.isasyncgenfunction(body):
        raise BadAgent(f"tool {called!r} is an async generator. {_COLLECT}")
    return Tool(called, body, text, yields, read_only, context_parameter(body), reads, writes)


def as_tool(given: Any) -> Tool:
    """A tool from a tool or a plain function."""
    made = given if isinstance(given, Tool) else tool(given)
    if next(iter(inspect.signature(made.fn).parameters), "") == "self":
        raise BadAgent(
            f"tool {made.name!r} is a method of a class. Pass that of an object, such as "
            f"desk.{made.name} for desk = Desk()."
        )
    return made
