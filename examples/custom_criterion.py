"""Criteria of your own: a function, a class with options, and a judge. Copy one and change it.

    python examples/custom_criterion.py

To ask for a criterion by its name, in files and configs, offer it in your package's pyproject.toml:

    [project.entry-points."greenroom.metrics"]
    polite = "my_package.criteria:polite"
"""

from greenroom import Agent, Case, NotApplicable, Score, Scripted, metric, rehearse
from greenroom.ledger import responses, tool_calls
from greenroom.metrics import judge


# A function asks for what it needs, by name. It returns a number from 0 to 1, True or False, or a
# Score. It passes at 0.5 unless it says otherwise.
@metric(threshold=1.0)
def short(response: str) -> float:
    """The last response has at most ten words."""
    return min(1.0, 10 / max(1, len(response.split())))


# A class has a name and `measure`. What cannot be judged is not applicable; it is never a 0.
class Polite:
    """The share of responses without a rude word."""

    def __init__(self, *, rude: tuple[str, ...] = ("stupid",), threshold: float = 1.0) -> None:
        self.name = "polite"
        self.rude = rude
        self.threshold = threshold

    async def measure(self, case, ledger, world):
        said = responses(ledger)
        if not said:
            return NotApplicable("the agent said nothing")
        fine = [text for text in said if not any(word in text.lower() for word in self.rude)]
        return Score(
            len(fine) / len(said),
            threshold=self.threshold,
            reason=f"{len(fine)} of {len(said)} responses are polite",
        )


# A criterion may look at everything that happened.
@metric
def no_tool_twice(ledger) -> bool:
    """No tool was called twice with the same arguments."""
    calls = [(record.tool, str(record.args)) for record in tool_calls(ledger)]
    return len(calls) == len(set(calls))


# What no code can see, a model judges. Yours: model="openai:gpt-4o-mini".
verdict = {"reasoning": "It offers help.", "verdict": True}
helpful = judge("helpful", "Does the agent offer help?", model=Scripted(then=verdict))

agent = Agent("clerk", model=Scripted("Hello! How can I help you today?"))
case = Case("greets", says="Hi", metrics=[short, Polite(), no_tool_twice, helpful])

if __name__ == "__main__":
    report = rehearse(agent, [case])
    print(report)
    for name, outcome in report["greets"].scores.items():
        print(f"{name}: {outcome.value:.2f} {outcome.reason}".rstrip())
