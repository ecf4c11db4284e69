"""`greenroom init`: a project to begin with."""

from pathlib import Path

from greenroom.apps.cli.exits import PASSED, put_out, telling
from greenroom.errors import BadFile

_STARTER = Path(__file__).parent.parent / "starter"
_FILES = {
    "agent.py": "agent.py",
    "evals/desk.evalset.yaml": "evals/desk.evalset.yaml",
    "tests/test_agent.py": "tests/test_agent.py",
    "workflow.yml": ".github/workflows/evals.yml",
}
_AFTER = """
What to do next{where}
  greenroom eval run agent.py          run the cases
  pytest                               the same as tests
  greenroom eval watch agent.py        run them again whenever you save"""


def start(folder: str) -> int:
    """Write the starter's files; one that is already there is left alone, and told."""
    home = Path(folder)
    with telling(verbose=False):
        for source, target in _FILES.items():
            put_out(_written(_STARTER / source, home / target))
    where = "" if home == Path() else f", in {home}"
    put_out(_AFTER.format(where=where))
    return PASSED


def _written(source: Path, target: Path) -> str:
    text = source.read_text(encoding="utf-8")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        # Opening it this way fails if it exists, even if it was made a moment ago.
        with target.open("x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        return f"kept   {target}, which was already there"
    except OSError as error:
        raise BadFile(f"cannot write {target}: {error}.") from error
    return f"wrote  {target}"
