"""Results rendered for a reader, one module per format."""
