"""Eval sets: cases that belong together."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from hashlib import blake2b
from pathlib import Path
from typing import Any, cast

from greenroom.cases.case import Case
from greenroom.cases.criteria import Criterion
from greenroom.cases.parts import MetricLike
from greenroom.cases.problems import shown
from greenroom.errors import BadCase, BadInput

MOST_TRIALS = 100_000
"""The most trials of one case; a run of more would not end in a lifetime."""


@dataclass(frozen=True, slots=True)
class EvalSet:
    """Cases that belong together, each with its own id.

    `metrics` measure every case, in addition to its own; `trials` is how often each is run.
    `shape` says what kind of file it was read from, `extra` keeps anything else that it said.
    `usual` is how such files are judged without a config; if it is None, cases are
    judged by what they expect. `part` says which part of a larger set this is, such as `2 of 4`.
    """

    id: str
    cases: Sequence[Case] = ()
    _: KW_ONLY
    name: str = ""
    description: str = ""
    metadata: Mapping[str, Any] = field(default_factory=dict[str, Any])
    metrics: Sequence[MetricLike] = ()
    trials: int = 1
    extra: Mapping[str, Any] | None = None
    shape: str = field(default="", compare=False)
    usual: Sequence[Criterion] | None = field(default=None, compare=False)
    part: str = field(default="", compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "cases", tuple(self.cases))
        if type(self.trials) is not int or not 1 <= self.trials <= MOST_TRIALS:
            raise BadCase(
                f"eval set {self.id!r} has trials={shown(self.trials)}; give a whole number from 1 to "
                f"{MOST_TRIALS:,}."
            )
        seen: set[str] = set()
        for case in self.cases:
            if not isinstance(case, Case):  # pyright: ignore[reportUnnecessaryIsInstance]
                raise BadCase(
                    f"eval set {self.id!r} holds {cast(object, case)!r}, which is not a Case."
                )
            if case.id in seen:
                raise BadCase(f"eval set {self.id!r} has two cases {case.id!r}; rename one.")
            seen.add(case.id)

    # A container of cases, by id

    def __iter__(self) -> Iterator[Case]:
        return iter(self.cases)

    def __len__(self) -> int:
        return len(self.cases)

    def __contains__(self, case: object) -> bool:
        """Whether a case, or one of this id, is in the set."""
        return case in self.cases if isinstance(case, Case) else case in self.ids

    def __getitem__(self, case_id: str) -> Case:
        for case in self.cases:
            if case.id == case_id:
                return case
        raise BadCase(f"eval set {self.id!r} has no case {case_id!r}; it has {self.ids}.")

    def get(self, case_id: str, default: Case | None = None) -> Case | None:
        """The case of this id, or `default`."""
        return next((case for case in self.cases if case.id == case_id), default)

    @property
    def ids(self) -> list[str]:
        """The ids of its cases, in order."""
        return [case.id for case in self.cases]

    @property
    def tags(self) -> list[str]:
        """Every tag of its cases, once, in alphabetical order."""
        return sorted({str(tag) for case in self.cases for tag in case.tags})

    def with_cases(self, *cases: Case) -> "EvalSet":
        """The set with more cases at its end."""
        return replace(self, cases=[*self.cases, *cases])

    def without(self, *ids: str) -> "EvalSet":
        """The set without these cases; an id that it does not have is an error."""
        leaving = {self[case_id].id for case_id in ids}
        return replace(self, cases=[case for case in self.cases if case.id not in leaving])

    # Fewer cases

    def filter(self, *patterns: str) -> "EvalSet":
        """The cases whose id, name or tag matches any of these globs, see `matches_filter`.

        A pattern with `!` before it leaves cases out. Patterns that match nothing are an error.
        """
        from greenroom.cases.filters import chosen

        return replace(self, cases=chosen(self.cases, patterns, f"eval set {self.id!r}"))

    def tagged(self, tag: str) -> "EvalSet":
        """The cases that have `tag`."""
        return replace(self, cases=[case for case in self.cases if tag in case.tags])

    def limit(self, n: int) -> "EvalSet":
        """The first `n` cases."""
        return replace(self, cases=self.cases[: _positive(n, "limit")])

    def sample(self, n: int, *, seed: int = 0) -> "EvalSet":
        """`n` cases drawn at random with `seed`, in the order of the set.

        The draw depends on ids only: it is the same on every machine, a larger sample contains the
        smaller one, and adding a case to the set changes at most one place in it.
        """
        drawn = sorted(self.ids, key=lambda case_id: _lot(case_id, seed))
        kept = set(drawn[: _positive(n, "sample")])
        return replace(self, cases=[case for case in self.cases if case.id in kept])

    # Files

    @classmethod
    def load(cls, path: str | Path) -> "EvalSet":
        """The eval set kept in a file."""
        from greenroom.cases.files import read_evalset

        return read_evalset(path)

    def save(self, path: str | Path, *, lossy: bool = False) -> None:
        """Write the set to a file; what is code is refused, or left out if `lossy`."""
        from greenroom.cases.files import write_evalset

        write_evalset(self, path, lossy=lossy)


def _positive(n: int, verb: str) -> int:
    if type(n) is not int or n < 1:
        raise BadInput(f"{verb}({n!r}) would leave no cases; give a whole number, 1 or more.")
    return n


def _lot(case_id: str, seed: int) -> bytes:
    return blake2b(f"{seed}\0{case_id}".encode(errors="surrogatepass"), digest_size=16).digest()
