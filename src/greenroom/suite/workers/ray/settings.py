"""Which Ray cluster runs the trials of an evaluation, and what its nodes receive."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import parse_qs

from greenroom.errors import BadInput

_LISTS: Final = ("env", "pip")
_NUMBERS: Final = {"cpus": float, "processes": int, "patience": float}


@dataclass(frozen=True, slots=True)
class Ray:
    """A Ray cluster that runs the trials: `evaluate(..., on=Ray("ray://head:10001", env=["OPENAI_API_KEY"]))`.

    The command line says the same in one word: `--on "ray://head:10001?env=OPENAI_API_KEY"`.
    """

    address: str = ""
    """Where it is: `ray://head:10001`, or `head:6379` inside it. Empty: `$RAY_ADDRESS`, else the one on this machine."""
    env: Sequence[str] = ()
    """Names of variables whose values the workers need. They are sent to each worker, and shown nowhere."""
    cpus: float = 1.0
    """How many CPUs of a node one worker process takes."""
    processes: int | None = None
    """How many worker processes one actor manages; without a number, those of a node, 8 at most."""
    pip: Sequence[str] = ()
    """Packages that nodes install first, to try something out. What is always needed belongs in their image."""
    patience: float = 30.0
    """Seconds without a sign of life after which a node counts as lost."""

    def __post_init__(self) -> None:
        for name, value, is_right, wanted in (
            ("address", self.address, _is_text(self.address), "the address of a cluster"),
            ("env", self.env, _is_names(self.env), "a list of names of variables"),
            ("pip", self.pip, _is_names(self.pip), "a list of packages"),
            ("cpus", self.cpus, _is_above_zero(self.cpus), "a number above 0"),
            ("processes", self.processes, _is_count(self.processes), "a whole number from 1 on"),
            ("patience", self.patience, _is_above_zero(self.patience), "a number of seconds"),
        ):
            if not is_right:
                raise BadInput(f"Ray({name}={value!r}) should be {wanted}.")
        if self.address == "local":
            raise BadInput(
                "Ray('local') would start a cluster, which Greenroom never does by itself: start one yourself "
                "with `ray start --head`."
            )

    @classmethod
    def of(cls, given: "Ray | str") -> "Ray":
        """The cluster that `ray`, `ray://head:10001` or one of them with `?env=NAME&cpus=0.5` names."""
        if isinstance(given, Ray):
            return given
        where, _, query = given.partition("?")
        if where != "ray" and not (where.startswith("ray://") and len(where) > len("ray://")):
            raise BadInput(f"{given!r} names no cluster: say ray, or ray://HOST:PORT.")
        options: dict[str, Any] = {}
        for name, values in parse_qs(query, keep_blank_values=True).items():
            options[name] = _read(given, name, ",".join(values))
        return cls("" if where == "ray" else where, **options)


def _read(given: str, name: str, value: str) -> object:
    if name in _LISTS:
        return [one for one in value.split(",") if one]
    if name not in _NUMBERS:
        known = ", ".join((*_LISTS, *_NUMBERS))
        raise BadInput(f"{given!r} sets {name!r}, but a cluster only has {known}.")
    try:
        return _NUMBERS[name](value)
    except ValueError:
        raise BadInput(f"{given!r} sets {name} to {value!r}, which is not a number.") from None


def _is_text(value: object) -> bool:
    return isinstance(value, str)


def _is_names(value: object) -> bool:
    return isinstance(value, list | tuple) and all(isinstance(v, str) and v for v in value)  # pyright: ignore[reportUnknownVariableType]


def _is_above_zero(value: Any) -> bool:
    return type(value) in (int, float) and 0 < value < 10**6


def _is_count(value: object) -> bool:
    return value is None or (type(value) is int and value >= 1)
