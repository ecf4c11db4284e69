"""Personal data that is kept out of the ledger, wherever it comes from."""

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

from greenroom import (
    Agent,
    Case,
    Expect,
    Ledger,
    Scripted,
    Stop,
    Turn,
    attach,
    call,
    fault,
    rehearse,
    simulate,
    tool,
)
from greenroom.ledger import (
    ModelReplied,
    RunEnded,
    RunStarted,
    ToolCalled,
    ToolFailed,
    ToolReturned,
    UserSaid,
    attachments,
    diff,
    model_interactions,
)
from greenroom.simulation import replay, shrink
from greenroom.testing import MiddlewareContract
from greenroom.world import Middleware, pii_filter


def run(*middleware: Any, agent: Any, case: Case) -> Ledger:
    return asyncio.run(simulate(case, agent, middleware=middleware))


def end_of(ledger: Ledger) -> RunEnded:
    assert isinstance(ledger.last, RunEnded)
    return ledger.last


BARE = Case("c", says="Hi")

CARD = "4111 1111 1111 1111"


@tool
def find(name: str) -> dict[str, Any]:
    """Find a customer."""
    return {}


def keeper(*replies: Any) -> Agent:
    return Agent(
        "clerk", model=Scripted(*replies), tools=[find], instructions="Ask eve@example.org."
    )


PERSONAL = Case(
    "personal",
    turns=[Turn(f"I am ann@example.org, card {CARD}."), Turn("Again, ann@example.org.")],
    mocks={"find": {"mail": "bob@example.org", "card": 4111111111111111, "x@example.org": [1]}},
    state={"session": {"owner": "ann@example.org"}},
)


def test_personal_data_can_be_kept_out_of_the_whole_ledger() -> None:
    agent = keeper(
        call("find", name="ann@example.org"), lambda asked: f"It says {asked.last}", "Bye."
    )
    assert run(pii_filter(), agent=agent, case=PERSONAL).dumps().count("example.org") > 5
    ledger = run(pii_filter(ledger=True), agent=agent, case=PERSONAL)
    assert end_of(ledger).reason == "completed"
    first, *rest = ledger
    assert isinstance(first, RunStarted)
    held = Ledger([structs.replace(first, agent=None), *rest]).dumps()
    assert "example.org" not in held
    assert CARD not in held
    assert "4111111111111111" not in held
    assert ledger.of(UserSaid)[0].text == "I am [email], card [card]."
    assert ledger.of(ToolCalled)[0].args == {"name": "[email]"}
    assert ledger.of(ToolReturned)[0].value == {
        "mail": "[email]",
        "card": "[card]",
        "[email]": [1],
    }
    assert ledger.fold()["session"]["owner"] == "[email]"
    asked = [one.request.instructions for one in model_interactions(ledger) if one.request]
    assert asked == ["Ask [email]."] * 3


def test_what_middleware_answers_and_what_fails_is_kept_out_too() -> None:
    class Answers(Middleware):
        async def before_tool(self, call: Any) -> Any:
            return {"mail": "bob@example.org"}

    agent = keeper(call("find", name="ann"), lambda asked: asked.last)
    ledger = run(Answers(), pii_filter(ledger=True), agent=agent, case=BARE)
    assert ledger.of(ToolReturned)[0].value == {"mail": "[email]"}
    failing = Case("c", says="Hi", mocks={"find": fault("ann@example.org is unknown")})
    ledger = run(pii_filter(ledger=True), agent=agent, case=failing)
    assert ledger.of(ToolFailed)[0].error == "[email] is unknown"
    assert ledger.of(ModelReplied)[-1].text.count("[email]") == 1


def test_a_simulated_user_says_nothing_of_it_in_the_ledger() -> None:
    user = Agent("user", model=Scripted("I am ann@example.org.", "ann@example.org is all."))
    case = Case("c", says="Hi", user=user, stop=Stop(max_turns=2))
    agent = keeper("Who?", "Thanks.")
    assert "ann@" in run(pii_filter(), agent=agent, case=case).dumps()
    assert "ann@" not in run(pii_filter(ledger=True), agent=agent, case=case).dumps()


def test_a_text_that_could_not_be_redacted_is_not_recorded_and_ends_the_run() -> None:
    class Broken(Middleware):
        def redact(self, text: str) -> Any:
            return None if "ann" in text else text

    ledger = run(Broken(), agent=keeper("Hi."), case=Case("c", says="I am ann"))
    end = end_of(ledger)
    assert (end.reason, end.error_type) == ("error", "MiddlewareFailed")
    assert "'Broken' raised in redact: TypeError" in end.error
    assert "I am ann" not in ledger.dumps()


class TestPiiInLedger(MiddlewareContract):
    passes_through = False

    def middleware(self) -> Any:
        return pii_filter(ledger=True)

    def agent(self) -> Any:
        return keeper(call("find", name="ann@example.org"), "Found bob@example.org.", "Bye.")

    def case(self) -> Case:
        return PERSONAL


def test_a_run_without_personal_data_is_replayed_as_it_was_recorded(tmp_path: Path) -> None:
    agent = keeper(
        call("find", name="ann@example.org"), lambda asked: f"It says {asked.last}", "Bye."
    )
    hidden = [pii_filter(ledger=True)]
    ledger = run(*hidden, agent=agent, case=PERSONAL)
    assert diff(ledger, asyncio.run(replay(ledger, agent, middleware=hidden))) == []
    first, last = PERSONAL.turns
    case = replace(PERSONAL, turns=[first, replace(last, expect=Expect(contains="Bye"))])
    options: Any = {"middleware": hidden, "store": False}
    rehearse(agent, case, record=tmp_path, **options)
    again = rehearse(agent, case, replay=tmp_path, **options)["personal"]
    assert (again.status, {reply.source for reply in again.ledger.of(ModelReplied)}) == (
        "passed",
        {"replayed"},
    )


def test_what_was_answered_without_personal_data_is_not_asked_again_when_it_is_shrunk() -> None:
    agent = Agent("clerk", model=Scripted(then="No."), instructions="Ask eve@example.org.")
    case = Case("c", turns=[Turn("I am ann@example.org"), Turn("Refund")])
    hidden = [pii_filter(ledger=True)]
    failed = run(*hidden, agent=agent, case=case)
    found = asyncio.run(shrink(case, agent, lambda _: True, ledger=failed, middleware=hidden))
    assert (len(found.case.turns), found.model_calls) == (1, 0)


@pytest.mark.parametrize("is_said", [True, False])
def test_an_attachment_loses_its_name_and_is_still_found_by_its_digest(is_said: bool) -> None:
    picture = attach(b"GIF89a-picture", "image/gif", name="call 12345.gif")
    case = Case("c", says="Hi", mocks={"find": {"age": 70, "picture": picture}})
    if is_said:
        case = Case("c", says="Hi", attachments=[picture], mocks={"find": {"age": 70}})
    rules = pii_filter({"number": r"\d+"}, ledger=True)
    ledger = run(rules, agent=keeper(call("find", name="Ada"), "Done."), case=case)
    (found,) = attachments(ledger)
    assert (found.digest, found.size) == (picture.digest, picture.size)
    assert "12345" not in ledger.dumps()


def test_what_was_recorded_before_a_case_goes_through_it_too() -> None:
    session = run(
        agent=keeper("Hello.", "Again."), case=Case("c", turns=[Turn(CARD), Turn("Again")])
    )
    case = Case.from_ledger(session, turn=1)
    assert (
        CARD
        not in run(pii_filter(ledger=True), agent=keeper("Hello.", "Again."), case=case).dumps()
    )
