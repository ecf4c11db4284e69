"""Middleware: its hooks, how they are called, and the set that comes with Greenroom."""
