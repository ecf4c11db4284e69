"""The door for other agents: an agent that answers by the A2A protocol."""
