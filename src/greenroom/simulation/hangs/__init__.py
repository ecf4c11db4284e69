"""What hangs is cut: deadlines, and what breaks into work that does not yield."""
