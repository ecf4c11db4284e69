"""The Python that has google-adk with its eval and a2a extras, apart from the one of the tests."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
FOLDER = ROOT / ".envs" / "adk-eval"
# google-adk keeps sessions in databases by way of SQLAlchemy.
NEEDED = (
    "google-adk[eval,a2a,mcp]>=2.13,<3",
    "sqlalchemy[asyncio]>=2,<3",
    "msgspec>=0.20",
    "rich>=13",
    "pytest>=8.3",
)


def environment() -> Path:
    """That Python, installed on first use; skips where it cannot be."""
    python, done = FOLDER / "bin" / "python", FOLDER / ".done"
    if not done.exists() or done.read_text() != _wanted():
        pip = (str(python), "-m", "pip", "install", "-q", "--disable-pip-version-check")
        try:
            run(sys.executable, "-m", "venv", str(FOLDER))
            run(*pip, *NEEDED)
            # Our entry points, without the version of the framework that we ask for ourselves.
            run(*pip, "--no-deps", "-e", str(ROOT))
        except subprocess.SubprocessError as error:
            pytest.skip(f"google-adk[eval] cannot be installed: {getattr(error, 'stderr', error)}")
        done.write_text(_wanted())
    return python


def _wanted() -> str:
    return "\n".join([*NEEDED, (ROOT / "pyproject.toml").read_text()])


def run(*command: str, folder: Path | None = None, check: bool = True) -> str:
    """What a command of that Python prints, its complaints included; it finds these tests."""
    ended = subprocess.run(
        command,
        check=check,
        capture_output=True,
        text=True,
        timeout=900,
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT / "tests")},
    )
    return ended.stdout if check else f"{ended.stdout}{ended.stderr}\nexit {ended.returncode}"
