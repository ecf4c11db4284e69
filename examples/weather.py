"""A weather agent: one tool, three cases, and what a refused tool looks like.

python examples/weather.py
greenroom eval run examples/weather.py
"""

from greenroom import Agent, Case, Expect, Scripted, call, fault, rehearse, tool


@tool
def get_weather(city: str) -> dict[str, int]:
    """Current weather in a city."""
    raise RuntimeError("this would ask a weather service, and cost money")


def stand_in(request):
    """Answers in place of a model. Yours: model="openai:gpt-4o-mini"."""
    last = request.messages[-1]
    if last.role == "user":
        city = next((c for c in ("Paris", "Rome") if c in last.text), None)
        return call("get_weather", city=city) if city else "Which city?"
    return f"The weather service says: {last.text}"


agent = Agent(
    "weather",
    model=Scripted(then=stand_in),
    instructions="Answer questions about the weather. Ask for the city if it is missing.",
    tools=[get_weather],
)

cases = [
    Case(
        "one-call",
        says="What is the weather in Paris?",
        mocks={"get_weather": {"celsius": 21}},
        expect=Expect(tools=[call("get_weather", city="Paris")], contains="21"),
        tags=["smoke"],
    ),
    Case(
        "asks-for-the-city",
        says="Will it rain?",
        expect=Expect(tools=[], contains="Which city"),
    ),
    Case(
        "owns-up-when-the-service-is-down",
        says="What is the weather in Rome?",
        mocks={"get_weather": fault("service unavailable")},
        expect=Expect(tools=["get_weather"], contains="unavailable"),
    ),
]

if __name__ == "__main__":
    print(rehearse(agent, cases))
    forgotten = Case("forgotten", says="Paris?", expect=Expect(contains="21"))
    print(rehearse(agent, [forgotten])["forgotten"].error.type)
