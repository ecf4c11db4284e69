"""Trials that people grade blind: what they are shown, how far they agree, and the routes for both."""

from pathlib import Path
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.routing import BaseRoute, Route

from greenroom.apps.web.access import USER
from greenroom.apps.web.answers import acting, reading, text_in
from greenroom.apps.web.children import command_line
from greenroom.errors import BadFile, BadInput, NotFound
from greenroom.ledger.ledger import Ledger
from greenroom.ledger.plain import Json
from greenroom.reports.page.shapes import (
    AgreementLine,
    AgreementPage,
    LabelApart,
    LabelItem,
    LabelLine,
)
from greenroom.reports.page.short_values import Trimmer
from greenroom.reports.page.timeline import timeline
from greenroom.results.labels import ANSWERS, JUDGE, LabelSet, blind, rater_name

_FIELDS = ("kind", "who", "text", "value", "files", "bad")
"""The columns that a rater sees: not when, how long, at which node, or from where an answer came."""


class LabelSets:
    """The label sets below one folder."""

    def __init__(self, folder: str) -> None:
        self._folder = Path(folder)

    def names(self) -> list[str]:
        """Every set, by the name of its folder; a link that leads elsewhere is not one."""
        files = sorted(self._folder.glob("*/labels.json"))
        home = self._folder.resolve()
        return [one.parent.name for one in files if one.resolve().is_relative_to(home)]

    def set(self, name: str) -> LabelSet:
        """The set with this name."""
        if name not in self.names():
            raise NotFound(f"there is no label set {name!r} in {str(self._folder)!r}.")
        return LabelSet(self._folder / name)

    def lines(self) -> list[LabelLine]:
        """All sets, for the list."""
        return [_line(name, self._folder / name) for name in self.names()]

    def next(self, name: str, rater: str) -> LabelItem:
        """The next trial for this person to grade, without anything that could sway them."""
        found = self.set(name)
        mine = [one.item for one in found.grades() if one.rater == rater_name(rater)]
        left = found.left(rater)
        return LabelItem(
            question=found.settings.question,
            answers=list(ANSWERS),
            item=left[0] if left else "",
            timeline=blind_rows(found.ledger(left[0])) if left else [],
            done=len(mine),
            total=len(found.items),
            last=mine[-1] if mine and left else "",
            command=command_line(["labels", "grade", str(found.folder), "--rater", rater]),
        )

    def grade(self, name: str, rater: str, item: str, value: str | None, note: str) -> LabelItem:
        """Write a grade down, and return the next trial to grade."""
        self.set(name).grade(item, rater, value, note)
        return self.next(name, rater)

    def agreement(self, name: str, rater: str) -> AgreementPage:
        """How far this person agrees with the judge and with others, once they have graded everything.

        Earlier it would sway them: people who learn that the judge disagrees grade the rest as the judge would.
        """
        found, rater = self.set(name), rater_name(rater)
        if found.left(rater):
            return AgreementPage(lines=[])
        known = {who: one for who, one in found.agreements(rater).items() if one.is_enough}
        lines = [
            AgreementLine(
                who=who,
                says=f"You and {who[1] if who[0] == rater else who[0]} {one}.",
                items=one.items,
                kappa=one.kappa,
                low=one.low,
                high=one.high,
            )
            for who, one in known.items()
        ]
        mine = [one for one in found.grades() if one.rater == rater]
        unsure = sum(1 for one in mine if one.value == "cannot tell")
        notes = [f"Cannot tell: {unsure} (left out)."] if unsure and lines else []
        return AgreementPage(lines=lines, notes=notes, apart=_apart(found))


def _line(name: str, folder: Path) -> LabelLine:
    try:
        found = LabelSet(folder)
        grades = found.grades()
    except BadFile as error:
        return LabelLine(name=name, why=str(error))
    people = dict.fromkeys(one.rater for one in grades)
    graded = {who: sum(1 for one in grades if one.rater == who) for who in people}
    return LabelLine(
        name=name, question=found.settings.question, items=len(found.items), graded=graded
    )


def _apart(found: LabelSet) -> list[LabelApart]:
    said = {**found.said(), JUDGE: found.verdicts()}
    apart: list[LabelApart] = []
    for name, item in found.items.items():
        answers = {who: words[name] for who, words in said.items() if name in words}
        if len(set(answers.values())) > 1:
            apart.append(
                LabelApart(item=name, said=answers, run=item.run, case=item.case, trial=item.trial)
            )
    return apart


def blind_rows(ledger: Ledger) -> list[dict[str, Any]]:
    """The rows of a conversation, without the names of agent and model, and without the outcome."""
    rows = timeline(blind(ledger), Trimmer())
    return [{name: row[name] for name in _FIELDS if name in row} for row in rows]


# Routes


def reading_routes(labels: LabelSets) -> list[BaseRoute]:
    """The routes that show what to grade next, and how far people agree."""

    def whose(request: Request) -> tuple[str, str]:
        rater = _rater(request, request.query_params.get("rater"))
        return str(request.path_params["set"]), rater

    return [
        Route("/api/labels", reading(lambda _: {"labels": labels.lines()})),
        Route("/api/labels/{set}/next", reading(lambda asked: labels.next(*whose(asked)))),
        Route(
            "/api/labels/{set}/agreement", reading(lambda asked: labels.agreement(*whose(asked)))
        ),
    ]


def grading_routes(labels: LabelSets) -> list[BaseRoute]:
    """The routes that take grades; a read-only server leaves them out."""

    async def grade(request: Request, body: dict[str, Json]) -> object:
        value, note = body.get("value"), body.get("note") or ""
        if not isinstance(note, str) or not (value is None or isinstance(value, str)):
            raise BadInput("the value of a grade must be a string or null, and its note a string.")
        rater = _rater(request, body.get("rater"))
        item = text_in(body, "item")
        return await run_in_threadpool(
            labels.grade, str(request.path_params["set"]), rater, item, value, note
        )

    return [Route("/api/labels/{set}/grades", acting(grade), methods=["POST"])]


def _rater(request: Request, given: Json) -> str:
    """The name of the rater: as the proxy gives it, otherwise as the page does."""
    return str(request.scope.get(USER) or given or "")
