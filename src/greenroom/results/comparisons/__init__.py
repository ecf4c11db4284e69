"""Compares two reports: what changed, how certain that is, and what follows."""
