"""The forms in which a judge may answer, and the strict reading of an answer.

A form says what to ask for, in words and as a JSON schema, and reads the answer: exactly one JSON
object, or it is refused. Models like to put their JSON into a code fence. One fence around
the whole answer is removed; nothing else may be next to the object.

Every verdict has a value from 0 to 1, whatever scale its form uses.
"""

import json
import re
from collections.abc import Collection, Mapping, Sequence
from typing import Literal, NoReturn, Protocol, TypeVar, cast

from msgspec import Struct

from greenroom.ledger.plain import Json, is_array, is_object

Answer_co = TypeVar("Answer_co", covariant=True)
Side = Literal["A", "B"]

_LONGEST = 1_000_000
_FENCED = re.compile(r"(`{3,}|~{3,})(?:json)?\s*(\{.*\})\s*\1", re.DOTALL | re.IGNORECASE)
_TEXT: Json = {"type": "string"}


class NotAnAnswer(ValueError):
    """The judge's reply is not a verdict; the message says why, without quoting the reply.

    The judge reads it when it is asked again, outside the evidence. So it must never quote the
    answer, which may quote the agent under test.
    """


def one_object(text: str) -> dict[str, Json]:
    """The JSON object in `text`, which may have white space and one code fence around it; else NotAnAnswer."""
    if len(text) > _LONGEST:
        raise NotAnAnswer(f"it must not be longer than {_LONGEST} characters")
    fenced = _FENCED.fullmatch(text.strip())
    try:
        found = json.loads(
            fenced[2] if fenced else text, object_pairs_hook=_unique, parse_constant=_no_number
        )
    except NotAnAnswer:
        raise
    except (ValueError, RecursionError) as error:
        raise NotAnAnswer("it must be one JSON object and nothing else") from error
    if not isinstance(found, dict):
        raise NotAnAnswer("it must be a JSON object")
    return cast("dict[str, Json]", found)


def _unique(pairs: list[tuple[str, Json]]) -> dict[str, Json]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise NotAnAnswer("a key is given twice")
    return found


def _no_number(_: str) -> NoReturn:
    raise NotAnAnswer("NaN and Infinity are not JSON")


def with_keys(answer: Mapping[str, Json], keys: Collection[str]) -> Mapping[str, Json]:
    """The answer, if it has exactly these keys."""
    if set(answer) != set(keys):
        *head, last = [f"`{key}`" for key in keys]
        listed = f"{', '.join(head)} and {last}" if head else last
        raise NotAnAnswer(f"it must have exactly the keys {listed}")
    return answer


def text_at(answer: Mapping[str, Json], key: str) -> str:
    """The string at `key`, if it can be written to a report: one with a lone surrogate cannot."""
    found = answer[key]
    if isinstance(found, str):
        try:
            found.encode()
        except UnicodeEncodeError:
            pass
        else:
            return found
    raise NotAnAnswer(f"`{key}` must be a string")


class Verdict(Struct, frozen=True):
    """A judge's conclusion: as given, and as a number from 0 to 1."""

    reasoning: str
    given: Json
    value: float


class Form(Protocol[Answer_co]):
    """The form an answer must have."""

    def words(self) -> str:
        """The form as it is described to the judge."""
        ...

    def schema(self) -> dict[str, Json]:
        """The form as JSON schema, for models that accept one."""
        ...

    def parse(self, text: str) -> Answer_co:
        """The answer in `text`, which must hold nothing else; NotAnAnswer otherwise."""
        ...


class VerdictForm:
    """A form of one verdict, which can also be an entry in a sheet of several."""

    __slots__ = ()

    def properties(self) -> dict[str, Json]:
        """The schema of its keys."""
        raise NotImplementedError

    def shown(self) -> str:
        """Its keys, as an example writes them."""
        raise NotImplementedError

    def read(self, answer: Mapping[str, Json]) -> Verdict:
        """The verdict in an object; NotAnAnswer if there is none."""
        raise NotImplementedError

    def words(self) -> str:
        """An example of the object."""
        return f"{{{self.shown()}}}"

    def schema(self) -> dict[str, Json]:
        """An object with these keys and no others."""
        return closed(self.properties())

    def parse(self, text: str) -> Verdict:
        """The verdict in `text`."""
        return self.read(one_object(text))


class Boolean(VerdictForm, Struct, frozen=True):
    """True or false."""

    key: str = "verdict"

    def properties(self) -> dict[str, Json]:
        return {"reasoning": _TEXT, self.key: {"type": "boolean"}}

    def shown(self) -> str:
        return f'"reasoning": "<why>", "{self.key}": <true or false>'

    def read(self, answer: Mapping[str, Json]) -> Verdict:
        """1 for true, 0 for false; the strings "true" and "yes" are refused."""
        given = with_keys(answer, ("reasoning", self.key))[self.key]
        if given is not True and given is not False:
            raise NotAnAnswer(f"`{self.key}` must be true or false")
        return Verdict(text_at(answer, "reasoning"), given, float(given))


class Grade(VerdictForm, Struct, frozen=True):
    """A whole number on a scale."""

    low: int = 0
    high: int = 10

    def properties(self) -> dict[str, Json]:
        number: Json = {"type": "integer", "minimum": self.low, "maximum": self.high}
        return {"reasoning": _TEXT, "score": number}

    def shown(self) -> str:
        return f'"reasoning": "<why>", "score": <whole number from {self.low} to {self.high}>'

    def read(self, answer: Mapping[str, Json]) -> Verdict:
        """The grade as a value: the lowest is 0, the highest 1."""
        given = with_keys(answer, ("reasoning", "score"))["score"]
        if type(given) is not int or not self.low <= given <= self.high:
            raise NotAnAnswer(f"`score` must be a whole number from {self.low} to {self.high}")
        return Verdict(text_at(answer, "reasoning"), given, self.value(given))

    def value(self, given: float) -> float:
        """A number of the scale as one from 0 to 1."""
        return (given - self.low) / (self.high - self.low)


class Labels(VerdictForm, Struct, frozen=True):
    """One of several labels, each worth a number from 0 to 1."""

    values: Mapping[str, float]

    def properties(self) -> dict[str, Json]:
        return {"reasoning": _TEXT, "label": {"type": "string", "enum": list(self.values)}}

    def shown(self) -> str:
        return f'"reasoning": "<why>", "label": <one of {self._listed()}>'

    def read(self, answer: Mapping[str, Json]) -> Verdict:
        """The label's value; it must be written exactly as given."""
        given = with_keys(answer, ("reasoning", "label"))["label"]
        if not isinstance(given, str) or given not in self.values:
            raise NotAnAnswer(f"`label` must be one of {self._listed()}")
        return Verdict(text_at(answer, "reasoning"), given, self.values[given])

    def _listed(self) -> str:
        return ", ".join(f'"{label}"' for label in self.values)


class Better(VerdictForm, Struct, frozen=True):
    """Which of two is better; `ours` says under which letter the agent's was shown."""

    ours: Side = "A"

    def properties(self) -> dict[str, Json]:
        return {"reasoning": _TEXT, "better": {"type": "string", "enum": ["A", "B", "tie"]}}

    def shown(self) -> str:
        return '"reasoning": "<why>", "better": <"A", "B" or "tie">'

    def read(self, answer: Mapping[str, Json]) -> Verdict:
        """1 if the agent's is better, 0 if the other is, 0.5 for a tie."""
        given = with_keys(answer, ("reasoning", "better"))["better"]
        if given not in ("A", "B", "tie"):
            raise NotAnAnswer('`better` must be "A", "B" or "tie"')
        value = 0.5 if given == "tie" else float(given == self.ours)
        # The letters are swapped in some samples, so a vote is kept by whose response it prefers.
        meant = "tie" if given == "tie" else ("ours" if value else "theirs")
        return Verdict(text_at(answer, "reasoning"), meant, value)


class Claims(Struct, frozen=True):
    """The statements that a judge found in a text."""

    at_most: int = 100

    def words(self) -> str:
        """An example of the object."""
        return '{"claims": ["<one statement>", "<another>"]} with an empty list if there is none'

    def schema(self) -> dict[str, Json]:
        """A list of strings."""
        listed: Json = {"type": "array", "items": _TEXT, "maxItems": self.at_most}
        return closed({"claims": listed})

    def parse(self, text: str) -> list[str]:
        """The claims, each once."""
        found = with_keys(one_object(text), ("claims",))["claims"]
        if not is_array(found) or len(found) > self.at_most:
            raise NotAnAnswer(f"`claims` must be a list of at most {self.at_most} strings")
        claims = [text_at({"claims": claim}, "claims").strip() for claim in found]
        return list(dict.fromkeys(claim for claim in claims if claim))


class Sheet(Struct, frozen=True):
    """Verdicts on several items in one answer, each under its id."""

    ids: tuple[str, ...]
    form: VerdictForm

    def words(self) -> str:
        """An example of the object."""
        entry = f'{{"id": "<its id>", {self.form.shown()}}}'
        listed = ", ".join(self.ids)
        return f'{{"answers": [{entry}, ...]}} with one entry for each of the ids {listed}'

    def schema(self) -> dict[str, Json]:
        """A list with an entry for each id."""
        entry = closed({"id": {"type": "string", "enum": list(self.ids)}, **self.form.properties()})
        return closed({"answers": {"type": "array", "items": entry}})

    def parse(self, text: str) -> dict[str, Verdict]:
        """The verdict on each id; NotAnAnswer unless every id has exactly one entry, and no other.

        A judge that quotes the agent without escaping it may be tricked into another entry, so one
        entry that does not belong makes all of them doubtful.
        """
        entries = with_keys(one_object(text), ("answers",))["answers"]
        if not is_array(entries):
            raise NotAnAnswer("`answers` must be a list")
        found: dict[str, Verdict] = {}
        for entry in entries:
            given = entry.get("id") if is_object(entry) else None
            if not is_object(entry) or not isinstance(given, str) or given not in self.ids:
                raise NotAnAnswer("every entry of `answers` must have one of the ids")
            if given in found:
                raise NotAnAnswer("an id must not have two entries in `answers`")
            found[given] = self.form.read({k: v for k, v in entry.items() if k != "id"})
        if len(found) < len(self.ids):
            raise NotAnAnswer("every id must have an entry in `answers`")
        return found


def closed(properties: Mapping[str, Json]) -> dict[str, Json]:
    """The schema of an object with exactly these properties."""
    return {
        "type": "object",
        "properties": dict(properties),
        "required": list(properties),
        "additionalProperties": False,
    }


def listed(items: Sequence[tuple[str, str]]) -> str:
    """Ids and their texts, as the instructions of a sheet list them."""
    return "\n".join(f"- {item}: {words}" for item, words in items)
