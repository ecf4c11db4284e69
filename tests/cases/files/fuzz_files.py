"""Files of every shape with random damage: each is read, or refused with a BadFile.

Run it for as long as you like:

    python tests/cases/files/fuzz_files.py [rounds] [seed]
"""

import json
import random
import sys
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import yaml

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


VALUES: tuple[Any, ...] = (
    None,
    5,
    -1.5,
    True,
    "",
    "x",
    [],
    {},
    [[]],
    [{}],
    {"a": 1},
    [None],
    "a/b",
)


def reshaped(text: str, dice: random.Random) -> str:
    """The data with some of its values replaced by values of other kinds."""
    data = yaml.safe_load(text)
    for _ in range(dice.randint(1, 3)):
        data = with_another(data, dice)
    return json.dumps(data)


def with_another(data: Any, dice: random.Random) -> Any:
    """A copy in which one value somewhere inside is another."""
    if not isinstance(data, dict | list) or not data or dice.random() < 0.15:
        return dice.choice(VALUES)
    keys = list(data) if isinstance(data, dict) else range(len(data))
    key = dice.choice(keys)
    inner = with_another(data[key], dice)
    if isinstance(data, dict):
        return {k: inner if k == key else v for k, v in data.items()}
    return [inner if k == key else v for k, v in enumerate(data)]


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
    files += [("c.json", json.dumps(c), read_config) for c in (AGENTFLOW_CONFIG, ADK_CONFIG)]
    survivors = 0
    with TemporaryDirectory() as folder:
        for _ in range(rounds):
            name, text, read = dice.choice(files)
            path = Path(folder) / name
            spoil = damaged if path.suffix == ".csv" or dice.random() < 0.5 else reshaped
            path.write_bytes(spoil(text, dice).encode("utf-8", "surrogatepass"))
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
