"""The suffixes of files that may hold cases."""

YAML = (".yaml", ".yml")
TEXTS = (".json", *YAML)
TABLES = (".jsonl", ".ndjson", ".csv", ".tsv")
"""Each row or line is a case."""
SUFFIXES = (*TEXTS, *TABLES)
