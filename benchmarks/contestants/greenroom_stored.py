"""Greenroom as it runs by default: every event in the journal, every finished trial in the store."""

import asyncio
from pathlib import Path
from tempfile import TemporaryDirectory

import stopwatch
from contestants.greenroom import play

if __name__ == "__main__":
    with TemporaryDirectory() as folder:
        stopwatch.main(lambda rows, latency: asyncio.run(play(rows, latency, store=Path(folder))))
