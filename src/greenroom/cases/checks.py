"""Finds everything that is wrong with a set of cases, each problem with its place."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, cast

from greenroom.cases.case import EXPECTATIONS, Case, Expect, Turn
from greenroom.cases.criteria import Criterion
from greenroom.cases.data import case_data
from greenroom.cases.evalset import EvalSet
from greenroom.cases.fields import blank_words, empty_expectation, silence
from greenroom.cases.filters import near_words
from greenroom.cases.names import id_trouble
from greenroom.cases.parts import MetricLike
from greenroom.cases.problems import Problem, at
from greenroom.cases.templates import BLANK
from greenroom.cases.users import never_speaks
from greenroom.errors import BadInput, BadValue
from greenroom.ledger.changes import BUILT_IN_SCOPES
from greenroom.ledger.messages import ToolCall
from greenroom.ledger.plain import Json, is_array, is_object

MetricCheck = Callable[[MetricLike], BadInput | None]
"""Returns why a metric is refused, or None; passed to `check` by callers that know the metrics."""


def check(
    cases: EvalSet | Iterable[Case], *, metric_check: MetricCheck | None = None
) -> list[Problem]:
    """All problems of these cases: what cannot be run, met or measured as written.

    `metric_check` says why a metric that is asked for by name is refused.
    """
    found: list[Problem] = []
    shared: Sequence[MetricLike] = ()
    if isinstance(cases, EvalSet):
        shared = (*cases.metrics, *(cases.usual or ()))
        found += _id_problems(cases.id, "id")
        if not cases.cases:
            fix = "Write one, or add one with `greenroom eval-set add`"
            found.append(Problem("cases", "the set has no cases, so nothing can be evaluated", fix))
        found += _metric_problems(cases.metrics, "metrics", metric_check)
    first: dict[str, int] = {}
    for index, case in enumerate(cases):
        where = f"cases[{index}]"
        if first.setdefault(case.id, index) != index:
            message = f"the id {case.id!r} is already used by cases[{first[case.id]}]"
            found.append(Problem(f"{where}.id", message, "Rename one"))
        found += _case_problems(case, where, shared)
        found += _metric_problems(case.metrics, f"{where}.metrics", metric_check)
    return found


def _case_problems(case: Case, where: str, shared: Sequence[MetricLike]) -> Iterator[Problem]:
    yield from _id_problems(case.id, f"{where}.id")
    yield from _tag_problems(case, where)
    yield from _script_problems(case, where)
    for turn, place in turns_with_places(case, where):
        if turn.expect is not None:
            yield from _expect_problems(turn.expect, f"{place}.expect")
    yield from _tool_problems(case, where)
    yield from scope_problems(case, where)
    yield from _blanks(case, where)
    if not case.metrics and not shared:
        yield from _unjudged(case, where)


def _unjudged(case: Case, where: str) -> Iterator[Problem]:
    """A problem for a case without metrics or expectations."""
    if not any(map(_expects, case.script)):
        message = "the case has neither metrics nor expectations, so nothing can be evaluated"
        yield Problem(
            where, message, "Add `expect` or `metrics`, or give the run metrics", hint=True
        )
    elif not case.implied:
        message = "`implied: false` leaves the case's expectations to its metrics, but it has none"
        yield Problem(where, message, "Add `metrics`, or leave out `implied`", hint=True)


def turns_with_places(case: Case, where: str) -> Iterator[tuple[Turn, str]]:
    """Each scripted turn and where it is written."""
    for index, turn in enumerate(case.script):
        yield turn, at(where, "turns", index) if case.turns else where


def _expects(turn: Turn) -> bool:
    return any(getattr(turn.expect, name, None) is not None for name in EXPECTATIONS)


# Ids and tags


def _id_problems(name: str, where: str) -> Iterator[Problem]:
    if trouble := id_trouble(name):
        yield Problem(where, trouble, "Give it a plain name, such as 'refund-twice'")


def _tag_problems(case: Case, where: str) -> Iterator[Problem]:
    seen: set[str] = set()
    for index, tag in enumerate(case.tags):
        place = f"{where}.tags[{index}]"
        if not tag.strip() or tag != tag.strip():
            yield Problem(place, f"the tag {tag!r} is blank or has blanks around it", "Trim it")
        elif tag in seen:
            yield Problem(place, f"the tag {tag!r} is given twice", "Remove one")
        else:
            seen.add(tag)


# What is said


def _script_problems(case: Case, where: str) -> Iterator[Problem]:
    if never_speaks(case):
        yield from silence(where).problems
    for turn, place in turns_with_places(case, where):
        if turn.says and not turn.says.strip():
            yield from blank_words(f"{place}.says", turn.says).problems
    messages = sum(not turn.is_blank for turn in case.script)
    if messages > case.stop.max_turns:
        message = (
            f"the script has {messages} messages, but the trial stops after {case.stop.max_turns}"
        )
        yield Problem(f"{where}.stop.max_turns", message, f"Set it to {messages} or more")


def _blanks(case: Case, where: str) -> Iterator[Problem]:
    """The blanks of a template that are not yet filled in."""
    try:
        data = case_data(case)
    except BadValue as error:
        yield Problem(where, str(error))
        return
    for path, text in _texts(data, where):
        if blank := BLANK.search(text):
            yield Problem(path, f"{blank.group()!r} is not filled in yet", "Fill it in")


def _texts(data: Json, where: str) -> Iterator[tuple[str, str]]:
    if isinstance(data, str):
        yield where, data
    elif is_object(data):
        for key, value in data.items():
            yield from _texts(key, where)
            yield from _texts(value, f"{where}.{key}")
    elif is_array(data):
        for index, value in enumerate(data):
            yield from _texts(value, f"{where}[{index}]")


# What is expected


def _expect_problems(expect: Expect, where: str) -> Iterator[Problem]:
    if expect == Expect():
        yield from empty_expectation(where).problems
    if expect.response and expect.contains:
        texts = [expect.contains] if isinstance(expect.contains, str) else expect.contains
        for text in texts:
            if text.casefold() not in expect.response.casefold():
                message = (
                    f"`contains` asks for {text!r}, which the expected `response` does not contain"
                )
                yield Problem(f"{where}.contains", message, "No answer can meet both: drop one")
    yield from _call_problems(expect.tools or (), f"{where}.tools")


def _call_problems(calls: Sequence[ToolCall | str], where: str) -> Iterator[Problem]:
    seen: set[str] = set()
    for index, wanted in enumerate(calls):
        name, key = (wanted, "") if isinstance(wanted, str) else (wanted.tool, wanted.id)
        place = f"{where}[{index}]"
        if not name.strip():
            yield Problem(place, "an expected call names no tool", "Name it")
        if key and key in seen:
            yield Problem(place, f"two expected calls have the id {key!r}", "Leave the ids out")
        seen.add(key)


def _tool_problems(case: Case, where: str) -> Iterator[Problem]:
    answered = _answered_tools(case)
    if answered is not None:
        for turn, place in turns_with_places(case, where):
            for index, wanted in enumerate((turn.expect and turn.expect.tools) or ()):
                name = wanted if isinstance(wanted, str) else wanted.tool
                if name.strip() and name not in answered:
                    message = (
                        f"the tool {name!r} is expected, but has no mock and is not allowed to run"
                    )
                    near = near_words([name], answered)
                    meant = f"Did you mean {near[0]!r}? " if near else ""
                    fix = f"{meant}Allow it for the run, or give the case a mock:"
                    example: Json = {"mocks": {name: {"value": "..."}}}
                    at_call = f"{place}.expect.tools[{index}]"
                    yield Problem(at_call, message, fix, hint=True, example=example)
    barred = bool(case.script) and all(t.expect and t.expect.tools == [] for t in case.script)
    for index, metric in enumerate(case.metrics) if barred and case.user is None else ():
        if (tool := wanted_tool(metric)) is not None:
            message = (
                f"the metric expects {tool!r} to be called, but every turn expects no calls at all"
            )
            fix = "No trial can meet both: drop one"
            yield Problem(f"{where}.metrics[{index}]", message, fix)


def _answered_tools(case: Case) -> set[str] | None:
    """The tools that get an answer in a rehearsal; None if code decides that."""
    allowed = [getattr(tool, "name", getattr(tool, "__name__", tool)) for tool in case.allow_tools]
    waits = getattr(case.user, "tools", {})
    if not isinstance(waits, Mapping) or not all(isinstance(name, str) for name in allowed):
        return None
    return {*case.mocks, *allowed, *cast("Mapping[str, Any]", waits)}


def wanted_tool(metric: MetricLike) -> str | None:
    """The tool that a `called` metric expects at least once."""
    if isinstance(metric, Criterion):
        given = metric.options
        least = given.get("at_least", 0 if "at_most" in given or given.get("never") else 1)
    else:
        least = getattr(getattr(metric, "bounds", None), "at_least", 0)
    return counted_tool(metric) if least else None


def counted_tool(metric: MetricLike) -> str | None:
    """The tool whose calls a `called` metric counts, from code or from a file."""
    if isinstance(metric, Criterion):
        tool = metric.options.get("tool") if metric.name == "called" else None
    else:
        tool = getattr(metric, "tool", None) if hasattr(metric, "bounds") else None
    return tool if isinstance(tool, str) else None


# Scopes and metrics


def scope_problems(case: Case, where: str) -> Iterator[Problem]:
    """Scopes of a case that look like misspelt built-in ones."""
    if case.state:
        yield from _scope_problems(case.state, f"{where}.state")
    if case.stop.state_matches:
        yield from _scope_problems(case.stop.state_matches, f"{where}.stop.state_matches")
    for turn, place in turns_with_places(case, where):
        expect = turn.expect
        if expect is None:
            continue
        if expect.state:
            yield from _scope_problems(expect.state, f"{place}.expect.state")
        for node, query in (expect.state_after or {}).items():
            yield from _scope_problems(query, f"{place}.expect.state_after.{node}")


def _scope_problems(state: Mapping[str, object], where: str) -> Iterator[Problem]:
    # Any scope is allowed, but one that is nearly a built-in scope is probably a mistake.
    for scope in state:
        near = near_words([scope], BUILT_IN_SCOPES) if scope not in BUILT_IN_SCOPES else []
        if near:
            message = f"the scope {scope!r} is not one of {', '.join(BUILT_IN_SCOPES)}"
            yield Problem(f"{where}.{scope}", message, f"Did you mean {near[0]!r}?", hint=True)


def _metric_problems(
    metrics: Sequence[MetricLike], where: str, problem: MetricCheck | None
) -> Iterator[Problem]:
    places = ((f"{where}[{index}]", metric) for index, metric in enumerate(metrics))
    return metric_problems(places, problem)


def metric_problems(
    metrics: Iterable[tuple[str, MetricLike]], problem: MetricCheck | None
) -> Iterator[Problem]:
    """What is wrong with metrics, each given with its place."""
    for place, metric in metrics:
        if isinstance(metric, Criterion) and not _is_threshold(metric.threshold):
            message = f"the threshold of {metric.name!r} is {metric.threshold!r}"
            yield Problem(f"{place}.threshold", message, "Give a number from 0 to 1")
        elif problem is not None and (error := problem(metric)):
            yield metric_problem(place, metric, error)


def metric_problem(place: str, metric: MetricLike, error: BadInput) -> Problem:
    """The problem of a refused metric, placed at the wrong option or at the whole metric."""
    option = getattr(error, "option", "")
    if isinstance(metric, Criterion) and option in metric.options:
        place = at(place, option)
    return Problem(place, str(error))


def _is_threshold(given: object) -> bool:
    if given is None:
        return True
    return isinstance(given, int | float) and not isinstance(given, bool) and 0 <= given <= 1
