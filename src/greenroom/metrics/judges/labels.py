"""Judges that choose one of several labels."""

from collections.abc import Mapping
from typing import Any, cast

from greenroom.errors import BadMetric
from greenroom.metrics.judges.forms import Labels
from greenroom.metrics.judges.options import JUDGE, checked_text, checked_threshold
from greenroom.metrics.judges.prompted import Judge, Prompt, one_verdict


def labelled(asked: Prompt, labels: object, passing: object) -> Judge:
    """A judge that gives a label: worth a number each, or good if among `passing`."""
    bar = checked_threshold(asked.threshold, JUDGE, asked.where)
    form = Labels(label_values(labels, passing, asked.where))
    return one_verdict(asked, form, bar, asked.shown(form="label", labels=labels, passing=passing))


def label_values(labels: object, passing: object, where: str) -> dict[str, float]:
    """What each label is worth: as given, or 1 for those that pass and 0 for the rest."""
    if isinstance(labels, Mapping):
        worth = cast("Mapping[Any, Any]", labels)
        if passing is not None:
            raise BadMetric(f"{where} has labels with values and `passing`; give one of both.")
        found = {label: _worth(label, value, where) for label, value in worth.items()}
    else:
        good = _listed(passing, "passing", where)
        every = _listed(labels, "labels", where)
        if strange := [label for label in good if label not in every]:
            raise BadMetric(
                f"{where} has {strange[0]!r} in `passing`, which is none of its labels."
            )
        found = {label: float(label in good) for label in every}
    if len(set(found.values())) < 2:
        raise BadMetric(f"{where} has labels={labels!r}; give at least one good and one bad label.")
    return found


def _listed(given: object, option: str, where: str) -> list[str]:
    if isinstance(given, list | tuple):
        return [checked_text(label, option, where) for label in cast("list[object]", given)]
    raise BadMetric(f"{where} has {option}={given!r}; give a list of texts.")


def _worth(label: object, value: object, where: str) -> float:
    checked_text(label, "labels", where)
    if type(value) in (int, float) and 0 <= cast(float, value) <= 1:
        return float(cast(float, value))
    raise BadMetric(f"{where} has the label {label!r} worth {value!r}; the scale is 0 to 1.")
