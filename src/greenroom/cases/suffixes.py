"""The suffixes of files that may hold cases."""

TEXTS = (".json", ".yaml", ".yml")
TABLES = (".jsonl", ".ndjson", ".csv", ".tsv")
"""Each row or line is a case."""
SUFFIXES = (*TEXTS, *TABLES)
