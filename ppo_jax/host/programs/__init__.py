"""How programs are compiled, kept, and found again."""
