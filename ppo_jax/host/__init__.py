"""What the computer around a run does, from its process to the agents of it."""
