"""The middleware that comes with Greenroom: budgets, retries, approvals and the rest."""

import asyncio
from dataclasses import replace
from pathlib import Path
from time import monotonic
from typing import Any

import pytest

from greenroom import (
    Agent,
    Case,
    Expect,
    Ledger,
    Scripted,
    Turn,
    UserAgents,
    attach,
    call,
    perform,
    rehearse,
    simulate,
    tool,
)
from greenroom.cases import Lines
from greenroom.errors import BadInput, ModelUnreachable
from greenroom.ledger import ModelFailed, ModelReplied, Noted, RunEnded, ToolFailed, ToolReturned
from greenroom.ledger.messages import Usage
from greenroom.models.model import ModelReply, ModelRequest
from greenroom.testing import MiddlewareContract
from greenroom.world import (
    breaker,
    budget,
    cache,
    cost_attribution,
    pii_filter,
    rate_limit,
    recorder,
    retry,
    tool_approval,
)

ACTED: list[int] = []


@tool
def refund(order: int) -> str:
    """Refund an order."""
    ACTED.append(order)
    return f"refunded {order}"


def clerk(*replies: Any) -> Agent:
    return Agent("clerk", model=Scripted(*replies), tools=[refund])


CASE = Case("c", says="Hi", mocks={"refund": "ok"})
BARE = Case("c", says="Hi")


def run(*middleware: Any, agent: Any, case: Case = CASE, ledger: Ledger | None = None) -> Ledger:
    return asyncio.run(simulate(case, agent, ledger=ledger, middleware=middleware))


def end_of(ledger: Ledger) -> RunEnded:
    assert isinstance(ledger.last, RunEnded)
    return ledger.last


def paid(text: str = "", *calls: Any) -> ModelReply:
    return ModelReply(text, calls, Usage(60, 40), 0.02)


# Budget

SPENDER = clerk(paid("", call("refund", order=7)), paid("", call("refund", order=8)), paid("Done."))


@pytest.mark.parametrize(
    "limit, said",
    [({"tokens": 150}, "200 of 150 tokens"), ({"usd": 0.03}, "0.04 of 0.03 USD")],
)
def test_a_trial_that_reaches_its_budget_asks_no_more(limit: Any, said: str) -> None:
    ledger = run(budget(**limit), agent=SPENDER)
    end = end_of(ledger)
    assert (end.phase, end.error_type) == ("system", "OverBudget")
    assert said in end.error
    assert len(ledger.of(ModelReplied)) == 2


def test_a_trial_within_its_budget_is_left_alone() -> None:
    assert end_of(run(budget(tokens=300, usd=0.06), agent=SPENDER)).reason == "completed"


def test_an_unknown_price_or_usage_cannot_be_kept_to() -> None:
    unknown = clerk(ModelReply("", (call("refund", order=7),)), "Done.")
    assert "price of a model is unknown" in end_of(run(budget(usd=1), agent=unknown)).error
    assert "how many tokens" in end_of(run(budget(tokens=9), agent=unknown)).error


class TestBudget(MiddlewareContract):
    passes_through = False

    def middleware(self) -> Any:
        return budget(tokens=150)

    def agent(self) -> Any:
        return SPENDER

    def case(self) -> Case:
        return CASE


# Retries


class Flaky:
    """A model that fails as often as it is told to, per question."""

    name = "flaky"

    def __init__(self, failures: int, error: type[Exception] = ModelUnreachable) -> None:
        self.left = failures
        self.asked = 0
        self._error = error

    async def respond(self, request: ModelRequest, on_delta: Any = None) -> ModelReply:
        self.asked += 1
        if self.left:
            self.left -= 1
            raise self._error("no connection")
        return ModelReply("Done.", usage=Usage(1, 1), cost=0.0)


def retries(ledger: Ledger) -> int:
    return sum(note.name == "model_asked_again" for note in ledger.of(Noted))


@pytest.mark.parametrize("error", [ModelUnreachable, OSError])
def test_a_failed_question_is_asked_again_and_each_time_is_noted(error: type[Exception]) -> None:
    model = Flaky(2, error)
    ledger = run(retry(2, wait=0), agent=Agent("a", model=model), case=BARE)
    assert end_of(ledger).reason == "completed"
    assert (model.asked, retries(ledger), ledger.of(ModelFailed)) == (3, 2, [])
    model = Flaky(3, error)
    ledger = run(retry(2, wait=0), agent=Agent("a", model=model), case=BARE)
    assert end_of(ledger).reason == "error"
    assert model.asked == 3


def test_retries_from_before_a_cut_count() -> None:
    whole = run(retry(2, wait=0), agent=Agent("a", model=Flaky(2)), case=BARE)
    notes = [event.seq for event in whole.of(Noted)]
    cut = Ledger(whole.events[: notes[1] + 1])
    model = Flaky(1)
    ended = end_of(run(retry(2, wait=0), agent=Agent("a", model=model), case=BARE, ledger=cut))
    assert (ended.reason, model.asked) == ("error", 1)


def test_a_model_that_keeps_failing_is_left_alone_for_a_while() -> None:
    now, model = [0.0], Flaky(3, OSError)
    stops = breaker(after=2, rest=60, clock=lambda: now[0])
    agent = Agent("a", model=model)
    for _ in range(2):
        assert end_of(run(stops, agent=agent, case=BARE)).error_type != "CircuitOpen"
    ledger = run(stops, agent=agent, case=BARE)
    assert ledger.of(ModelFailed)[0].error_type == "CircuitOpen"
    assert model.asked == 2
    now[0] = 61.0
    run(stops, agent=agent, case=BARE)  # one may try, and fails
    assert (model.asked, run(stops, agent=agent, case=BARE).of(ModelReplied)) == (3, [])
    now[0] = 122.0
    assert end_of(run(stops, agent=agent, case=BARE)).reason == "completed"
    assert end_of(run(stops, agent=agent, case=BARE)).reason == "completed"


def test_a_model_rests_from_its_last_failure_on_each_time_that_it_keeps_failing() -> None:
    now, model = [0.0], Flaky(2, OSError)
    stops = breaker(after=2, rest=60, clock=lambda: now[0])
    agent = Agent("a", model=model)
    for _ in range(2):
        run(stops, agent=agent, case=BARE)
    now[0] = 100.0  # it has rested, though nobody asked meanwhile
    assert end_of(run(stops, agent=agent, case=BARE)).reason == "completed"
    now[0], model.left = 500.0, 9
    for _ in range(3):
        run(stops, agent=agent, case=BARE)
    assert model.asked == 5


def test_questions_to_one_model_wait_for_their_turn() -> None:
    asked: list[float] = []

    class Timed(Flaky):
        async def respond(self, request: ModelRequest, on_delta: Any = None) -> ModelReply:
            asked.append(monotonic())
            return await super().respond(request, on_delta)

    limit, agent = rate_limit(1200), Agent("a", model=Timed(0))

    async def three() -> None:
        await asyncio.gather(*(simulate(BARE, agent, middleware=[limit]) for _ in range(3)))

    begun = monotonic()
    asyncio.run(three())
    # Each may be late on a busy machine, none is early but for the grain of the clock.
    assert [at - begun > 0.05 * turn - 0.01 for turn, at in enumerate(asked)] == [True] * 3


# Approvals

ASKS = clerk(call("refund", order=7), lambda request: request.last)


def answered(answer: Any) -> Case:
    return Case(
        "c", says="Hi", mocks={"refund": "ok"}, user=UserAgents(tools={"refund": Lines(answer)})
    )


@pytest.mark.parametrize("answer", [True, {"approved": True}])
def test_an_approved_tool_is_called(answer: Any) -> None:
    ledger = run(tool_approval("refund"), agent=ASKS, case=answered(answer))
    assert [end.value for end in ledger.of(ToolReturned)] == ["ok"], end_of(ledger)


def test_a_denied_tool_is_not_called_and_the_agent_hears_why() -> None:
    no = {"approved": False, "reason": "too much"}
    ledger = run(tool_approval("refund"), agent=ASKS, case=answered(no))
    (failed,) = ledger.of(ToolFailed)
    assert failed.error == "the user did not approve: too much"
    assert failed.source == "middleware"


def test_only_calls_that_need_it_are_asked_about() -> None:
    big = tool_approval("refund", when=lambda call: call.args["order"] == 100)
    assert not [e for e in run(big, agent=ASKS) if e.kind == "yield_opened"]
    assert not [e for e in run(tool_approval("other"), agent=ASKS) if e.kind == "yield_opened"]


async def test_a_live_tool_waits_for_its_approval_in_this_process_or_another() -> None:
    ACTED.clear()
    needed = [tool_approval("refund")]
    ledger = await perform(ASKS, "Hi", store=False, middleware=needed)
    assert [wait.tool for wait in ledger.index_of().pending] == ["refund"]
    assert not ACTED
    kept = Ledger.loads(ledger.dumps())
    kept = await perform(
        ASKS, answers={"refund": True}, ledger=kept, store=False, middleware=needed
    )
    assert ACTED == [7]
    ACTED.clear()
    await perform(ASKS, answers={"refund": False}, ledger=ledger, store=False, middleware=needed)
    assert not ACTED


class TestApproval(MiddlewareContract):
    passes_through = False

    def middleware(self) -> Any:
        return tool_approval("refund")

    def agent(self) -> Any:
        return ASKS

    def case(self) -> Case:
        return answered(True)


# Personal data


def test_personal_data_reaches_neither_the_model_nor_the_ledger_of_replies() -> None:
    seen: list[str] = []

    def replies(request: ModelRequest) -> str:
        seen.append(request.last)
        return f"I write to {request.last} and bob@example.org."

    says = "I am ann@example.org, card 4111 1111 1111 1111, call +49 30 1234567."
    ledger = run(pii_filter(), agent=clerk(replies), case=Case("c", says=says))
    assert seen == ["I am [email], card [card], call [phone]."]
    (reply,) = ledger.of(ModelReplied)
    assert "@" not in reply.text
    assert "bob" not in reply.text


def test_a_word_of_a_million_letters_is_read_once_for_personal_data() -> None:
    # Read again from each of its letters it would take hours, such as a file in base64.
    ledger = run(pii_filter(), agent=clerk("x" * 1_000_000))
    assert ledger.of(ModelReplied)[0].text == "x" * 1_000_000


async def test_pieces_with_personal_data_are_held_until_they_are_hidden() -> None:
    pieces: list[str] = []
    agent = clerk("Ask ann@example.org.")
    await perform(agent, "Hi", store=False, middleware=[pii_filter()], on_delta=pieces.append)
    assert pieces == ["Ask [email]."]


def test_rules_may_be_given_and_must_be_patterns() -> None:
    ledger = run(pii_filter({"order": r"order \d+"}), agent=clerk("It is order 77."))
    assert ledger.of(ModelReplied)[0].text == "It is [order]."
    with pytest.raises(BadInput, match="not a pattern"):
        pii_filter({"bad": "("})


class TestPii(MiddlewareContract):
    def middleware(self) -> Any:
        return [budget(tokens=100_000), retry(2), pii_filter()]


# Cache, costs, records


def test_the_same_question_is_answered_from_the_folder(tmp_path: Path) -> None:
    model = Flaky(0)
    agent = Agent("a", model=model)
    run(cache(tmp_path), agent=agent, case=BARE)
    (reply,) = run(cache(tmp_path), agent=agent, case=BARE).of(ModelReplied)
    assert (reply.text, reply.source, reply.cost, model.asked) == ("Done.", "cached", 0.0, 1)


def test_it_is_said_who_spent_what() -> None:
    told: dict[str, Any] = {}
    run(cost_attribution(told.__setitem__), agent=SPENDER)
    (((agent, _), spent),) = told["c"].items()
    assert (agent, spent.calls, spent.usage) == ("clerk", 3, Usage(180, 120))
    assert spent.cost == pytest.approx(0.06)


def test_nobody_spends_in_a_replay_what_was_paid_before(tmp_path: Path) -> None:
    told: dict[str, Any] = {}
    case = replace(CASE, expect=Expect(contains="Done."))
    rehearse(SPENDER, case, record=str(tmp_path), store=False)
    bill = cost_attribution(told.__setitem__)
    rehearse(SPENDER, case, replay=str(tmp_path), middleware=[bill], store=False)
    assert [(one.calls, one.cost) for one in told["c"].values()] == [(3, 0.0)]


def test_each_ledger_is_saved(tmp_path: Path) -> None:
    ledger = run(recorder(tmp_path), agent=clerk("Done."))
    saved = Ledger.load(tmp_path / "c.1.jsonl")
    assert [event.kind for event in saved] == [event.kind for event in ledger][:-1]


def test_every_trial_of_every_case_has_a_file_and_a_bill_of_its_own(tmp_path: Path) -> None:
    told: dict[str, Any] = {}
    ids = ["a b", "a_b", "A_b", "a/b", "..", "x" * 300]
    rehearse(
        clerk("Done."),
        [Case(one, says="Hi") for one in ids],
        trials=2,
        store=False,
        middleware=[recorder(tmp_path), cost_attribution(told.__setitem__)],
    )
    assert len({path.name.lower() for path in tmp_path.iterdir()}) == 12
    assert sorted(told) == sorted(f"{one}{number}" for one in ids for number in ("", "#2"))


def test_what_a_recorder_saved_can_be_replayed_with_its_attachments(tmp_path: Path) -> None:
    seen = Case("seen", says="See", attachments=[attach(b"GIF89a-picture", "image/gif")])
    case = replace(seen, expect=Expect(contains="Done"))
    rehearse(clerk("Done."), case, middleware=[recorder(tmp_path)], store=False)
    assert (tmp_path / "attachments").is_dir()
    again = rehearse(clerk("Other."), case, replay=str(tmp_path), store=False)["seen"]
    assert (again.status, again.responses) == ("passed", ["Done."])


async def test_a_live_conversation_is_saved_under_its_id(tmp_path: Path) -> None:
    await perform(clerk("Done."), "Hi", store=False, middleware=[recorder(tmp_path)])
    assert len(Ledger.load(tmp_path / "conversation.jsonl").of(ModelReplied)) == 1


def test_a_case_with_a_seed_asks_another_question_in_every_trial(tmp_path: Path) -> None:
    agent = clerk(lambda request: f"{request.seed}")
    seeded = Case("c", says="Hi", seed=7)
    for source in ("live", "cached"):
        report = rehearse(agent, seeded, trials=3, middleware=[cache(tmp_path)], store=False)
        assert [result.responses for result in report.results] == [["7"], ["8"], ["9"]]
        replies = [reply for result in report.results for reply in result.ledger.of(ModelReplied)]
        assert [reply.source for reply in replies] == [source] * 3


def test_a_reply_that_breaks_off_is_not_kept(tmp_path: Path) -> None:
    agent = clerk(lambda request: ModelReply("It is", partial=True))
    for _ in range(2):
        (reply,) = run(cache(tmp_path), agent=agent).of(ModelReplied)
        assert (reply.partial, reply.source) == (True, "live")


class TestCache(MiddlewareContract):
    passes_through = False

    @pytest.fixture(autouse=True)
    def folder(self, tmp_path: Path) -> None:
        self._folder = tmp_path

    def middleware(self) -> Any:
        return cache(self._folder)


class TestObservers(MiddlewareContract):
    @pytest.fixture(autouse=True)
    def folder(self, tmp_path: Path) -> None:
        self._folder = tmp_path

    def middleware(self) -> Any:
        told: dict[str, Any] = {}
        return [
            cost_attribution(told.__setitem__),
            recorder(self._folder),
            breaker(),
            rate_limit(1e9),
        ]


@pytest.mark.parametrize(
    "make",
    [
        budget,
        lambda: budget(tokens=0),
        lambda: retry(0),
        lambda: retry(1, wait=-1),
        lambda: breaker(0),
        lambda: breaker(rest=0),
        lambda: rate_limit(0),
        tool_approval,
    ],
)
def test_what_cannot_be_meant_is_refused(make: Any) -> None:
    with pytest.raises(BadInput):
        make()


def test_middleware_that_would_be_no_use_is_refused() -> None:
    async def agent(message: str) -> str:
        return "Done."

    with pytest.raises(BadInput, match="'tool_approval' needs approvals"):
        run(tool_approval("refund"), agent=agent, case=BARE)


def test_turns_are_counted_together() -> None:
    two = Case("c", turns=[Turn("Hi"), Turn("Again")])
    agent = clerk(paid("One."), paid("Two."))
    assert end_of(run(budget(tokens=100), agent=agent, case=two)).error_type == "OverBudget"
