"""The user's side of a case: who answers, with what words, and what crosses over."""
