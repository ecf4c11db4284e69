"""Files of every shape with random damage: each is read, or refused with a BadFile.

Run it for as long as you like:

    python tests/cases/files/fuzz_files.py [rounds] [seed]
"""

import random
import sys
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

sys.path[:0] = [str(Path(__file__).parents[2])]

from cases.files.samples import ADK_CONFIG, AGENTFLOW_CONFIG, FILES  # noqa: E402
from greenroom import EvalSet  # noqa: E402
from greenroom.cases import read_config, read_evalset, write_evalset  # noqa: E402
from greenroom.errors import BadFile  # noqa: E402

TOKENS = (
    *'{}[]",:-0123456789.eE+ \n\t\\/&*!|>%@`#~?<',
    "null", "true", "no", "NaN", "1e999", "\\ud800", "!!python/name:os.system", "*a", "&a ", "<<: ",
    "--- ", "\ufeff", "\0", "é", "😀", "../", '"id"', '"cases"', '"eval_cases"', "[]", "{}", '""', "-1",
)  # fmt: skip


def damaged(text: str, dice: random.Random) -> str:
    """The text with a few random changes."""
    for _ in range(dice.randint(1, 4)):
        at, length = dice.randrange(len(text) + 1), dice.randint(0, 12)
        text = dice.choice(CHANGES)(text, at, length, dice)
    return text


def cut(text: str, at: int, length: int, _: random.Random) -> str:
    return text[:at] + text[at + length :]


def insert(text: str, at: int, _: int, dice: random.Random) -> str:
    return text[:at] + dice.choice(TOKENS) + text[at:]


def replaced(text: str, at: int, length: int, dice: random.Random) -> str:
    return text[:at] + dice.choice(TOKENS) + text[at + length :]


def doubled(text: str, at: int, length: int, _: random.Random) -> str:
    return text[: at + length * 5] + text[at:]


def moved(text: str, at: int, length: int, dice: random.Random) -> str:
    to = dice.randrange(len(text) + 1)
    return text[:to] + text[at : at + length] + text[to:]


CHANGES: tuple[Callable[[str, int, int, random.Random], str], ...] = (
    cut,
    insert,
    replaced,
    doubled,
    moved,
)


def fuzz(rounds: int, seed: int) -> int:
    """Read damaged files; how many could still be read. Any other error than BadFile gets out."""
    dice = random.Random(seed)
    files = [(name, text, read_evalset) for name, text in FILES.values()]
    files += [
        ("c.json", str(c).replace("'", '"'), read_config) for c in (AGENTFLOW_CONFIG, ADK_CONFIG)
    ]
    survivors = 0
    with TemporaryDirectory() as folder:
        for _ in range(rounds):
            name, text, read = dice.choice(files)
            path = Path(folder) / name
            path.write_bytes(damaged(text, dice).encode("utf-8", "surrogatepass"))
            try:
                found = read(path)
                survivors += 1
                if isinstance(found, EvalSet):
                    write_evalset(found, Path(folder) / "again.yaml")
            except BadFile:
                continue
    return survivors


if __name__ == "__main__":
    given = [int(word) for word in sys.argv[1:]]
    rounds, seed = (given + [10_000, 0][len(given) :])[:2]
    print(f"{fuzz(rounds, seed)} of {rounds} damaged files could still be read")
