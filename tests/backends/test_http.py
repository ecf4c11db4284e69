"""Agents behind an address, asked over a real connection to this machine."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backends.far_side import FarSide, Torn
from greenroom import Case, Expect, Turn, Unmeasured, evaluate
from greenroom.backends.http import NAMES, HttpBackend, Template, answer_path, found_at, http_agent
from greenroom.errors import BadAgent
from greenroom.ledger import Ledger
from greenroom.ledger import questions as q
from greenroom.ledger.redaction import without_secrets
from greenroom.metrics import called, contains, efficiency, event_count, forbidden_calls
from greenroom.results import CaseResult


@pytest.fixture(scope="module")
def far() -> Iterator[FarSide]:
    side = FarSide()
    yield side
    side.close()


def case(**options: Any) -> Case:
    given: dict[str, Any] = {"says": "hello", "metrics": [contains("done")], **options}
    return Case("one", **given)


async def played(agent: Any, one: Case | None = None) -> CaseResult:
    report = await evaluate(agent, one or case(), allow_opaque=True)
    return report.results[0]


def error_of(result: CaseResult) -> str:
    assert result.error is not None
    assert result.error.phase == "agent"
    return result.error.message


async def test_a_chat_endpoint_is_asked_as_such(far: FarSide):
    url = far.address(lambda asked: {"choices": [{"message": {"content": "done"}}]})
    one = case(says="", turns=[Turn("hello"), Turn("again")])
    result = await played(http_agent(url, model="tiny"), one)
    assert result.status == "passed", result.error
    assert far.asked[-1] == {
        "model": "tiny",
        "messages": [
            {"role": "user", "content": "hello"},
            {"role": "assistant", "content": "done"},
            {"role": "user", "content": "again"},
        ],
    }


async def test_a_json_endpoint_is_asked_by_its_template(far: FarSide):
    url = far.address(lambda asked: {"reply": [{"text": f"done: {asked['question']}"}]})
    template = {"question": "User says: {{ message }}", "who": "{{state}}", "n": 1}
    agent = http_agent(
        url, template=template, answer="$.reply[0].text", headers={"X-Key": "s3cret"}
    )
    result = await played(agent, case(state={"user": {"name": "Ada"}}))
    assert result.status == "passed", result.error
    assert far.asked[-1] == {
        "question": "User says: hello",
        "who": {"user": {"name": "Ada"}},
        "n": 1,
    }
    assert far.headers[-1]["X-Key"] == "s3cret"


async def test_a_secret_header_is_in_no_ledger(far: FarSide):
    url = far.address(lambda asked: "done").replace("http://", "http://ada:pass@")
    result = await played(http_agent(f"{url}?token=xyzzy", headers={"X-Key": "s3cret"}))
    assert isinstance(result.ledger, Ledger)
    text = result.ledger.dumps()
    assert "X-Key" in text
    assert not any(secret in text for secret in ("s3cret", "pass@", "xyzzy"))


async def test_a_text_is_an_answer_too(far: FarSide):
    agent = http_agent(far.address(lambda asked: "all done"), template={"q": "{{message}}"})
    assert (await played(agent)).status == "passed"


async def test_every_result_says_that_nothing_was_intercepted(far: FarSide):
    agent = http_agent(far.address(lambda asked: "done"), template="{{message}}")
    report = await evaluate(agent, case(), allow_opaque=True)
    (result,) = report.results
    assert any("not intercepted" in note for note in result.notes)
    assert any("not intercepted" in note for note in report.notes)
    assert (result.usage, result.cost) == (None, None)
    assert result.ledger is not None
    assert q.unseen(result.ledger) == ("models", "tools")


def quiet(tool_calls: Any) -> bool:
    return not tool_calls


@pytest.mark.parametrize(
    "metric",
    [
        called("refund"),
        forbidden_calls("refund"),
        efficiency(calls=0),
        event_count("tool_call", at_most=0),
        quiet,
    ],
)
async def test_calls_that_nobody_saw_are_not_judged(far: FarSide, metric: Any):
    agent = http_agent(far.address(lambda asked: "done"), template="{{message}}")
    result = await played(agent, case(metrics=[metric]))
    (outcome,) = result.scores.values()
    assert isinstance(outcome, Unmeasured), outcome
    assert result.status == "error"


async def test_expected_calls_that_nobody_saw_are_not_judged(far: FarSide):
    agent = http_agent(far.address(lambda asked: "done"), template="{{message}}")
    one = Case("one", turns=[Turn("hello", expect=Expect(tools=[]))])
    result = await played(agent, one)
    assert [type(outcome) for outcome in result.scores.values()] == [Unmeasured]


async def test_without_the_allowance_nothing_is_asked(far: FarSide):
    agent = http_agent(far.address(lambda asked: "done"), template="{{message}}")
    before = len(far.asked)
    with pytest.raises(BadAgent, match="allow_opaque=True"):
        await evaluate(agent, case())
    assert len(far.asked) == before


@pytest.mark.parametrize(
    "answer,told",
    [
        (lambda asked: (503, "come back later"), "answered 503: 'come back later'"),
        (lambda asked: (302, ""), "answered 302"),
        (lambda asked: {"other": 1}, r"has nothing at '\$.reply'; it is \{'other': 1\}"),
        (lambda asked: {"reply": ""}, "answered with nothing"),
        (lambda asked: {"reply": " \n"}, "answered with nothing"),
        (lambda asked: {"reply": "\u200b"}, "answered with nothing"),
    ],
)
async def test_what_went_wrong_is_named(far: FarSide, answer: Any, told: str):
    agent = http_agent(far.address(answer), template="{{message}}", answer="$.reply")
    result = await played(agent)
    assert result.status == "error"
    with pytest.raises(AssertionError, match=told):
        raise AssertionError(error_of(result))


@pytest.mark.parametrize(
    "answer,told",
    [
        (Torn("all done", 20), "broke off, 12 bytes before its end"),
        (Torn('{"reply": "all done"}', 30, "application/json"), "broke off, 9 bytes"),
        (Torn("", 5), "broke off, 5 bytes"),
        ("all done" + "." * 10_000_000, "answered with more than 10000000 bytes"),
    ],
    ids=["text", "json", "nothing", "too large"],
)
async def test_a_part_of_an_answer_is_no_answer(far: FarSide, answer: Any, told: str):
    result = await played(http_agent(far.address(lambda asked: answer), template="{{message}}"))
    assert result.status == "error"
    assert told in error_of(result)


async def test_an_endpoint_that_is_not_there_is_named(far: FarSide):
    gone = FarSide()
    url = gone.address(lambda asked: "done")
    gone.close()
    result = await played(http_agent(url, template="{{message}}"))
    assert "could not be asked" in error_of(result)


async def test_an_endpoint_that_does_not_answer_in_time_is_named(far: FarSide):
    def wait(asked: Any) -> str:
        far.closing.wait()
        return "late"

    result = await played(http_agent(far.address(wait), template="{{message}}", timeout=0.2))
    assert "no answer within 0.2 s" in error_of(result)


async def test_the_fence_is_open_to_that_port_and_to_no_other(far: FarSide):
    asked: list[Any] = []
    other = FarSide()
    elsewhere = http_agent(other.address(lambda given: asked.append(given) or "done"), template="x")

    class Wandering(HttpBackend):
        """Declares one place and asks another."""

        @property
        def reaches(self) -> tuple[str, ...]:
            return http_agent(far.address(lambda given: "done")).reaches

    agent = Wandering(elsewhere.endpoint, elsewhere.template)
    result = await played(agent)
    other.close()
    assert result.error is not None
    assert (result.status, result.error.type, asked) == ("error", "FenceBreach", [])


@pytest.mark.parametrize("url", ["", "localhost:80/x", "ftp://host/x", "http://", "http://h:x/"])
def test_what_is_no_address_is_refused(url: str):
    with pytest.raises(BadAgent, match="not an address"):
        http_agent(url)


@pytest.mark.parametrize("path", ["$.", "$..a", "$.a[", "$.a[-1]", "$.a b", "$[*]"])
def test_what_is_no_path_is_refused(path: str):
    with pytest.raises(BadAgent, match="not a path"):
        http_agent("http://host/", template="x", answer=path)


def test_an_unknown_place_in_a_template_is_refused():
    with pytest.raises(BadAgent, match="'mesage'"):
        http_agent("http://host/", template={"q": ["{{mesage}}"]})


@given(st.text())
def test_what_a_user_says_is_never_read_as_a_place(said: str):
    values = {**dict.fromkeys(NAMES, "{{run_id}}"), "message": said}
    assert Template({"q": "<{{message}}>"}).filled(values) == {"q": f"<{said}>"}
    assert Template("{{ message }}").filled(values) == said


@given(
    st.lists(st.one_of(st.integers(0, 3), st.from_regex(r"[a-z_][a-z0-9_-]{0,5}", fullmatch=True)))
)
def test_a_path_finds_what_was_put_there(steps: list[str | int]):
    reply: Any = "here"
    for step in reversed(steps):
        reply = {step: reply} if isinstance(step, str) else [*([None] * step), reply]
    text = "$" + "".join(f".{s}" if isinstance(s, str) else f"[{s}]" for s in steps)
    assert found_at(reply, answer_path(text)) == "here"


async def test_what_an_agent_is_sent_as_a_secret_is_redacted_wherever_it_turns_up(
    far: FarSide, tmp_path: Path
):
    url = far.address(lambda asked: f"done, you sent plain-words-of-mine and {asked['pin']}")
    http_agent("http://bob:open-sesame@127.0.0.1:9/?access_token=query-words")
    agent = http_agent(
        url,
        template={"q": "{{message}}", "pin": "x", "api_key": "template-words"},
        headers={"X-Tenant": "plain-words-of-mine", "Accept": "application/json"},
    )
    report = await evaluate(agent, case(), allow_opaque=True)
    report.save(tmp_path / "report.json")
    saved = (tmp_path / "report.json").read_text()
    assert "plain-words-of-mine" not in saved
    assert "[redacted:X-Tenant]" in saved
    told = without_secrets("open-sesame query-words template-words application/json")
    assert told.split() == [
        "[redacted:url_password]",
        "[redacted:access_token]",
        "[redacted:api_key]",
        "application/json",
    ]
