"""The workers' part of the kernel's fence: a proxy as the way out, and folders to write to."""

from collections.abc import Callable, Iterable
from shutil import rmtree
from tempfile import mkdtemp
from typing import Any

from greenroom.cases.evalset import EvalSet
from greenroom.cases.mocks import Live
from greenroom.simulation.fence.kernel import not_held_by_kernel, writable_folders
from greenroom.suite.options import Values
from greenroom.suite.workers.blobs import shared_folder
from greenroom.suite.workers.proxy import Proxy, provider_hosts
from greenroom.world.answers import AnswerCache

KERNEL = "kernel"


def is_kernel(fence: str) -> bool:
    """Whether the fence is the kernel's."""
    return fence.partition(":")[0] == KERNEL


class ClosedIn:
    """The kernel's fence around the workers of one run."""

    def __init__(self, hosts: Iterable[str], folders: Iterable[str]) -> None:
        self.notes = [
            f"the kernel fence is not held for {why}; the fence inside each process still holds"
            for why in not_held_by_kernel()
        ]
        self._hosts = list(hosts)
        self._folders = list(folders)
        self._scratch = ""
        self._proxy: Proxy | None = None

    def open(self, note: Callable[[str], None]) -> None:
        """Start what workers need; `note` is called with each host that was refused."""
        self._scratch = mkdtemp(prefix="greenroom-scratch-")
        self._proxy = Proxy(self._hosts, note)

    def close(self) -> None:
        """End it, with all that was written."""
        if self._proxy is not None:
            self._proxy.close()
            rmtree(self._scratch, ignore_errors=True)

    @property
    def rules(self) -> dict[str, Any]:
        """The rules with which a worker closes itself in."""
        assert self._proxy is not None
        return {
            "writable": writable_folders(self._scratch, *self._folders),
            "port": self._proxy.port,
        }

    @property
    def variables(self) -> dict[str, str]:
        """Environment variables of a worker, which name the proxy for clients and the folder for temporary files."""
        assert self._proxy is not None
        way = f"http://127.0.0.1:{self._proxy.port}"
        names = [
            n for name in ("http_proxy", "https_proxy", "all_proxy") for n in (name, name.upper())
        ]
        return {
            **dict.fromkeys(names, way),
            **dict.fromkeys(("no_proxy", "NO_PROXY"), ""),
            "TMPDIR": self._scratch,
            "PYTHONDONTWRITEBYTECODE": "1",
        }


def closed_in(options: Values, evalset: EvalSet) -> ClosedIn | None:
    """The kernel's fence of a run; None if the run does not ask for one."""
    fence: str = options["fence"]
    if not is_kernel(fence):
        return None
    named = [host.strip() for host in fence.partition(":")[2].split(",") if host.strip()]
    given: list[Any] = [*options["mocks"].values(), *options["allow_tools"]]
    for case in evalset:
        given += [*case.mocks.values(), *case.allow_tools]
    lent = [host for one in given if isinstance(one, Live) for host in one.hosts or ()]
    cache = AnswerCache.of(options["cache"])
    folders = [str(shared_folder().path), *([] if cache is None else [str(cache.path)])]
    return ClosedIn([*provider_hosts(), *named, *lent], folders)
