"""What is wrong with an evaluation, found before its first case."""
