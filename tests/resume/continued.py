"""Continue a cut run in a fresh interpreter: spec and JSON lines in, JSON lines out."""

import asyncio
import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

import graphs

from greenroom import Ledger, simulate


def main() -> None:
    given = json.load(sys.stdin)
    ledger = Ledger.loads(given["ledger"])
    done = asyncio.run(
        simulate(graphs.case(given["spec"]), graphs.build(given["spec"]), ledger=ledger)
    )
    sys.stdout.write(done.dumps())


if __name__ == "__main__":
    main()
