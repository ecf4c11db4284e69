"""Serve an agent to other agents over the A2A protocol."""
