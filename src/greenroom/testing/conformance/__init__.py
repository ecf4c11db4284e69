"""The parts of the suite for backends, one class for each requirement."""
