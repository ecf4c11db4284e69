"""What a judge gets to see of a case and its run, by field; and what is left out if it is too much."""

from collections.abc import Callable, Mapping, Sequence
from typing import cast

from greenroom.cases.case import Case
from greenroom.cases.scores import NotApplicable, Unmeasured
from greenroom.errors import BadMetric
from greenroom.ledger import questions
from greenroom.ledger.ledger import Ledger
from greenroom.ledger.plain import Json, is_array, is_object, plain
from greenroom.ledger.records import record
from greenroom.metrics.facts import Missing, expected_calls, reference, seen_calls, spoken
from greenroom.metrics.judges.seal import written

Fields = dict[str, Json]
Read = Callable[[Case, Ledger], Json]

LIMIT = 400_000
"""Characters of evidence in one request: some hundred thousand tokens."""

_SMALLEST = 100


@record
class Field:
    """One field of the evidence: where it comes from, and what it is."""

    read: Read
    legend: str
    unseen: str = ""
    """What a judge is told where nobody could see it; "" for a field that is then left out."""


def _messages(_: Case, ledger: Ledger) -> Json:
    return [{"role": m.role, "text": m.text} for m in questions.messages(ledger)]


def _user_messages(_: Case, ledger: Ledger) -> Json:
    return [m.text for m in questions.messages(ledger) if m.role == "user"]


def _responses(_: Case, ledger: Ledger) -> Json | Unmeasured:
    said = [text for text in questions.responses(ledger) if text.strip()]
    return said or Unmeasured("the agent said nothing, so there is no response to judge")


def _tool_calls(_: Case, ledger: Ledger) -> Json | Unmeasured:
    seen = seen_calls(ledger)
    return seen if isinstance(seen, Unmeasured) else [_call(record) for record in seen]


def _call(record: questions.CallRecord) -> Fields:
    shown: Fields = {"tool": record.tool, "args": record.args}
    return shown | ({"error": record.error} if record.error else {"result": record.result})


def _expected_calls(case: Case, _: Ledger) -> Json | NotApplicable:
    wanted = expected_calls(case)
    if isinstance(wanted, NotApplicable):
        return wanted
    return [
        {"tool": w} if isinstance(w, str) else {"tool": w.tool, "args": plain(w.args)}
        for w in wanted
    ]


def _context(case: Case, _: Ledger) -> Json | NotApplicable:
    return plain(case.metadata) or NotApplicable("the case gives no context: it has no `metadata`")


def _initial_state(case: Case, _: Ledger) -> Json | NotApplicable:
    return plain(case.state) or NotApplicable("the case begins without state")


FIELDS: dict[str, Field] = {
    "messages": Field(_messages, "what the user and the agent said"),
    "user_messages": Field(_user_messages, "what the user said"),
    "response": Field(lambda _, ledger: spoken(ledger), "the agent's last words"),
    "responses": Field(_responses, "everything the agent said"),
    "tool_calls": Field(
        _tool_calls,
        "the tools the agent called, and what they answered",
        "not seen: the agent's tools ran where nobody could see them, so whether it called any, "
        "and what they answered, is unknown",
    ),
    "expected_tool_calls": Field(_expected_calls, "the calls the agent should have made"),
    "reference": Field(lambda case, _: reference(case), "a response known to be right"),
    "context": Field(_context, "what the case tells about itself"),
    "initial_state": Field(_initial_state, "the state before the run"),
    "final_state": Field(lambda _, ledger: questions.state(ledger), "the state after the run"),
}

RECORD = ("messages", "tool_calls?", "final_state")
"""What a judge sees unless told otherwise."""


def gathered(names: Sequence[str], case: Case, ledger: Ledger) -> Fields | Missing:
    """The fields, or why one is missing; one whose name ends in `?` is left out instead.

    What happened unseen is not left out but None: a judge that finds nothing would think that there
    was nothing.
    """
    found: Fields = {}
    for name in names:
        own = name.removesuffix("?")
        value = FIELDS[own].read(case, ledger)
        if not isinstance(value, NotApplicable | Unmeasured):
            found[own] = value
        elif not name.endswith("?"):
            return value
        elif FIELDS[own].unseen:
            found[own] = None
    return found


def checked_fields(given: object, where: str) -> tuple[str, ...]:
    """The names, if each is a field of the evidence."""
    names = cast("list[object]", given) if isinstance(given, list | tuple) else None
    if not names:
        raise BadMetric(f"{where} has evidence={given!r}; give a list of {list(FIELDS)}.")
    for name in names:
        if not isinstance(name, str) or name.removesuffix("?") not in FIELDS:
            raise BadMetric(f"{where} has {name!r} in `evidence`; known are {list(FIELDS)}.")
    return tuple(cast("list[str]", names))


def legend(fields: Mapping[str, Json]) -> str:
    """What the fields are, for those that have a fixed meaning."""
    known = [f"`{name}` is {_meaning(name, fields)}" for name in fields if name in FIELDS]
    return f"In it, {'; '.join(known)}." if known else ""


def _meaning(name: str, fields: Mapping[str, Json]) -> str:
    field = FIELDS[name]
    return field.unseen if field.unseen and fields[name] is None else field.legend


def fitted(fields: Mapping[str, Json], limit: int = LIMIT) -> tuple[Fields, dict[str, int]]:
    """The fields within so many characters, and how many each of them lost.

    Long texts and lists lose their middle. Ends are kept, and longest that of the last text in a
    field: that is where the answer stands.
    """
    kept = dict(fields)
    if len(written(kept)) <= limit:
        return kept, {}
    longest = limit // 2
    while len(written(kept)) > limit and longest >= _SMALLEST:
        kept = {
            name: _cut(value, longest, max(longest, limit // 8)) for name, value in fields.items()
        }
        longest //= 2
    while len(written(kept)) > limit:
        # What is left is made of keys, which are nobody's answer.
        kept = {name: _middle_out(written(value), longest) for name, value in fields.items()}
        longest //= 2
    lost = {name: len(written(fields[name])) - len(written(kept[name])) for name in fields}
    return kept, {name: count for name, count in lost.items() if count > 0}


def _cut(value: Json, longest: int, last: int) -> Json:
    """The value with every text in it at most so long; `last` is for the last one."""
    if isinstance(value, str):
        return _middle_out(value, last)
    if is_object(value):
        return {key: _cut(item, longest, longest) for key, item in value.items()}
    if is_array(value) and value:
        items = [_cut(item, longest, longest) for item in value]
        items[-1] = _cut_last(value[-1], longest, last)
        return _ends(items, max(4, longest // 50))
    return value


def _cut_last(value: Json, longest: int, last: int) -> Json:
    if is_object(value):
        return {key: _cut(item, longest, last) for key, item in value.items()}
    return _cut(value, longest, last)


def _middle_out(text: str, longest: int) -> str:
    if len(text) <= longest:
        return text
    head = longest // 3
    tail = longest - head
    out = len(text) - head - tail
    return f"{text[:head]} […{out} characters left out…] {text[len(text) - tail :]}"


def _ends(items: list[Json], most: int) -> list[Json]:
    if len(items) <= most:
        return items
    head = most // 3
    tail = most - head
    out = len(items) - head - tail
    return [*items[:head], f"[…{out} entries left out…]", *items[len(items) - tail :]]
