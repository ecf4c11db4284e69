"""An advanced user: a scripted opening, then a person with goals; approvals; and who judges whom.

    python examples/simulated_user.py

The agent asks its customer for permission before it pays. The customer is played by a model, and a
judge looks at both sides: did the customer reach the goals, and did the player stay in character?
"""

from greenroom import Agent, Case, Scripted, SimulatedUser, Stop, UserAgents, call, rehearse, tool
from greenroom.ledger import messages
from greenroom.metrics import called, goals_achieved, simulator_quality


@tool
def refund(order: int) -> str:
    """Pay an order back."""
    raise RuntimeError("this would move real money")


@tool(yields=True)
def approve(amount: int) -> bool:
    """Ask the customer for permission."""


agent = Agent(
    "clerk",
    model=Scripted(
        "Which order is it?",
        call("approve", amount=20),
        call("refund", order=7),
        "We are sorry. 20 euros for order 7 are on their way.",
    ),
    instructions="Pay back what came broken. Ask for permission first.",
    tools=[approve, refund],
)

# The player of the customer. Yours: SimulatedUser(..., model="openai:gpt-4o-mini").
customer = SimulatedUser(
    "You bought a cup that came in pieces. You answer only what you are asked.",
    plan=["Complain.", "Name order 7 when asked.", "Leave when the money is promised."],
    goals=["the money back", "an apology"],
    model=Scripted(
        "It is order 7.",
        "<done 1>20 euros for order 7 are on their way.</done><done 2>We are sorry.</done> Bye.",
    ),
)

reached = goals_achieved(
    model=Scripted(
        {"reasoning": "It is paid.", "reached": True, "quote": "are on their way"},
        {"reasoning": "It says so.", "reached": True, "quote": "We are sorry."},
    )
)
in_character = simulator_quality(
    model=Scripted(then={"reasoning": "As the plan says.", "label": "in_character"})
)

case = Case(
    "broken-cup",
    says="My cup came in pieces!",
    # One agent for each kind of wait: the person talks, a constant gives permission.
    user=UserAgents(loop=customer, tools={"approve": True}),
    mocks={"refund": "done"},
    metrics=[called("refund", {"order": 7}), reached, in_character],
    stop=Stop(max_turns=8),
)

if __name__ == "__main__":
    report = rehearse(agent, [case])
    print(report)
    for message in messages(report["broken-cup"].ledger):
        print(f"{message.role}: {message.text}")
