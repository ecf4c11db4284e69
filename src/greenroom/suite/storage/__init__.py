"""A run in its store: begun, resumed, recorded trial by trial, and read back."""
