"""Traces and logs of other tools, read as ledgers, so that they can be measured here.

    from greenroom.traces import read_traces

    for found in read_traces("traces/helm.json"):
        print(found.conversation, found.ledger)

What a source does not contain is unknown, and no metric treats it as absent.
"""

from greenroom.traces.files import Document, TraceFile
from greenroom.traces.readers import TraceReader, read_traces
from greenroom.traces.records import Flaw, Imported, Span
from greenroom.traces.writer import LedgerWriter

__all__ = [
    "Document",
    "Flaw",
    "Imported",
    "LedgerWriter",
    "Span",
    "TraceFile",
    "TraceReader",
    "read_traces",
]
