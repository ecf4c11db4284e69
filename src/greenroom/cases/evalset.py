"""Cases that belong together."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, field, replace
from typing import cast

from greenroom.cases.case import Case
from greenroom.cases.parts import MetricLike
from greenroom.errors import BadCase
from greenroom.ledger.plain import Json
from greenroom.ledger.records import record


@record
class EvalSet:
    """Cases that belong together, each with an id of its own.

    `metrics` measure every case, beside its own; `trials` is how often each should be played.
    `shape` says what kind of file it was read from, `extra` keeps what that said beyond all this.
    """

    id: str
    cases: Sequence[Case] = ()
    _: KW_ONLY
    name: str = ""
    description: str = ""
    metadata: Mapping[str, Json] = field(default_factory=dict[str, Json])
    metrics: Sequence[MetricLike] = ()
    trials: int = 1
    extra: Mapping[str, Json] | None = None
    shape: str = field(default="", compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "cases", tuple(self.cases))
        if type(self.trials) is not int or self.trials < 1:
            raise BadCase(f"eval set {self.id!r} has trials={self.trials!r}; give 1 or more.")
        seen: set[str] = set()
        for case in self.cases:
            if not isinstance(case, Case):  # pyright: ignore[reportUnnecessaryIsInstance]
                raise BadCase(
                    f"eval set {self.id!r} holds {cast(object, case)!r}, which is no Case."
                )
            if case.id in seen:
                raise BadCase(f"eval set {self.id!r} has two cases {case.id!r}; rename one.")
            seen.add(case.id)

    def __iter__(self) -> Iterator[Case]:
        return iter(self.cases)

    def __len__(self) -> int:
        return len(self.cases)

    def __getitem__(self, case_id: str) -> Case:
        for case in self.cases:
            if case.id == case_id:
                return case
        raise BadCase(
            f"eval set {self.id!r} has no case {case_id!r}; it has {[c.id for c in self.cases]}."
        )

    def tagged(self, tag: str) -> "EvalSet":
        """The cases that carry `tag`."""
        return replace(self, cases=[case for case in self.cases if tag in case.tags])
