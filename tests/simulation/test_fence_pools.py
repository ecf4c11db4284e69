"""No work goes to a process that runs already; all ways are tried in one interpreter of their own."""

import json
import os
import signal
import subprocess
import sys
from contextlib import suppress

import pytest

# The canary is a file. Each way is first tried outside of a rehearsal, then in a case, then by a model.
PROGRAM = """
import json, logging, logging.handlers, multiprocessing, os, sys, time
from concurrent.futures import ProcessPoolExecutor
from contextlib import suppress
from multiprocessing.managers import BaseManager
from multiprocessing.pool import ThreadPool
from pathlib import Path
from greenroom.simulation.fence import enclose, opening_for

canary = Path(sys.argv[1])
SONG = f"open({str(canary)!r}, 'w').close()"


def sing(_=None):
    canary.touch()


class Bird:
    def sing(self):
        sing()


def listen(queue):
    while True:
        queue.get()
        sing()


class Aviary(BaseManager):
    pass


Aviary.register("Bird", Bird)


def heard(patience):
    end = time.monotonic() + patience
    while not canary.exists() and time.monotonic() < end:
        time.sleep(0.01)
    found = canary.exists()
    canary.unlink(missing_ok=True)
    return found


def tried(way):
    way()
    outside = heard(10)
    with enclose("case") as scope:
        with suppress(Exception):
            way()
        inside = heard(0.2)
    with enclose("case") as asking, opening_for(), suppress(Exception):
        way()
    by_model = heard(10 if asking.breach is None else 0)
    return {"outside": outside, "inside": inside, "by": scope.breach and scope.breach.route,
            "by_model": by_model and asking.breach is None}


def by_joblib():
    from joblib import Parallel, delayed
    parallel = Parallel(n_jobs=2, batch_size=1)
    parallel(delayed(sing)() for _ in range(2))
    canary.unlink(missing_ok=True)
    return lambda: parallel(delayed(sing)() for _ in range(2))


def misnamed(context):
    from multiprocessing.pool import Pool
    return type("ThreadPool", (Pool,), {})(1, context=context)


def main():
    context = multiprocessing.get_context("fork")
    pool, executor = context.Pool(1), ProcessPoolExecutor(1, mp_context=context)
    executor.submit(os.getpid).result()
    pool_by_name = misnamed(context)
    aviary = Aviary(ctx=context)
    aviary.start()
    bird = aviary.Bird()
    queues = context.Queue(), context.JoinableQueue(), context.SimpleQueue()
    for queue in queues:
        context.Process(target=listen, args=(queue,), daemon=True).start()
    ways = {
        "submit": lambda: executor.submit(sing).result(),
        "executor_map": lambda: list(executor.map(sing, [1])),
        "apply": lambda: pool.apply(sing),
        "map": lambda: pool.map(sing, [1]),
        "apply_by_name": lambda: pool_by_name.apply(sing),
        "imap": lambda: list(pool.imap(sing, [1])),
        "imap_unordered": lambda: list(pool.imap_unordered(sing, [1])),
        "manager": lambda: bird.sing(),
        "queue": lambda: queues[0].put(1),
        "joinable_queue": lambda: queues[1].put_nowait(1),
        "simple_queue": lambda: queues[2].put(1),
    }
    found = {name: tried(way) for name, way in ways.items()}
    with enclose("case") as scope, ThreadPool(1) as threads:
        found["threads"] = threads.apply(len, ["abc"]) == 3
    found["threads"] = found["threads"] and scope.breach is None
    with enclose("case") as scope, suppress(Exception), ThreadPool(1) as threads:
        threads.map(queues[0].put, [1])
    found["by_a_thread"] = {"inside": heard(0.2), "by": scope.breach and scope.breach.route}
    log = logging.getLogger("birds")
    log.addHandler(logging.handlers.QueueHandler(queues[0]))
    with enclose("case") as scope:
        log.warning("a cat")
        found["log"] = heard(10) and scope.breach is None
    interpreters = __import__("_xxsubinterpreters" if sys.version_info < (3, 13) else "_interpreters")
    early, names = interpreters.create(), ["create", "run_string", "run_func", "exec", "call"]
    for name in [name for name in names if hasattr(interpreters, name)]:
        with enclose("case") as scope:
            try:
                getattr(interpreters, name)(*[early, SONG][: 0 if name == "create" else 2])
            except Exception:
                found[f"interpreter.{name}"] = scope.breach and scope.breach.route
    found["interpreter"] = heard(0)
    interpreters.run_string(early, SONG)
    found["interpreter_outside"] = heard(10)
    try:
        found["joblib"] = tried(by_joblib())
    except ImportError:
        pass
    print(json.dumps(found), flush=True)
    os._exit(0)


if __name__ == "__main__":
    main()
"""

EXECUTOR, POOL = "concurrent.futures.process.ProcessPoolExecutor", "multiprocessing.pool"
ROUTES = {
    "submit": EXECUTOR,
    "executor_map": EXECUTOR,
    "apply": POOL,
    "map": POOL,
    "apply_by_name": POOL,
    "imap": POOL,
    "imap_unordered": POOL,
    "manager": "multiprocessing.managers",
    "queue": "multiprocessing.Queue.put",
    "joinable_queue": "multiprocessing.JoinableQueue.put",
    "simple_queue": "multiprocessing.SimpleQueue.put",
}


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory):
    folder = tmp_path_factory.mktemp("pools")
    (folder / "program.py").write_text(PROGRAM)
    command = [sys.executable, str(folder / "program.py"), str(folder / "canary")]
    # Into files: the processes that it leaves would keep a pipe open.
    with (folder / "out").open("w") as out, (folder / "err").open("w") as err:
        program = subprocess.Popen(
            command, stdout=out, stderr=err, stdin=subprocess.DEVNULL, start_new_session=True
        )
        try:
            program.wait(120)
        finally:
            with suppress(ProcessLookupError):
                os.killpg(program.pid, signal.SIGKILL)
    told = (folder / "out").read_text()
    assert told, (folder / "err").read_text()
    return json.loads(told)


@pytest.mark.parametrize("way", ROUTES)
def test_a_case_hands_no_work_to_a_process_that_runs_already(way: str, found):
    tried = found[way]
    assert tried["outside"], "the canary never sang"
    assert not tried["inside"]
    assert tried["by"] == ROUTES[way]


@pytest.mark.parametrize("way", ROUTES)
def test_a_model_may_be_asked_in_a_process_that_runs_already(way: str, found):
    assert found[way]["by_model"]


def test_joblib_hands_no_work_to_its_processes_either(found):
    if "joblib" not in found:
        pytest.skip("joblib is not installed")
    assert found["joblib"]["outside"]
    assert not found["joblib"]["inside"]
    assert "loky" in found["joblib"]["by"]


def test_a_pool_of_threads_puts_nothing_into_a_queue_either(found):
    assert found["by_a_thread"] == {"inside": False, "by": "multiprocessing.Queue.put"}


def test_pools_of_threads_and_log_records_stay_free(found):
    assert found["threads"]
    assert found["log"]


def test_no_interpreter_is_made_or_used_in_a_case(found):
    module = "_xxsubinterpreters" if sys.version_info < (3, 13) else "_interpreters"
    newer = {"run_func", "exec", "call"} if sys.version_info >= (3, 13) else set[str]()
    for name in {"create", "run_string"} | newer:
        assert found[f"interpreter.{name}"] == f"{module}.{name}"
    assert not found["interpreter"]
    assert found["interpreter_outside"]
