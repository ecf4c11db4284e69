"""Results rendered for a reader; each reader's renderer is a file of its own."""
