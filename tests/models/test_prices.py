"""What a reply cost: by one's own prices, else by the table, else unknown; never a guessed zero."""

import warnings
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from greenroom import Scripted
from greenroom.errors import BadAgent, BadFile
from greenroom.ledger import Message
from greenroom.models import ModelReply, ModelRequest, Price, price_of, provider_model
from greenroom.models.prices import own_prices
from models.wire import Answer, openai, wire

QUESTION = ModelRequest("clerk", (Message("user", "Hello"),))


def write(text: str, folder: Path | None = None) -> None:
    (folder or Path()).joinpath("pyproject.toml").write_text(text)


async def asked(answer: Answer | None = None, **options) -> ModelReply:
    with wire([answer or openai("Hi", tokens=(1000, 200))]) as server:
        model = provider_model("openai:gpt-4o-mini", base_url=f"{server.url}/v1", **options)
        return await model.respond(QUESTION)


async def test_an_endpoint_of_ones_own_has_no_listed_price_whatever_its_models_are_called():
    reply = await asked()
    assert (reply.cost, reply.prices) == (None, "")


async def test_a_stand_in_is_priced_as_what_it_stands_for():
    reply = await asked(priced_as="openai:gpt-4o-mini")
    assert reply.cost == pytest.approx(1000 * 0.15e-6 + 200 * 0.60e-6)
    assert reply.prices.startswith("genai-prices ")


async def test_cached_tokens_are_cheaper_by_the_table():
    half = await asked(openai("Hi", tokens=(1000, 200, 500)), priced_as="openai:gpt-4o-mini")
    assert half.cost == pytest.approx(500 * 0.15e-6 + 500 * 0.075e-6 + 200 * 0.60e-6)


async def test_an_unlisted_model_has_no_price():
    assert (await asked(priced_as="openai:nobody-knows-this")).cost is None
    assert (await asked(priced_as="nowhere:gpt-4o-mini")).cost is None


async def test_ones_own_price_goes_before_the_table_and_is_named():
    write(
        '[tool.greenroom.prices]\n"openai:gpt-4o-mini" = { input = 2, output = 10, per = "million" }'
    )
    reply = await asked(priced_as="openai:gpt-4o-mini")
    assert reply.cost == pytest.approx(1000 * 2e-6 + 200 * 10e-6)
    assert reply.prices.startswith("pyproject.toml ")


def test_another_price_is_another_table():
    line = '[tool.greenroom.prices]\n"openai:gpt-4o-mini" = {{ input = {}, output = 1, per = "million" }}'
    write(line.format(1))
    first = own_prices()["openai:gpt-4o-mini"].table
    folder = Path("other")
    folder.mkdir()
    write(line.format(2), folder)
    assert own_prices(folder)["openai:gpt-4o-mini"].table != first


async def test_a_free_model_costs_nothing_and_that_is_known():
    write(
        '[tool.greenroom.prices]\n"openai:gpt-4o-mini" = { input = 0, output = 0, per = "million" }'
    )
    assert (await asked()).cost == 0.0


async def test_a_price_without_usage_is_no_cost():
    write(
        '[tool.greenroom.prices]\n"openai:gpt-4o-mini" = { input = 1, output = 1, per = "million" }'
    )
    assert (await asked(openai("Hi", tokens=None))).cost is None


async def test_a_broken_price_list_is_told_before_anything_is_paid_for():
    write('[tool.greenroom.prices]\n"openai:gpt-4o-mini" = { input = 1, output = 1 }')
    with wire([]) as server:
        model = provider_model("openai:gpt-4o-mini", base_url=f"{server.url}/v1")
        with pytest.raises(BadFile, match="per"):
            await model.respond(QUESTION)
    assert server.asked == []


def test_the_nearest_project_counts(tmp_path):
    write('[tool.greenroom.prices]\n"a:b" = { input = 1, output = 2, per = "million" }', tmp_path)
    inner = tmp_path / "src" / "deep"
    inner.mkdir(parents=True)
    assert own_prices(inner)["a:b"].output == pytest.approx(2e-6)
    write('[project]\nname = "x"', tmp_path / "src")
    assert own_prices(inner) == {}


def test_a_price_per_thousand_is_a_thousand_times_as_much():
    write(
        "[tool.greenroom.prices]\n"
        '"a:k" = { input = 0.002, output = 0.004, cached_input = 0.001, per = "thousand" }\n'
        '"a:m" = { input = 2, output = 4, cached_input = 1, per = "million" }'
    )
    found = own_prices()
    assert found["a:k"].cost(700, 30, 200) == pytest.approx(found["a:m"].cost(700, 30, 200))


def test_cached_tokens_cost_what_others_do_unless_said():
    write('[tool.greenroom.prices]\n"a:b" = { input = 3, output = 1, per = "million" }')
    assert own_prices()["a:b"].cached_input == own_prices()["a:b"].input


@pytest.mark.parametrize("amounts", ["input = 0.15, output = 0.60", "input = 1.25, output = 5.00"])
def test_a_price_per_thousand_that_looks_like_one_per_million_is_doubted(amounts):
    write(f'[tool.greenroom.prices]\n"a:b" = {{ {amounts}, per = "thousand" }}')
    with pytest.warns(UserWarning, match="per million tokens, which is implausible"):
        own_prices()


def test_a_usual_price_is_not_doubted():
    write(
        "[tool.greenroom.prices]\n"
        '"a:b" = { input = 0.03, output = 0.06, per = "thousand" }\n'
        '"a:c" = { input = 150, output = 600, per = "million" }'
    )
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert len(own_prices()) == 2


@pytest.mark.parametrize(
    "entry",
    [
        "7",
        '"cheap"',
        "{}",
        '{ input = 1, per = "million" }',
        "{ input = 1, output = 1 }",
        '{ input = 1, output = 1, per = "token" }',
        "{ input = 1, output = 1, per = 1000 }",
        '{ input = -1, output = 1, per = "million" }',
        '{ input = nan, output = 1, per = "million" }',
        '{ input = inf, output = 1, per = "million" }',
        '{ input = true, output = 1, per = "million" }',
        '{ input = "1", output = 1, per = "million" }',
        '{ input = 1, output = 1, per = "million", ouput = 2 }',
        '{ input = 1, output = 1, per = ["million"] }',
    ],
)
def test_a_price_that_cannot_be_meant_is_refused_by_its_model(entry):
    write(f'[tool.greenroom.prices]\n"a:b" = {entry}')
    with pytest.raises(BadFile, match="'a:b'"):
        own_prices()


@pytest.mark.parametrize(
    "text", ["[tool.greenroom]\nprices = 7", "[tool.greenroom", "[tool]\ngreenroom = 3", "tool = 1"]
)
def test_a_file_that_holds_no_table_of_prices_is_refused_or_has_none(text):
    write(text)
    with pytest.raises(BadFile, match=r"pyproject\.toml"):
        own_prices()


tokens = st.integers(0, 10**9)
usd = st.floats(0, 1, allow_nan=False)


@given(tokens, tokens, st.data(), usd, usd, usd)
def test_a_cost_is_never_negative_and_grows_with_use(read, written, data, dear, out, cheap):
    cached = data.draw(st.integers(0, read))
    price = Price(dear, out, cheap)
    assert price.cost(read, written, cached) >= 0
    assert price.cost(read, written + 1, cached) >= price.cost(read, written, cached)


def test_a_price_in_python_names_its_unit():
    price = Price.per_million(0.15, 0.60)
    assert price.cost(1_000_000, 500_000) == pytest.approx(0.15 + 0.30)
    assert Price.per_million(3, 15, cached_input=0.3).cost(1000, 0, 1000) == pytest.approx(0.0003)


@pytest.mark.parametrize("usd", [-1, float("nan"), float("inf"), True, "1", None])
def test_a_price_in_python_that_cannot_be_meant_is_refused(usd):
    with pytest.raises(BadAgent, match="output="):
        Price.per_million(1, usd)


def test_a_model_s_price_is_known_before_it_is_asked(monkeypatch):
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    listed = price_of(provider_model("openai:gpt-4o-mini"))
    assert listed is not None
    assert listed.cost(1000, 200, 500) == pytest.approx(
        500 * 0.15e-6 + 500 * 0.075e-6 + 200 * 0.6e-6
    )
    assert listed.table.startswith("genai-prices ")
    stand_in = provider_model(
        "openai:own", base_url="http://here/v1", priced_as="openai:gpt-4o-mini"
    )
    assert price_of(stand_in) == listed
    assert price_of(Scripted("Hi")) == Price(0, 0, 0, "scripted")


def test_a_model_whose_price_is_unknown_has_none():
    assert price_of(provider_model("openai:gpt-4o-mini", base_url="http://here/v1")) is None
    assert price_of(provider_model("ollama:qwen")) is None
    write('[tool.greenroom.prices]\n"ollama:qwen" = { input = 0, output = 0, per = "million" }')
    assert price_of(provider_model("ollama:qwen")) is not None
