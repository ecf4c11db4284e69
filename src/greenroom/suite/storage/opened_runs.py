"""Runs of a store as a process opens them: started, resumed, or one shard of a shared run."""

from collections.abc import Callable, Collection, Mapping
from functools import cache, partial

from msgspec.structs import replace

from greenroom.cases.evalset import EvalSet
from greenroom.errors import BadInput
from greenroom.ledger.redaction import Redactor, clean_ids, redactor
from greenroom.results.words import number_of
from greenroom.store.failpoints import failpoint
from greenroom.store.redaction import Cleaner
from greenroom.store.runs import Key, Plan, Run
from greenroom.store.store import Store
from greenroom.store.writer import Writer
from greenroom.suite.options import Values
from greenroom.suite.storage.attempts import EarlierAttempts
from greenroom.suite.storage.origin import commit, who
from greenroom.suite.storage.resume import (
    changed_cases,
    check_plan,
    cut_trials,
    is_retry,
    positions,
)
from greenroom.suite.storage.stored_cases import Cases
from greenroom.suite.storage.stored_run import StoredRun
from greenroom.suite.trial_state import Trial


async def begin_run(store: Store, plan: Plan, evalset: EvalSet, options: Values) -> StoredRun:
    """Begin a run in the store; one that another process has just begun by its name is that one's to finish."""
    clean = redactor()
    cases = Cases(evalset, clean)
    plan = _begun_here(replace(_without_secrets(plan, clean), set_digest=cases.set_digest), clean)
    writer = Writer(store, Cleaner(redactor))
    try:
        run = await writer.do(lambda connection: store.begin(plan, connection))
        if run.begun_before:
            await writer.close()
            return await resume_run(store, plan, evalset, run.id, options)
        return StoredRun(store, writer, run, store.journal(run.id), cases, {}, {})
    except BaseException:
        await writer.close()
        raise


async def named_run(store: Store, plan: Plan, evalset: EvalSet, options: Values) -> StoredRun:
    """Resume the unfinished run of this name, or begin it; a part of it, if several processes share it."""
    clean = redactor()
    named = _without_secrets(plan, clean)
    if not options["shard"]:
        before = store.latest_called(named.called, named)
        if before is None:
            return await begin_run(store, plan, evalset, options)
        return await resume_run(store, plan, evalset, before.id, options)
    named = _begun_here(replace(named, set_digest=Cases(evalset, clean).set_digest), clean)
    writer = Writer(store, Cleaner(redactor))
    try:
        run = await writer.do(lambda connection: store.begin(named, connection))
    finally:
        await writer.close()
    return await resume_run(store, plan, evalset, run.id, options)


async def resume_run(
    store: Store, plan: Plan, evalset: EvalSet, run_id: str, options: Values
) -> StoredRun:
    """Resume a run of the store, the latest unfinished one without an id."""
    clean = redactor()
    plan = _without_secrets(plan, clean)
    retry: bool = options["retry_errors"]
    before = store.run(run_id) if run_id else store.latest_open(plan, errors=retry)
    before = replace(before, shard=options["shard"])
    _check_shards(before)
    writer, journal = Writer(store, Cleaner(redactor)), None
    try:
        await writer.do(lambda _: None)  # an earlier format is left behind before the run is locked
        # Only a finished run has no journal, and a shard that has not begun.
        is_begun = before.status != "finished" and not before.shard
        journal = store.journal(before.id, before.shard, is_begun=is_begun)
        done = store.keys(before.id)  # no other process adds to them from here on
        without_errors = cache(partial(store.keys, before.id, broken=False))
        cut = cut_trials(
            journal,
            done,
            lambda trial: trial.key not in without_errors() and is_retry(trial, store, before),
        )
        if retry:
            known = without_errors()
        else:
            # A trial that was being run again when the process was interrupted is not finished.
            known = {k: d for k, d in done.items() if k not in cut or cut[k].digest != d}
        ids = {trial.digest: key.case_id for key, trial in cut.items()}
        cases = Cases(evalset, clean, ids | {digest: key.case_id for key, digest in done.items()})
        plan = _begun_here(replace(plan, set_digest=cases.set_digest), clean, before.plan)
        if before.shard:
            _check_same_cases(before, plan, done, cases.digests)
        accept: bool = options["accept_changes"]
        check_plan(before, plan, done, cases.digests, accept_changes=accept)
        places = positions(done, plan, cases.digests)
        run = await writer.do(lambda connection: store.resume(before, plan, places, connection))
        failpoint("resume.read")
        notes = [*changed_cases(done.items(), cases.digests), *_left_out(before, plan)]
        notes += _left_out_trials(before, plan, done, cases.digests)
        notes += _other_shards(store, before)
        allowed: Collection[object] = options["allow_tools"]
        again = {key: digest for key, digest in done.items() if key not in known}
        remade = [n for n in plan.metrics if plan.metrics[n] != before.plan.metrics.get(n)]
        attempts = EarlierAttempts(store, run.id, again, remade) if again else None
        return StoredRun(store, writer, run, journal, cases, known, cut, notes, allowed, attempts)
    except BaseException:
        if journal is not None:
            journal.close(remove=False)
        await writer.close()
        raise


def _begun_here(plan: Plan, clean: Redactor, before: Plan | None = None) -> Plan:
    """The plan with the run's author and commit; for a resumed run, those it began with."""
    by, at = (clean.value(who()), commit()) if before is None else (before.by, before.commit)
    if before is not None:
        called, against = plan.called or before.called, plan.against or before.against
        plan = replace(plan, called=called, against=against)
    return replace(plan, by=by, commit=at)


def _check_shards(run: Run) -> None:
    """Refuse to run one shard of an unshared run, or the whole of a shared one."""
    shards = int(run.shard.partition("/")[2] or 0)
    if run.plan.shards != shards:
        shared = f"is shared by {run.plan.shards} shards" if run.plan.shards else "is not shared"
        how = (
            f"--shard N/{run.plan.shards} --resume-or-new {run.plan.called}"
            if run.plan.shards
            else "--resume"
        )
        raise BadInput(f"run {run.id!r} {shared}; resume it with {how}.")


def _left_out(run: Run, plan: Plan) -> list[str]:
    """A note that a run is resumed with fewer cases, so that it can end without the others."""
    left_out = run.plan.cases - plan.cases
    if left_out <= 0:
        return []
    others = "1 case is" if left_out == 1 else f"{left_out} cases are"
    note = (
        f"begun with {run.plan.cases} cases and resumed with {plan.cases}: {others} left out. To run "
        f"all of them, resume run {run.id!r} by its id, with all its cases."
    )
    return [note]


def _left_out_trials(
    run: Run, plan: Plan, done: Mapping[Key, str], digests: Mapping[str, str]
) -> list[str]:
    """A note that a run is resumed with fewer trials of each case than it has finished."""
    most = plan.trials + plan.confirm
    beyond = [k for k, d in done.items() if k.trial > most and digests.get(k.case_id) == d]
    if not beyond:
        return []
    results = "the result of 1 trial is" if len(beyond) == 1 else f"{len(beyond)} results are"
    then, now = run.plan, plan.trials
    begun, how = number_of(then.trials, "trial"), [f"trials={max(key.trial for key in beyond)}"]
    if then.adaptive:
        begun, how = f"up to {begun}", ['trials="auto"']
    elif then.confirm or (then.against is not None and now == then.trials):
        # What confirms comes after the trials of the plan, and would be counted as one of them.
        again = max(key.trial for key in beyond) - then.trials
        how = [f"trials={then.trials}"] if then.trials != now else []
        how += ["the baseline again", f"confirm={max(then.confirm, again)}"] if again > 0 else []
    note = (
        f"begun with {begun} of each case and resumed with {now}: {results} left out. To have all of "
        f"them in the report, resume run {run.id!r} with {' and '.join(how)}."
    )
    return [note]


def _other_shards(store: Store, run: Run) -> list[str]:
    """A note on each unfinished run that differs from this shared one only in how many share it."""
    if not run.shard:
        return []
    set_and_name = run.plan.evalset_id, run.plan.name, run.plan.called
    return [
        f"run {other.id!r} is also called {run.plan.called!r}, was begun "
        f"{f'with {other.plan.shards} shards' if other.plan.shards else 'without shards'} and is not finished. "
        f"This is another run, with {run.plan.shards}: give every shard the same number, or delete the run that "
        f"is not needed (greenroom runs delete)."
        for other in store.runs(unfinished=True)
        if (other.plan.evalset_id, other.plan.name, other.plan.called) == set_and_name
        and other.plan.shards != run.plan.shards
    ]


def _check_same_cases(
    run: Run, plan: Plan, done: Mapping[Key, str], digests: Mapping[str, str]
) -> None:
    """Refuse a shard with other cases than the run began with: the shards would not add up to one set."""
    then, now = ((one.set_digest, one.cases, one.trials) for one in (run.plan, plan))
    if then != now or any(digests.get(key.case_id) != digest for key, digest in done.items()):
        raise BadInput(
            f"run {run.id!r} is shared by {run.plan.shards} shards, and has other cases or trials than "
            f"these. Give every shard the same; for these, use another name (--resume-or-new), or delete "
            f"that run."
        )


def finished_trials(
    store: Store, plan: Plan, evalset: EvalSet, options: Values
) -> tuple[Run, Callable[[Trial], bool]]:
    """The run that would be resumed, and which trials it would not run again; nothing is changed.

    A trial that was interrupted counts as one that has not run.
    """
    clean = redactor()
    plan = _without_secrets(plan, clean)
    resume, retry = options["resume"], bool(options["retry_errors"])
    run = store.latest_open(plan, errors=retry) if resume is True else store.run(resume)
    done = store.keys(run.id)
    known = store.keys(run.id, broken=False) if retry else done
    cases = Cases(evalset, clean, {digest: key.case_id for key, digest in done.items()})
    accept: bool = options["accept_changes"]
    plan = replace(plan, set_digest=cases.set_digest)
    check_plan(run, plan, done, cases.digests, accept_changes=accept)

    def is_done(trial: Trial) -> bool:
        key = cases.key(trial)
        return key in known and known[key] == cases.digests.get(key.case_id)

    return run, is_done


def _without_secrets(plan: Plan, redactor: Redactor) -> Plan:
    """The plan as it may be stored; digests reveal nothing."""
    clean = clean_ids((plan.name, plan.evalset_id, plan.agent, *plan.metrics), redactor)
    return replace(
        plan,
        name=clean[plan.name],
        evalset_id=clean[plan.evalset_id],
        agent=clean[plan.agent],
        reference=redactor.value(plan.reference),
        model=redactor.value(plan.model),
        called=redactor.value(plan.called),
        metrics={clean[name]: digest for name, digest in plan.metrics.items()},
        around={redactor.text(name): digest for name, digest in (plan.around or {}).items()},
    )
