"""What a report says once of all its trials, gathered as they end: a large run keeps none of them."""

from dataclasses import dataclass, field

from greenroom.results.result import CaseResult
from greenroom.results.text import listed, number_of
from greenroom.results.trial_verdict import REPLAYED, UNSEEN
from greenroom.world.rates import Rates


@dataclass(slots=True)
class CommonNotes:
    """What many trials have in common."""

    _said: set[str] = field(default_factory=set[str])
    _replaced: dict[str, list[str]] = field(default_factory=dict[str, list[str]])
    """The trials in which hooks replaced what a metric found, by the metric."""
    _models: set[str] = field(default_factory=set[str])

    def add(self, result: CaseResult) -> None:
        """One more trial."""
        # What is true of every case whose calls were not all seen, or were replayed, is said once.
        for note in result.notes:
            if note in UNSEEN.values() or note.startswith(f"{REPLAYED}:"):
                self._said.add(note)
        for name in result.replaced:
            self._replaced.setdefault(name, []).append(result.label)
        self._models.update(result.models, result.user_models, result.judge_models)

    def notes(self, rates: Rates) -> list[str]:
        """A line for each: what was not seen, was replayed or replaced; a rate that held nothing back."""
        replaced = [
            f"a hook replaced what {name!r} found in {number_of(len(labels), 'trial')}: {listed(labels)}"
            for name, labels in self._replaced.items()
        ]
        # Most likely the name of the model is misspelt.
        unused = [
            f"the rate of {model!r} held nothing back: no model of that name answered, only "
            f"{', '.join(sorted(self._models))}"
            for model in rates
            if self._models and model not in self._models
        ]
        return [*sorted(self._said), *replaced, *unused]
