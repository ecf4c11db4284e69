"""A metric by its name, as files and configs write it."""

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, field, replace
from typing import Any, cast

from greenroom.errors import BadMetric
from greenroom.ledger.plain import Json, plain

_OWN = ("criterion", "threshold", "critical")
COUNTS = "counts"
"""The option of a judge that says how its votes are counted."""
_ADK_JUDGES = frozenset(
    (
        "final_response_match_v2",
        "rubric_based_final_response_quality_v1",
        "rubric_based_tool_use_quality_v1",
        "hallucinations_v1",
        "safety_v1",
        "response_evaluation_score",
        "per_turn_user_simulator_quality_v1",
    )
)


@dataclass(frozen=True, slots=True)
class Criterion:
    """The name of a metric, the score it must reach, and its options, all of it data.

    The name is looked up when measuring; a plug-in's is treated like a built-in one. If a `critical` one falls
    short, the others of its case are not measured.
    """

    name: str
    _: KW_ONLY
    threshold: float | None = None
    options: Mapping[str, Any] = field(default_factory=dict[str, Any])
    critical: bool = False

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name.strip():  # pyright: ignore[reportUnnecessaryIsInstance]
            raise BadMetric(f"a criterion has the name {self.name!r}; name a metric.")
        if not isinstance(self.critical, bool):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise BadMetric(f"criterion {self.name!r} has critical={self.critical!r}; give a bool.")
        if clash := [key for key in _OWN if key in self.options]:
            raise BadMetric(
                f"criterion {self.name!r} has {clash[0]!r} among its options, but that is a field of the "
                f"criterion itself; give it next to the name."
            )


def criterion_data(criterion: Criterion) -> Json:
    """The criterion as JSON: its bare name, or a mapping with more fields."""
    data: dict[str, Json] = {"criterion": criterion.name}
    if criterion.threshold is not None:
        data["threshold"] = criterion.threshold
    if criterion.critical:
        data["critical"] = True
    data |= cast("dict[str, Json]", plain(criterion.options, f"criterion {criterion.name!r}"))
    return criterion.name if len(data) == 1 else data


def criterion_from(data: object, where: str) -> Criterion:
    """The criterion described in `data`; BadMetric if it is not one."""
    if isinstance(data, str):
        return Criterion(data)
    if not isinstance(data, Mapping) or "criterion" not in data:
        raise BadMetric(
            f"{where} is {data!r}; give the name of a metric, or {{criterion: name, threshold: ...}}."
        )
    given = dict(cast("Mapping[str, Any]", data))
    return Criterion(
        given.pop("criterion"),
        threshold=given.pop("threshold", None),
        critical=given.pop("critical", False),
        options=given,
    )


def is_adk_judge(criterion: Criterion) -> bool:
    """Whether google-adk has a judge of this name, and so its own way to count votes."""
    return criterion.name in _ADK_JUDGES


def counted_as_adk(criterion: Criterion) -> Criterion:
    """The criterion as google-adk counts it, if it is a judge of google-adk and sets nothing else."""
    if not is_adk_judge(criterion) or COUNTS in criterion.options:
        return criterion
    return replace(criterion, options={**criterion.options, COUNTS: "adk"})
