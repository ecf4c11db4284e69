"""What it costs to start: CPU of importing Greenroom, and what is imported with it."""

import json
import sys
from pathlib import Path

from goals import Goal
from plan import Plan
from turns import Figures, cpu_of, in_turns, output

ALL_NAMES = "import greenroom\nfor name in greenroom.__all__: getattr(greenroom, name)"
PACKAGES = (
    f"import sys, json\nbefore = set(sys.modules)\n{ALL_NAMES}\n"
    "found = {name.partition('.')[0] for name in set(sys.modules) - before}\n"
    # msgspec looks for typing_extensions; records are made of msgspec.
    "ours = {'greenroom', 'msgspec', 'typing_extensions'}\n"
    "print(json.dumps(sorted(found - sys.stdlib_module_names - ours)))"
)


def measured(plan: Plan) -> Figures:
    """CPU seconds to start an interpreter and to import Greenroom in it; packages that come along."""
    python, door = [sys.executable, "-c"], Path(sys.executable).with_name("greenroom")
    commands = {
        "interpreter": [*python, "pass"],
        "import greenroom": [*python, "import greenroom"],
        "all public names": [*python, ALL_NAMES],
        "greenroom --help": [door, "--help"],
    }
    started = {name: lambda line=line: {"cpu": cpu_of(line)} for name, line in commands.items()}
    found = in_turns("start", started, plan.starts)
    packages = json.loads(output([sys.executable, "-c", PACKAGES]))
    return {name: figures["cpu"] for name, figures in found.items()} | {"packages": packages}


def goals(found: Figures) -> list[Goal]:
    """Importing is light."""
    bare = found["interpreter"]
    return [
        Goal("import greenroom", found["import greenroom"] - bare, 0.15, "s"),
        Goal("import all public names", found["all public names"] - bare, 0.25, "s"),
        Goal("packages imported with them, but msgspec", len(found["packages"]), 0, ""),
        Goal("greenroom --help", found["greenroom --help"], 0.3, "s"),
    ]


def lines(found: Figures) -> list[str]:
    """What is imported though it should not be."""
    packages = found["packages"]
    return [f"  imported besides: {', '.join(packages)}"] if packages else []
