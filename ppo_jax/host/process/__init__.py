"""How a process begins, what it shows, and how it ends."""
