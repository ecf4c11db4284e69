"""The user's side of a case: which user agent answers, with what words, and what passes between the sides."""
