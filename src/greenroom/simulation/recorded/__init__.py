"""Recorded trials run again: replayed, forked, shrunk, or gone on from."""
