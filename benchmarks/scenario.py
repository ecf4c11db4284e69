"""What every contestant plays: rows of plain data, and how many of them must pass.

A user asks for the weather, the agent calls one tool and answers in forty words. In every ten rows
one agent asks for the wrong city and one answers something unrelated, so exactly 80 % pass. The
answers draw on many words, because texts from one template flatter whoever caches.

`compared_rows` are the same, but the answer is to resemble a reference: nine words in ten are those
of the reference, some in another form. Their 20,000 words are made up, each as likely as the next,
which is harder on a cache than English is.
"""

from dataclasses import dataclass, replace
from functools import cache
from random import Random

WRONG_CITY, UNRELATED = 3, 7
CONCURRENCY = 64

CITIES = ("Paris", "Tokyo", "Cairo", "Lima", "Oslo", "Delhi", "Quito", "Rome", "Accra", "Hanoi")
VOCABULARY = (
    "morning evening harbour river mountain valley market garden window station bridge island "
    "coast forest meadow village avenue square tower castle museum library theatre kitchen "
    "umbrella jacket scarf boots gloves blanket lantern basket bottle compass ticket letter "
    "quiet bright gentle heavy narrow distant golden silver frozen sudden steady hollow early "
    "later seldom always nearly almost perhaps surely slowly quickly rather quite hardly mostly "
    "walking sailing climbing waiting leaving arriving carrying watching reading singing cooking "
    "drizzle thunder breeze shower sunshine rainbow hailstone pressure humidity forecast horizon"
)
WORDS = VOCABULARY.split()

LIKENESS = 0.8
VARIED = 20_000
TEXT = 40
SYLLABLES = [
    f"{one}{vowel}{two}" for one in "bdfgklmnprstv" for vowel in "aeiou" for two in "lnrst"
]
ENDINGS = "s ed ing er ers able ation ations ment ful ness ive ize ized ically ity ous"
SUFFIXES = ENDINGS.split()


@dataclass(frozen=True, slots=True)
class Row:
    """One case as plain data, with what the scripted agent is going to do."""

    id: str
    says: str
    weather: dict[str, object]
    expected_city: str
    expected_text: str
    asked_city: str
    answer: str
    reference: str = ""


def rows(count: int) -> list[Row]:
    """The first `count` rows; always the same ones."""
    return [_row(number) for number in range(count)]


def compared_rows(count: int) -> list[Row]:
    """The first `count` rows with answers that are compared with a reference."""
    return [_compared(row, number) for number, row in enumerate(rows(count))]


def expected_passes(count: int) -> int:
    """How many of the first `count` rows pass, whoever plays them."""
    return sum(number % 10 not in (WRONG_CITY, UNRELATED) for number in range(count))


def _row(number: int) -> Row:
    chance = Random(number)
    city = f"{CITIES[number % 10]}-{number}"
    celsius = chance.randrange(-10, 40)
    found = f"{celsius} degrees in {city}"
    said = "nobody could find out anything" if number % 10 == UNRELATED else f"it is {found}"
    return Row(
        id=f"case-{number}",
        says=f"Request {number}: what is the weather in {city}, and do I need a coat?",
        weather={"city": city, "celsius": celsius, "sky": chance.choice(WORDS)},
        expected_city=city,
        expected_text=found,
        asked_city="Atlantis" if number % 10 == WRONG_CITY else city,
        answer=" ".join([said, *chance.sample(WORDS, 40 - len(said.split()))]),
    )


def _compared(row: Row, number: int) -> Row:
    chance = Random(number)
    reference = text(chance)
    if number % 10 == UNRELATED:
        return replace(row, reference=reference, answer=text(chance))
    said = reference.split()
    said[:4] = chance.sample(varied_words(), 4)
    said[4:8] = [word + "s" for word in said[4:8]]
    return replace(row, reference=reference, answer=" ".join(said))


def text(chance: Random) -> str:
    """Forty words by chance."""
    return " ".join(chance.sample(varied_words(), TEXT))


@cache
def varied_words() -> list[str]:
    """Made-up words with English endings, all different."""
    chance = Random(0)
    made: dict[str, None] = {}
    while len(made) < VARIED:
        made["".join(chance.choices(SYLLABLES, k=2)) + chance.choice(["", *SUFFIXES])] = None
    return list(made)
