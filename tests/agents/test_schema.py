"""Typed state: what a schema says is kept, what its views read and refuse."""

import copy
import pickle
from dataclasses import dataclass
from datetime import date
from typing import Annotated, Any, ClassVar, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel
from pydantic import Field as Bounds
from typing_extensions import TypedDict

from greenroom.agents import (
    AppScoped,
    Field,
    SchemaConflict,
    StateKeyError,
    StateSchema,
    Temp,
    UserScoped,
    scoped,
)
from greenroom.agents.places import Place
from greenroom.agents.schema import fields_of
from greenroom.errors import BadAgent
from greenroom.ledger.changes import Change, State, apply_changes
from greenroom.world.scopes import Scopes


class Verdict(BaseModel):
    intent: str
    sure: bool = False


@dataclass
class Order:
    id: int
    paid: bool = False


class Address(TypedDict):
    street: str


class Billing(StateSchema):
    kinds: ClassVar[int] = 3
    intent: str
    confidence: float
    ticket: str | None = None
    tier: Annotated[str, UserScoped]
    shop: Annotated[str, AppScoped] = "main"
    chart: Annotated[dict[str, Any], scoped("patient")]
    scratch: Annotated[list[str], Temp] = []  # noqa: RUF012 - a default, copied for each reader
    verdict: Verdict
    order: Order
    day: date
    address: Address
    level: Literal["low", "high"] = "low"
    rounds: Annotated[int, Bounds(ge=0)] = 0

    def is_urgent(self) -> bool:
        return self.level == "high"


def bound(**session: Any) -> tuple[Billing, Scopes]:
    scopes = Scopes({"session": session})
    return Billing.bind(scopes), scopes


def field(name: str) -> Field:
    return fields_of(Billing)[name]


def after(scopes: Scopes, state: State | None = None) -> State:
    found: State = state or {}
    apply_changes(found, scopes.changes())
    return found


def test_the_class_gives_references_and_a_view_gives_values() -> None:
    reference: Any = Billing.intent
    assert isinstance(reference, Field)
    assert (reference.name, reference.scope, reference.place) == (
        "intent",
        "session",
        "session.intent",
    )
    view, _ = bound(intent="refund")
    assert view.intent == "refund"
    assert repr(reference) == "Billing.intent"


def test_each_field_is_kept_in_its_scope() -> None:
    view, scopes = bound()
    view.intent, view.tier, view.shop = "refund", "gold", "west"
    view.chart, view.scratch = {"pulse": 60}, ["x"]
    assert after(scopes) == {
        "session": {"intent": "refund"},
        "user": {"tier": "gold"},
        "app": {"shop": "west"},
        "patient": {"chart": {"pulse": 60}},
        "temp": {"scratch": ["x"]},
    }


def test_what_is_not_there_is_an_error_that_says_what_is() -> None:
    view, _ = bound(intend="refund", seen=True)
    with pytest.raises(StateKeyError) as caught:
        _ = view.intent
    assert not isinstance(caught.value, KeyError)
    text = str(caught.value)
    for part in ("Billing.intent", "session.intent", "intend, seen", "Did you mean 'intend'?"):
        assert part in text
    with pytest.raises(StateKeyError, match="The scope 'user' is empty"):
        _ = view.tier
    with pytest.raises(StateKeyError, match=r"Billing\.ticket has no value"):
        del view.ticket


def test_a_default_is_read_where_nothing_was_written() -> None:
    view, scopes = bound()
    assert (view.ticket, view.shop, view.level) == (None, "main", "low")
    assert Billing.ticket not in view
    assert not scopes.changes()
    view.ticket = "T-1"
    assert Billing.ticket in view
    assert "ticket" in view
    del view.ticket
    assert view.ticket is None


def test_a_default_that_is_altered_in_place_is_written() -> None:
    view, scopes = bound()
    view.scratch.append("x")
    view.scratch.append("y")
    assert after(scopes)["temp"] == {"scratch": ["x", "y"]}
    other, _ = bound()
    assert other.scratch == []


@pytest.mark.parametrize(
    "name, value",
    [
        ("intent", 7),
        ("intent", None),
        ("confidence", "0.5"),
        ("confidence", True),
        ("confidence", float("nan")),
        ("ticket", 7),
        ("scratch", ["x", 7]),
        ("scratch", ("x",)),
        ("chart", {"x": object()}),
        ("verdict", {"road": "x"}),
        ("order", "x"),
        ("day", "2024-01-01"),
        ("address", {"road": "x"}),
        ("level", "middle"),
        ("rounds", -1),
    ],
)
def test_a_wrong_write_names_field_and_value_and_changes_nothing(name: str, value: Any) -> None:
    view, scopes = bound(intent="refund")
    with pytest.raises(TypeError, match=rf"Billing\.{name} is .*, but was given"):
        setattr(view, name, value)
    assert scopes.changes() == ()


@pytest.mark.parametrize(
    "name, value, kept",
    [
        ("confidence", 1, 1),
        ("ticket", None, None),
        ("verdict", Verdict(intent="x"), {"intent": "x", "sure": False}),
        ("order", Order(7), {"id": 7, "paid": False}),
        ("day", date(2024, 1, 2), "2024-01-02"),
        ("address", {"street": "x"}, {"street": "x"}),
        ("level", "high", "high"),
        ("rounds", 3, 3),
    ],
)
def test_what_is_written_is_kept_as_json_and_read_as_it_was(
    name: str, value: Any, kept: Any
) -> None:
    view, scopes = bound()
    setattr(view, name, value)
    assert after(scopes)["session"] == {name: kept}
    assert getattr(view, name) == value
    again, _ = bound(**{name: kept})
    assert getattr(again, name) == value


def test_objects_and_lists_that_are_altered_in_place_are_written() -> None:
    view, scopes = bound(order={"id": 7}, verdict={"intent": "x"})
    view.order.paid = True
    assert view.order.paid
    assert view.verdict.intent == "x"
    assert scopes.changes() == (Change("session", ("order",), "set", {"id": 7, "paid": True}),)


def test_a_list_that_is_altered_to_another_type_is_refused() -> None:
    view, scopes = bound()
    names: Any = view.scratch
    names.append(7)
    with pytest.raises(TypeError, match=r"Billing\.scratch is"):
        scopes.changes()


def test_what_agents_without_a_schema_wrote_is_read_as_it_is() -> None:
    view, scopes = bound(intent=7, verdict={"road": 1})
    odd: Any = view.intent
    assert odd == 7
    scopes["temp"]["scratch"] = [1]
    assert view.scratch == [1]
    with pytest.raises(TypeError, match=r"Billing\.verdict is Verdict, but was given"):
        _ = view.verdict
    scopes["session"]["intent"] = "refund"
    assert view.intent == "refund"


def test_a_write_without_a_schema_replaces_an_object_that_was_read() -> None:
    view, scopes = bound(order={"id": 7})
    view.order.paid = True
    scopes["session"]["order"] = {"id": 8}
    assert view.order == Order(8)
    assert after(scopes)["session"] == {"order": {"id": 8}}


def test_a_name_that_is_no_field_is_refused_with_the_nearest_one() -> None:
    view: Any = bound()[0]
    with pytest.raises(AttributeError, match=r"no field 'intnet'.*Did you mean 'intent'"):
        view.intnet = "x"
    with pytest.raises(AttributeError, match="no field 'intnet'"):
        _ = view.intnet
    assert view.is_urgent() is False
    assert view.kinds == 3


def test_a_view_is_made_by_binding() -> None:
    with pytest.raises(TypeError, match=r"use \.bind\(ctx\)"):
        Billing()
    for wrong in (None, {"session": {}}, 7):
        with pytest.raises(TypeError, match="needs the ctx or the state"):
            Billing.bind(wrong)


def test_a_view_shows_what_is_there() -> None:
    assert repr(bound(intent="x")[0]) == "Billing(intent='x')"


def test_schemas_are_put_together_by_inheriting() -> None:
    class Contact(StateSchema):
        email: Annotated[str, UserScoped]
        intent: str = "none"

    class Both(Contact, Billing):
        extra: int = 0

    view = Both.bind(Scopes({}))
    assert view.intent == "none"
    assert (view.extra, view.shop) == (0, "main")
    assert set(fields_of(Both)) == {"email", "extra", *fields_of(Billing)}
    assert not hasattr(Billing, "email")


def test_schemas_that_differ_about_a_name_cannot_be_put_together() -> None:
    class Other(StateSchema):
        intent: int

    class Elsewhere(StateSchema):
        tier: str

    with pytest.raises(SchemaConflict, match=r"Both\.intent.*str.*Billing.*int.*Other"):

        class Both(Other, Billing):  # pyright: ignore[reportUnusedClass, reportIncompatibleVariableOverride]
            pass

    with pytest.raises(SchemaConflict, match=r"'user'.*'session'"):

        class Both2(Elsewhere, Billing):  # pyright: ignore[reportUnusedClass]
            pass

    with pytest.raises(SchemaConflict):

        class Changed(Billing):  # pyright: ignore[reportUnusedClass]
            intent: int  # pyright: ignore[reportIncompatibleVariableOverride]


def made(annotation: Any, name: str = "x", **more: Any) -> type[StateSchema]:
    return type("Made", (StateSchema,), {"__annotations__": {name: annotation}, **more})


@pytest.mark.parametrize(
    "given, words",
    [
        ({"annotation": str, "name": "_x"}, "its name"),
        ({"annotation": str, "name": "bind"}, "its name"),
        ({"annotation": str, "x": 7}, r"the default of Made\.x is str, but was given 7"),
        ({"annotation": Scopes}, "cannot be kept as JSON"),
        ({"annotation": "Nowhere"}, "cannot be read"),
    ],
)
def test_a_schema_that_cannot_work_is_a_bad_agent(given: dict[str, Any], words: str) -> None:
    with pytest.raises(BadAgent, match=words):
        made(**given)


@pytest.mark.parametrize("name", ["", "a.b", "a b", 7])
def test_a_scope_has_a_name(name: Any) -> None:
    with pytest.raises(BadAgent, match="name a scope"):
        scoped(name)


def test_a_declared_place_can_be_copied_with_its_field() -> None:
    place = Place(field("intent"))
    for other in (copy.deepcopy(place), pickle.loads(pickle.dumps(place))):
        assert isinstance(other, Place)
        assert (str(other), other.field.place) == ("session.intent", "session.intent")


class FlatState:
    """What google-adk gives a tool: one mapping with prefixes, which cannot delete."""

    def __init__(self, **held: Any) -> None:
        self.held = held

    def __getitem__(self, key: str) -> Any:
        return self.held[key]

    def __setitem__(self, key: str, value: Any) -> None:
        self.held[key] = value

    def __contains__(self, key: str) -> bool:
        return key in self.held

    def to_dict(self) -> dict[str, Any]:
        return dict(self.held)


class ForeignContext:
    def __init__(self, state: FlatState) -> None:
        self.state = state


def test_a_foreign_state_with_prefixes_is_seen_through_the_schema() -> None:
    state = FlatState(**{"intent": "x", "user:tier": "gold"})
    view = Billing.bind(ForeignContext(state))
    assert (view.intent, view.tier, view.ticket) == ("x", "gold", None)
    view.scratch = ["a"]
    view.ticket = "T-1"
    assert state.held["temp:scratch"] == ["a"]
    del view.ticket
    assert state.held["ticket"] is None
    with pytest.raises(StateKeyError, match="'session' holds intent, ticket"):
        _ = view.confidence
    with pytest.raises(TypeError):
        view.intent = 7  # pyright: ignore[reportAttributeAccessIssue]


TYPES: list[Any] = [
    str,
    int,
    float,
    bool,
    str | None,
    list[int],
    dict[str, Any],
    Any,
    Literal["a", "b"],
    Verdict,
    date,
    tuple[int, str],
]
MARKS = [None, UserScoped, AppScoped, Temp, scoped("patient")]
VALUES: st.SearchStrategy[Any] = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(max_size=3),
    st.lists(st.integers() | st.text(max_size=2), max_size=3),
    st.dictionaries(st.text(max_size=2), st.integers() | st.floats(), max_size=2),
    st.just(Verdict(intent="x")),
    st.just(date(2024, 1, 1)),
    st.just((1, "x")),
    st.just(object()),
)
DEEDS = st.lists(
    st.tuples(
        st.sampled_from(["read", "write", "delete", "extend", "untyped"]),
        st.integers(0, 3),
        VALUES,
    ),
    max_size=12,
)


@st.composite
def schemas(draw: st.DrawFn) -> type[StateSchema]:
    hints: dict[str, Any] = {}
    for number in range(draw(st.integers(1, 4))):
        kind, mark = draw(st.sampled_from(TYPES)), draw(st.sampled_from(MARKS))
        hints[f"f{number}"] = kind if mark is None else Annotated[kind, mark]
    return type("Made", (StateSchema,), {"__annotations__": hints})


@given(schemas(), DEEDS)
def test_a_view_raises_nothing_but_what_it_promises(schema: type[StateSchema], deeds: Any) -> None:
    fields = list(fields_of(schema).values())
    scopes = Scopes({})
    view = schema.bind(scopes)
    for deed, number, value in deeds:
        one = fields[number % len(fields)]
        try:
            match deed:
                case "read":
                    getattr(view, one.name)
                case "write":
                    setattr(view, one.name, value)
                case "delete":
                    delattr(view, one.name)
                case "untyped":
                    scopes[one.scope][one.name] = [1]
                case _:
                    held = getattr(view, one.name)
                    if isinstance(held, list):
                        held.append(value)  # pyright: ignore[reportUnknownMemberType]
            scopes.changes()
        except (StateKeyError, TypeError):
            scopes = Scopes(after(Scopes({})))
            view = schema.bind(scopes)


@given(schemas(), st.integers(0, 3), VALUES)
def test_what_was_written_is_read_and_what_was_refused_left_nothing(
    schema: type[StateSchema], number: int, value: Any
) -> None:
    fields = list(fields_of(schema).values())
    one, scopes = fields[number % len(fields)], Scopes({})
    view = schema.bind(scopes)
    try:
        setattr(view, one.name, value)
    except TypeError:
        assert scopes.changes() == ()
        assert one not in view
    else:
        read = getattr(schema.bind(Scopes(after(scopes))), one.name)
        assert read == (
            list(value) if isinstance(value, tuple) and isinstance(read, list) else value
        )
