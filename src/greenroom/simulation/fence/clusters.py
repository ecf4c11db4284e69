"""Work given to processes that are already running: Ray's, and those of pools, managers and queues.

Nothing connects then and nothing is started, so there is no audit event. The functions that submit the work
are wrapped instead; a case would need permission to start processes, which only hooks have.
"""

import sys
from collections.abc import Iterable
from functools import partial
from pkgutil import resolve_name
from typing import Final

from greenroom.backends.seams import Call, add_seam, wrap
from greenroom.simulation.fence.routes import starting
from greenroom.simulation.fence.scope import Opening, answerable, current_scope, fenced
from greenroom.simulation.fence.threads import carrying_task

_Place = tuple[str, str, str]
"""Owner, the name of the function that submits work, and the name for it in a refusal."""


_PACKAGES: Final = ("multiprocessing", "multiprocess")
"""Python's own, and a copy of it that pickles more."""
_POOLS: Final = tuple(f"{package}.pool" for package in _PACKAGES)


def _methods(owner: str, route: str, *names: str) -> tuple[_Place, ...]:
    return tuple((owner, name, route) for name in names)


def _of_multiprocessing(package: str) -> dict[str, tuple[_Place, ...]]:
    pool, managers, queues = (f"{package}.{name}" for name in ("pool", "managers", "queues"))
    submits = ("apply_async", "_map_async", "imap", "imap_unordered")
    kinds = ("Queue", "JoinableQueue", "SimpleQueue")
    return {
        pool: _methods(f"{pool}:Pool", pool, *submits),
        managers: _methods(f"{managers}:BaseProxy", managers, "_callmethod"),
        queues: tuple((f"{queues}:{kind}", "put", f"{package}.{kind}.put") for kind in kinds),
    }


def _executor(module: str, kind: str = "ProcessPoolExecutor") -> dict[str, tuple[_Place, ...]]:
    return {module: ((f"{module}:{kind}", "submit", f"{module}.{kind}"),)}


_PLACES: Final[dict[str, tuple[_Place, ...]]] = {
    "ray": (
        ("ray.remote_function:RemoteFunction", "_remote", "ray.remote"),
        ("ray.actor:ActorClass", "_remote", "ray.remote"),
        ("ray.actor:ActorMethod", "_remote", "ray.remote"),
        ("ray.actor:ActorHandle", "_actor_method_call", "ray.remote"),
        ("ray._private.worker:Worker", "put_object", "ray.put"),
        ("ray._private.worker:Worker", "get_objects", "ray.get"),
        ("ray._private.worker", "connect", "ray.init"),
        *(
            (owner, name, f"ray.{name}")
            for name in ("init", "put", "get", "kill", "cancel")
            for owner in ("ray", "ray._private.worker")
        ),
    ),
    "ray.dag.compiled_dag_node": _methods(
        "ray.dag.compiled_dag_node:CompiledDAG", "ray.remote", "execute", "execute_async"
    ),
    "ray.util.client.worker": tuple(
        ("ray.util.client.worker:Worker", name, route)
        for name, route in (
            ("__init__", "ray.init"),
            ("call_remote", "ray.remote"),
            ("put", "ray.put"),
            ("get", "ray.get"),
            ("terminate_actor", "ray.kill"),
            ("terminate_task", "ray.cancel"),
        )
    ),
    **_executor("concurrent.futures.process"),
    **_executor("loky.process_executor"),
    **_executor("loky.reusable_executor", "_ReusablePoolExecutor"),
    **_executor("joblib.externals.loky.process_executor"),
    **_executor("joblib.externals.loky.reusable_executor", "_ReusablePoolExecutor"),
    **_of_multiprocessing(_PACKAGES[0]),
    **_of_multiprocessing(_PACKAGES[1]),
}
"""By the module that is loaded last of what its places need."""
_RUNNING: Final = frozenset({"worker", "mapstar", "starmapstar"})
"""Functions of a pool that call what they were given."""
_BETWEEN: Final = frozenset({__name__, "multiprocessing.queues", "multiprocess.queues"})


def watch() -> None:
    """Have the seams put in, as each of these modules is loaded."""
    for module, places in _PLACES.items():
        add_seam(__name__, module, install=partial(_install, places))


def _install(places: Iterable[_Place]) -> None:
    wrap((resolve_name(owner), name, partial(_seam, route)) for owner, name, route in places)


def _seam(route: str, real: Call) -> Call:
    in_threads = carrying_task(real) if route in _POOLS else real

    def seam(*args: object, **given: object) -> object:
        if args and _is_of_threads(args[0]):
            return in_threads(*args, **given)
        if fenced() and not _may_pass(route):
            starting(route, (_name(args),))
        return real(*args, **given)

    return seam


def _may_pass(route: str) -> bool:
    scope = current_scope()
    if isinstance(scope, Opening):
        return scope.hosts is None  # a model may be asked anywhere, and so in another process
    if route.endswith(".put") and route != "ray.put":
        # Pools feed their processes from their own threads; the calls that lead there are refused.
        return answerable() is None or _is_plumbing()
    return False


def _is_plumbing() -> bool:
    """Whether a pool itself, or the handler of a log, puts something into a queue."""
    frame = sys._getframe(1)  # pyright: ignore[reportPrivateUsage]
    while frame.f_back and frame.f_globals.get("__name__") in _BETWEEN:
        frame = frame.f_back
    module, name = frame.f_globals.get("__name__"), frame.f_code.co_name
    if (module, name) == ("logging.handlers", "enqueue"):
        return True
    return module in _PLACES and name not in _RUNNING


def _is_of_threads(pool: object) -> bool:
    """Whether a pool stays in this process, where its threads are fenced themselves."""
    modules = map(sys.modules.get, _POOLS)
    return any(isinstance(pool, module.ThreadPool) for module in modules if module is not None)


def _name(args: tuple[object, ...]) -> str:
    """The name of what would have run elsewhere, if it has one."""
    for thing in args[:2]:
        if isinstance(thing, str):
            return thing
        for attribute in ("_function_name", "_method_name", "__name__"):
            if isinstance(found := getattr(thing, attribute, None), str):
                return found
    return ""
