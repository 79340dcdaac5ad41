"""Gradient transformations in the manner of optax."""
