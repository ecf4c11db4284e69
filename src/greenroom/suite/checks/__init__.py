"""Checks of an evaluation before its first case."""
