"""One agent: how it acts, what it learns from that, and many such at once."""
