"""Simulated users: scripted lines, a person simulated by a model, or a separate agent for each wait."""

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, fields
from typing import Any, Literal, cast, get_args

from greenroom.errors import BadCase, BadValue
from greenroom.ledger.changes import WithStateChange
from greenroom.ledger.choices import choice_problem
from greenroom.ledger.functions import Anything
from greenroom.ledger.plain import Json, plain

STOP_SIGNAL = "</finished>"


class Lines:
    """A user who says these lines in turn and then is done, or continues with `then`.

    `then` is a string that is repeated, or a user who takes over: a `SimulatedUser`, an
    agent, a function, more `Lines`. When a tool waits for an answer, a line may be any JSON value but
    None, which is no answer.
    """

    __slots__ = ("lines", "then")

    def __init__(self, *lines: Anything, then: Anything = None) -> None:
        if any(line is None for line in lines):
            raise BadCase(f"Lines{lines!r} has a line that is None; leave it out.")
        self.lines: tuple[Any, ...] = lines
        self.then: Any = then

    def line(self, n: int) -> Any:
        """The n-th line, or what follows the last one; None when the user is done."""
        if n < len(self.lines):
            return self.lines[n]
        return self.then.line(n - len(self.lines)) if isinstance(self.then, Lines) else self.then

    @property
    def last(self) -> Any:
        """What comes after all lines."""
        return self.then.last if isinstance(self.then, Lines) else self.then

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Lines):
            return NotImplemented
        return self.lines == other.lines and self.then == other.then

    def __hash__(self) -> int:
        return hash(repr(self))

    def __repr__(self) -> str:
        shown = [repr(line) for line in self.lines]
        if self.then is not None:
            shown.append(f"then={self.then!r}")
        return f"Lines({', '.join(shown)})"


@dataclass(frozen=True, slots=True)
class SimulatedUser:
    """A person simulated by a model: who they are, what they want, and how they end the conversation.

    `goal` is what they want overall. `plan` is how they pursue it, a string or a list of steps.
    `goals` are single things to reach: the user marks each with the agent's words that show it, and
    is done when all are shown. A reply that contains `stop_signal` also ends it, and is not
    said. `max_turns` limits the conversation in addition to the case's own stop. `model` is a model or the
    name of one; without it, the run must name one.
    """

    persona: str = ""
    _: KW_ONLY
    goal: str = ""
    plan: str | Sequence[str] = ""
    goals: Sequence[str] = ()
    model: Any = None
    stop_signal: str = STOP_SIGNAL
    max_turns: int | None = None
    name: str = "user"

    def __post_init__(self) -> None:
        for name in ("persona", "goal", "stop_signal", "name"):
            self._check(name, isinstance(getattr(self, name), str), "a string")
        self._check("stop_signal", bool(self.stop_signal.strip()), "a string that is not blank")
        self._check(
            "plan", isinstance(self.plan, str) or _texts(self.plan), "a string or a list of steps"
        )
        self._check("goals", _texts(self.goals), "a list of strings")
        self._check("goals", len(set(self.goals)) == len(self.goals), "goals that differ")
        limit = self.max_turns
        self._check("max_turns", limit is None or (type(limit) is int and limit > 0), "1 or more")
        object.__setattr__(self, "goals", tuple(self.goals))
        if not isinstance(self.plan, str):
            object.__setattr__(self, "plan", tuple(self.plan))

    def _check(self, name: str, fits: bool, wanted: str) -> None:
        if not fits:
            raise BadCase(
                f"SimulatedUser(...): `{name}` is {getattr(self, name)!r}, but should be {wanted}."
            )


def _texts(value: object) -> bool:
    if isinstance(value, str) or not isinstance(value, Sequence):
        return False
    parts = cast("Sequence[object]", value)
    return all(isinstance(part, str) and part.strip() for part in parts)


Validation = Literal["strict", "coerce", "off"]
Conflicts = Literal["last", "error"]
Role = Lines | SimulatedUser | Anything
"""What answers a wait: lines, a person, an agent, a step, a function, or a constant."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UserAgents:
    """One user with an agent for each kind of wait; all share one memory of the conversation.

    `loop` gives the next message, `tools` answers yielding tools by name: an `Agent`, a `step`, a
    function, `Lines`, or a constant. `validate` says how strictly a tool's answer must fit what the
    tool declares; `conflicts="error"` refuses answers that set one piece of state differently.
    """

    loop: Role | None = None
    tools: Mapping[str, Role] = field(default_factory=dict[str, Role])
    validate: Validation = "strict"
    conflicts: Conflicts = "last"

    def __post_init__(self) -> None:
        for option, choices in (
            ("validate", get_args(Validation)),
            ("conflicts", get_args(Conflicts)),
        ):
            if problem := choice_problem(getattr(self, option), choices):
                raise BadCase(f"UserAgents(...): {option}={problem}")
        if not isinstance(self.tools, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise BadCase(f"UserAgents(tools={self.tools!r}) must be a mapping of tools by name.")
        known: dict[str, Any] = {}
        for given in self.roles:
            role: Any = given.last if isinstance(given, Lines) else given
            # A role with a model speaks under its own name.
            if hasattr(role, "model") and known.setdefault(role.name, role) != role:
                raise BadCase(
                    f"two user agents are named {role.name!r} and would be confused in "
                    f"the ledger; rename one."
                )

    @property
    def roles(self) -> tuple[Role, ...]:
        """Every role that may be asked something."""
        return (self.loop, *self.tools.values())

    @property
    def max_turns(self) -> int | None:
        """The limit set by the person who speaks, if any."""
        person = person_of(self.loop)
        return None if person is None else person.max_turns


def never_speaks(case: Any) -> bool:
    """Whether the user of a case never says anything; a blank first turn counts as intended."""
    user = case.user
    silent = not user.lines and user.then is None if isinstance(user, Lines) else user is None
    return silent and not case.says and not case.attachments and not case.turns


def person_of(user: object) -> SimulatedUser | None:
    """The simulated person behind this user, from the start or after their lines."""
    speaker = getattr(user, "loop", user)
    last = speaker.last if isinstance(speaker, Lines) else speaker
    return last if isinstance(last, SimulatedUser) else None


def user_data(user: object) -> Json:
    """The user as JSON, or None if it is code."""
    match user:
        case Lines() if all(_is_data(line) for line in user.lines):
            return _lines_data(user)
        case SimulatedUser() if user.model is None or isinstance(user.model, str):
            return person_data(user)
        case UserAgents():
            return _agents_data(user)
        case _:
            return None


def _agents_data(user: UserAgents) -> Json:
    """A user with several roles as JSON, if all roles are data."""
    tools = {tool: _role_data(role) for tool, role in user.tools.items()}
    loop = None if user.loop is None else user_data(user.loop)
    if None in tools.values() or (user.loop is not None and loop is None):
        return None
    data: dict[str, Json] = {"tools": tools}
    if loop is not None:
        data["loop"] = loop
    for name in ("validate", "conflicts"):
        if getattr(user, name) != getattr(_USUAL, name):
            data[name] = getattr(user, name)
    return data


def _role_data(role: object) -> Json:
    if isinstance(role, Lines | SimulatedUser):
        return user_data(role)
    # Under its own key: a constant may look like a person.
    return {_ALWAYS: plain(role)} if not callable(role) and _is_data(role) else None


_ALWAYS = "always"
_USUAL = UserAgents()


def _lines_data(user: Lines) -> Json:
    data: dict[str, Json] = {"lines": [plain(line) for line in user.lines]}
    if user.then is None:
        return data
    if isinstance(user.then, Lines | SimulatedUser):
        then = user_data(user.then)
        return None if then is None else {**data, "then": then}
    return {**data, "then": plain(user.then)} if _is_data(user.then) else None


def person_data(user: SimulatedUser) -> dict[str, Json]:
    """All data about a person: what differs from the defaults, and a model's name."""
    data: dict[str, Json] = {"persona": user.persona}
    for part in fields(user):
        value = getattr(user, part.name)
        if value != part.default and (part.name != "model" or isinstance(value, str)):
            data[part.name] = plain(value)
    return data


def _is_data(value: object) -> bool:
    if isinstance(value, WithStateChange):
        # It is a record too, but written as one it would be said instead of done.
        return False
    try:
        plain(value)
    except BadValue:
        return False
    return True


_PERSON = frozenset(part.name for part in fields(SimulatedUser))
_AGENTS = frozenset(part.name for part in fields(UserAgents))


def user_from(data: Any, where: str) -> Lines | SimulatedUser | UserAgents:
    """The user described in `data`; BadCase if it is not one."""
    match data:
        case {"tools": {**tools}, **rest} if rest.keys() <= _AGENTS:
            roles = {
                name: _role_from(role, f"{where}.tools.{name}") for name, role in tools.items()
            }
            loop = rest.pop("loop", None)
            speaker = None if loop is None else user_from(loop, f"{where}.loop")
            return UserAgents(loop=speaker, tools=roles, **cast("dict[str, Any]", rest))
        case {"lines": [*lines], **rest} if rest.keys() <= {"then"}:
            return Lines(*lines, then=_then_from(rest.get("then"), f"{where}.then"))
        case {**person} if person and person.keys() <= _PERSON:
            return SimulatedUser(**cast("Mapping[str, Any]", person))
        case _:
            raise BadCase(
                f"{where} is {data!r}; give {{lines: [...]}}, {{tools: {{...}}}} with what answers each, "
                f"or a person: any of {sorted(_PERSON)}."
            )


def _role_from(data: Json, where: str) -> object:
    """What answers a tool: lines, a person, or a constant."""
    match data:
        case {"always": value, **rest} if not rest:
            return value
        case {**role}:
            return user_from(role, where)
        case constant:
            return constant


def _then_from(data: Json, where: str) -> object:
    """What follows the lines: another user, or a string that is repeated."""
    if isinstance(data, Mapping) and ("lines" in data or data.keys() <= _PERSON):
        return user_from(data, where)
    return cast(Any, data)
