"""What was recorded, here or elsewhere, measured without running the agent again."""
