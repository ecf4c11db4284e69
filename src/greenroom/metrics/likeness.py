"""How closely the agent's words resemble a reference: ROUGE, turn by turn."""

from collections.abc import Sequence
from typing import ClassVar, Literal, get_args

from greenroom.cases.case import Case, Expect
from greenroom.cases.scores import NotApplicable, Outcome, Score, Unmeasured, told_apart
from greenroom.ledger.ledger import Ledger
from greenroom.ledger.messages import is_blank
from greenroom.metrics.builtin import (
    BuiltIn,
    checked_choice,
    checked_switch,
    checked_threshold,
    written,
)
from greenroom.metrics.facts import reference_of, spoken
from greenroom.metrics.needs import WORDS, Needs
from greenroom.metrics.response import quoted
from greenroom.metrics.rouge import KINDS, RougeKind, rouge, words_in
from greenroom.metrics.turns import (
    MeasuredTurn,
    ScriptedTurn,
    lowest_score,
    mean_score,
    never_reached,
    scripted_turns,
)
from greenroom.world.world import World

RougeMode = Literal["f1", "recall", "precision"]
MODES: tuple[str, ...] = get_args(RougeMode)

USUAL_THRESHOLD = 0.8


class ResponseMatch(BuiltIn, frozen=True, kw_only=True):
    """Compares the last response of each turn with that turn's reference."""

    covers: ClassVar[tuple[str, ...]] = ("reference",)
    needs: ClassVar[Needs] = WORDS

    kind: RougeKind
    mode: RougeMode
    stem: bool
    threshold: float

    def needs_guard(self, case: Case) -> bool:
        """Whether it may take longer than reading both texts."""
        return self.kind == "rougeL"

    def measure(self, case: Case, ledger: Ledger, world: World) -> Outcome:
        """The mean over the turns that have a reference."""
        turns = [
            (turn, wanted)
            for turn in scripted_turns(case, ledger)
            if (wanted := self._reference(turn.expect))
        ]
        if not turns:
            return NotApplicable("no turn of the case has Expect(reference=...)")
        said = spoken(ledger)
        if isinstance(said, Unmeasured):
            return said
        found: list[MeasuredTurn] = []
        for turn, wanted in turns:
            one = self._measured(turn, wanted) if turn.reached else never_reached(turn)
            if isinstance(one, Unmeasured):
                return one
            found.append(one)
        return self._concluded(found)

    def _reference(self, expect: Expect) -> str | None:
        return reference_of(expect)

    def _concluded(self, turns: Sequence[MeasuredTurn]) -> Score:
        return mean_score(turns, self.name, self.threshold)

    def _measured(self, turn: ScriptedTurn, wanted: str) -> MeasuredTurn | Unmeasured:
        said = turn.response
        if is_blank(said):
            return Unmeasured(f"the agent's response is empty in turn {turn.number}")
        figures = rouge(wanted, said, self.kind, self.stem)
        if not figures.f1 and (blind := unreadable(wanted, self.kind)):
            return Unmeasured(f"the reference of turn {turn.number} {blind}")
        value: float = getattr(figures, self.mode)
        shares = figures._asdict()
        shown = [
            f"{name} {told_apart(value, self.threshold)}"
            if name == self.mode and value < self.threshold
            else f"{name} {share:.2f}"
            for name, share in shares.items()
        ]
        reason = f"{self.kind} {', '.join(shown)}; {self.mode} must reach {self.threshold:g}"
        if not figures.f1 and not words_in(said, stem=False):
            reason += f"; the response {quoted(said)} has no words"
        return MeasuredTurn(turn.number, value, reason, said, {"reached": True, **shares})


class ExpectedReference(ResponseMatch, frozen=True, kw_only=True):
    """The metric implied by references: every turn with a reference must resemble it."""

    def _reference(self, expect: Expect) -> str | None:
        return expect.reference

    def _concluded(self, turns: Sequence[MeasuredTurn]) -> Score:
        return lowest_score(turns, self.name, self.threshold)


def expected_reference() -> ExpectedReference:
    """The default likeness, where each turn must pass: a good turn does not make up for a bad one."""
    return ExpectedReference(
        kind="rouge1",
        mode="f1",
        stem=True,
        threshold=USUAL_THRESHOLD,
        **written("expected_reference", name="expected_reference"),
    )


def response_match_score(
    threshold: float = USUAL_THRESHOLD,
    *,
    kind: RougeKind = "rouge1",
    mode: RougeMode = "f1",
    stem: bool = True,
    name: str = "response_match_score",
) -> ResponseMatch:
    """Each turn's last response resembles the turn's reference; the value is the mean of ROUGE.

    The reference is `Expect(reference=...)`, else `Expect(response=...)`. `mode` says which part of ROUGE
    counts: how much of the reference was said ("recall"), how much of what was said is in it
    ("precision"), or both ("f1"). All three are in the details.
    """
    return _response_match("response_match_score", threshold, kind, mode, stem, name)


def reference_recall(
    threshold: float = USUAL_THRESHOLD,
    *,
    kind: RougeKind = "rouge1",
    mode: RougeMode = "recall",
    stem: bool = True,
    name: str = "reference_recall",
) -> ResponseMatch:
    """How much of the reference the response says, whatever else it says: for partial references."""
    return _response_match("reference_recall", threshold, kind, mode, stem, name)


def _response_match(
    factory: str, threshold: float, kind: RougeKind, mode: RougeMode, stem: bool, name: str
) -> ResponseMatch:
    checked_threshold(threshold, f"{factory}(...)")
    checked_choice(kind, KINDS, "kind", factory)
    checked_choice(mode, MODES, "mode", factory)
    checked_switch(stem, "stem", factory)
    shown = written(factory, threshold=threshold, kind=kind, mode=mode, stem=stem, name=name)
    return ResponseMatch(kind=kind, mode=mode, stem=stem, threshold=threshold, **shown)


def unreadable(reference: str, kind: RougeKind) -> str:
    """Why ROUGE cannot compare anything with this reference; empty if it can."""
    words, least = len(words_in(reference, stem=False)), 2 if kind == "rouge2" else 1
    if words >= least:
        return ""
    return (
        f"is {quoted(reference)}, in which ROUGE sees {words} of the {least} words it needs: signs "
        f"are not words. Use contains(...), exact(...) or a judge."
    )
