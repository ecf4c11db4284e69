"""`greenroom eval-set`: files made, filled, listed, merged and converted."""

import json
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import click

from greenroom.apps.cli.exits import BAD_INPUT, Stopped, aside, put_out, put_out_data, put_out_json
from greenroom.apps.cli.report_output import check_unused, open_store
from greenroom.cases import (
    Case,
    EvalSet,
    Expect,
    Turn,
    evalset_schema,
    harvest,
    merge,
)
from greenroom.cases import from_template as new_case
from greenroom.cases.files import read_evalset, write_evalset
from greenroom.cases.files.additions import add_cases
from greenroom.cases.files.changes import changing
from greenroom.cases.files.documents import stem_of
from greenroom.cases.files.removals import remove_cases
from greenroom.cases.files.save import evalset_text, save_text
from greenroom.cases.names import free_id, id_trouble
from greenroom.cases.suffixes import SUFFIXES
from greenroom.errors import BadCase, BadFile, BadInput
from greenroom.ledger import Ledger, call
from greenroom.ledger.messages import ToolCall
from greenroom.ledger.plain import is_object
from greenroom.ledger.questions import started
from greenroom.ledger.safe_text import harmless
from greenroom.reports.words import printable
from greenroom.results.words import number_of, shortened
from greenroom.store.runs import Key
from greenroom.suite.inputs.sources import gather

_WIDEST = 48
_HEADERS = ("id", "name", "turns", "tags")


def create(name: str, description: str, output: str, force: bool) -> None:
    """Write an empty set."""
    path = Path(output or f"{name}.evalset.json")
    if name.endswith(SUFFIXES):  # the file is given in place of its name
        path = Path(output or name)
        name = stem_of(Path(name))
    if trouble := id_trouble(name):
        raise BadInput(f"{trouble}. Give the set a plain name, such as 'refunds', or its file.")
    with changing(path):
        if path.exists() and not force:
            raise BadFile(f"{path} already exists; give another --output, or --force.")
        write_evalset(EvalSet(name, name=name, description=description), path)
    put_out(f"created {path}")


def add(
    file: str,
    from_session: str,
    no_expect: bool,
    from_template: str | None,
    case_id: str,
    from_run: tuple[str, str, int],
    store: str,
) -> None:
    """Add a case to a file, in the file's own shape."""
    evalset = _opened(file)
    run, of_run, trial = from_run
    asked = None
    if not (run or from_session or from_template):
        asked = ask_for_case(evalset, case_id)  # before the file is locked: answers take time
    with changing(Path(file)):
        evalset = _opened(file)
        if asked is not None:
            case = asked
        elif run:
            place = open_store(store)
            ledger = place.ledger(place.run(run).id, Key(of_run, trial))
            wanted = case_id or free_id(of_run, evalset)
            case = _harvested(ledger, wanted, f"run {run}, case {of_run}", expect=not no_expect)
        elif from_session:
            case = _recorded(from_session, case_id, evalset, expect=not no_expect)
        else:
            assert from_template is not None
            case = new_case(from_template, case_id or free_id(from_template, evalset))
        add_cases(Path(file), case)
    put_out(f"added {case.id!r} to {file}, which now has {number_of(len(evalset) + 1, 'case')}")


def _opened(file: str) -> EvalSet:
    if not Path(file).exists():
        raise BadFile(f"there is no file {file!r}. Make it with `greenroom eval-set create NAME`.")
    return read_evalset(file)


def _recorded(path: str, case_id: str, evalset: EvalSet, *, expect: bool) -> Case:
    ledger = Ledger.load(path)
    first = started(ledger)
    recorded = first.case if first is not None else None
    known = str(recorded.get("id", "")) if is_object(recorded) else ""
    wanted = case_id or free_id(known or Path(path).stem, evalset)
    return _harvested(ledger, wanted, path, expect=expect)


def _harvested(ledger: Ledger, wanted: str, where: str, *, expect: bool) -> Case:
    try:
        return harvest(ledger, wanted, expect=expect)
    except BadCase as error:
        raise BadFile(f"{where}: {error}") from error


# A case made from answers


def ask_for_case(evalset: EvalSet, case_id: str) -> Case:
    """Ask the author for a new case; nothing is saved until they confirm it."""
    click.echo("A new case. Leave an answer empty to skip it; Ctrl-C ends without a change.\n")
    known = case_id or _ask("id", default=free_id("case", evalset), check=_unused(evalset))
    name = _ask("name")
    tags = [tag.strip() for tag in _ask("tags, separated by commas").split(",") if tag.strip()]
    turns: list[Turn] = []
    mocks: dict[str, Any] = {}
    while says := _ask(f"turn {len(turns) + 1}: the user says"):
        turns.append(Turn(says, _expected(mocks)))
    if not turns:
        raise BadInput("a case needs at least one turn in which the user says something.")
    case = Case(known, turns=turns, mocks=mocks, name=name, tags=tags)
    count = number_of(len(turns), "turn")
    click.echo(printable(f"\n{known!r}: {count}, mocks for {', '.join(mocks) or 'no tools'}"))
    if not click.confirm("Add it?", default=True):
        raise click.Abort
    return case


def _expected(mocks: dict[str, Any]) -> Expect | None:
    """Ask what is expected of one turn; each expected tool gets a mock."""
    contains = _ask("  the answer contains")
    tools: list[ToolCall] | None = None
    while tool := _ask("  a tool that should be called ('none' if no tool may be)"):
        if tool == "none" and tools is None:
            tools = []
            break
        tools = [*(tools or []), call(tool, **_json("  with the arguments", "{}", dict))]
        if tool not in mocks:
            mocks[tool] = _json(f"  what {tool} answers", '"ok"')
    if not contains and tools is None:
        return None
    return Expect(contains=contains or None, tools=tools)


def _ask(question: str, default: str = "", check: Callable[[str], str] | None = None) -> str:
    shown = bool(default)
    answer = click.prompt(
        question, default=default, show_default=shown, value_proc=check or (lambda text: text)
    )
    return str(answer).strip()


def _unused(evalset: EvalSet) -> Callable[[str], str]:
    def check(text: str) -> str:
        if text.strip() in evalset:
            raise click.BadParameter(f"{text!r} is taken; give another.")
        return text

    return check


def _json(question: str, default: str, kind: type = object) -> Any:
    """A value as JSON; text that is not JSON is a string, where a string is allowed."""

    def read(text: str) -> Any:
        try:
            value = json.loads(text)
        except ValueError:
            value = text
        if not isinstance(value, kind):
            raise click.BadParameter('write it as JSON: {"order": 7}')
        return value

    return click.prompt(f"{question}, as JSON", default=default, value_proc=read)


# Other changes


def remove(file: str, ids: tuple[str, ...]) -> None:
    """Remove cases from a file; an unknown id is an error, and changes nothing."""
    _opened(file)  # before its folder is locked: there may be none
    evalset = remove_cases(Path(file), *ids)
    put_out(
        f"removed {', '.join(map(repr, ids))} from {file}, which now has {number_of(len(evalset), 'case')}"
    )


def merge_files(
    files: tuple[str, ...], output: str, force: bool, deduplicate: bool, keep: str | None
) -> None:
    """Merge several files into one file of Greenroom's own shape."""
    check_unused(Path(output), "--output", force=force)
    sets = [read_evalset(file) for file in files]
    merged = merge(*sets, deduplicate=keep or deduplicate)  # pyright: ignore[reportArgumentType]
    write_evalset(merged, output)
    dropped = merged.metadata["duplicates_dropped"]
    also = f"; {number_of(dropped, 'duplicate')} dropped" if dropped else ""
    put_out(
        f"merged {number_of(len(sets), 'set')} into {output}: {number_of(len(merged), 'case')}{also}"
    )


def convert(source: str, target: str, shape: str, read_as: str, lossy: bool, force: bool) -> None:
    """Write a file in another shape; anything lost is listed, and refused unless `lossy`."""
    check_unused(Path(target), "TARGET", force=force)
    evalset = read_evalset(source, shape=read_as or None)
    as_text = partial(evalset_text, evalset, Path(target), shape=shape or None)
    try:
        as_text()
    except BadFile as error:
        as_text(lossy=True)  # raises again what is wrong besides
        if not lossy:
            raise Stopped(f"{error} Or convert with --lossy.", BAD_INPUT) from error
        aside(f"lossy: {str(error).partition('. Keep that')[0]}")
    write_evalset(evalset, target, shape=shape or None, lossy=lossy)
    put_out(f"{source} ({evalset.shape}) → {target}: {number_of(len(evalset), 'case')}")


def schema(output: str) -> None:
    """Print or write the schema of our own files."""
    text = json.dumps(evalset_schema(), indent=2) + "\n"
    if not output:
        put_out_json(text)
        return
    save_text(text, Path(output))
    put_out(f"wrote {output}")


# List


def list_cases(file: str, filters: Sequence[str], verbose: bool, as_json: bool) -> None:
    """Print a line for each case, and how many there are."""
    found = gather(file, configs=False).evalset
    total = len(found)
    if filters:
        found = found.filter(*filters)
        aside(f"filtered to {len(found)}/{total}")
    if as_json:
        put_out_data(
            [
                {
                    "id": case.id,
                    "name": case.name,
                    "description": case.description,
                    "turns": len(case.script),
                    "simulated_user": case.user is not None,
                    "tags": list(case.tags),
                }
                for case in found
            ]
        )
        return
    # Plain columns, because a prettier table of ten thousand rows would take seconds.
    rows = [_HEADERS, *map(_row, found)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = [
        "  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    ]
    for number, case in enumerate(found if verbose else (), start=1):
        said = (f"user: {turn.says}" for turn in case.script if turn.says)
        for text in filter(None, (case.description, *said)):
            lines[number] += f"\n{harmless(text)}".replace("\n", "\n    ")
    put_out("\n".join([*lines, number_of(len(found), "case")]))


def _row(case: Case) -> tuple[str, ...]:
    # A simulated user who follows the script takes as many turns as they like.
    turns = f"{len(case.script)}{'+' if case.user is not None else ''}"
    cells = (case.id, case.name, turns, ", ".join(map(str, case.tags)))
    return tuple(shortened(harmless(text).replace("\n", " "), _WIDEST) for text in cells)
