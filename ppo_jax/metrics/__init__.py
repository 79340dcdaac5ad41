"""Numbers of updates, and what becomes of them over a phase."""
