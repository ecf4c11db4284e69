"""Recorded trials and conversations, measured without running the agent again."""
