"""A conversation of several turns, with an expectation for each of them and for the state.

python examples/multi_turn.py
"""

from greenroom import Agent, Case, Expect, Scripted, Turn, call, rehearse, tool
from greenroom.ledger import trajectory
from greenroom.metrics import state_is, turns_within


@tool
def book_table(people: int, hour: int, ctx) -> str:
    """Book a table."""
    # Tables are kept in the session, so this tool touches nothing outside: the case may run it.
    ctx.state.session["booking"] = {"people": people, "hour": hour}
    return "booked"


agent = Agent(
    "waiter",
    model=Scripted(
        "For how many people?",
        "At what time?",
        call("book_table", people=4, hour=20),
        "A table for 4 at 20:00 is booked.",
        "See you tonight!",
    ),
    tools=[book_table],
)

case = Case(
    "books-a-table",
    turns=[
        Turn("I would like a table.", Expect(tools=[], contains="how many")),
        Turn("Four of us.", Expect(tools=[], contains="time")),
        Turn(
            "At eight in the evening.",
            Expect(
                tools=[call("book_table", people=4, hour=20)],
                state={"session": {"booking": {"hour": {"$gte": 18}}}},
            ),
        ),
        Turn("Thank you.", Expect(tools=[])),
    ],
    mocks={"book_table": book_table},
    metrics=[state_is("session", "booking", {"people": 4, "hour": 20}), turns_within(4)],
)

if __name__ == "__main__":
    report = rehearse(agent, [case])
    print(report)
    for step in trajectory(report["books-a-table"].ledger):
        if step.type in ("message", "tool"):
            print(f"{step.name}: {step.args}")
