"""What is on disk of a run: files that are there whole or not at all."""
