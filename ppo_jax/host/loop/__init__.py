"""A run from its beginning to its end: phases, evaluations, checkpoints."""
