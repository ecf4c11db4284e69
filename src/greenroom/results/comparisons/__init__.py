"""Two reports side by side: what changed, how sure that is, and what follows."""
