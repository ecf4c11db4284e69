"""Recorded trials run again: replayed, forked, shrunk, or continued."""
