"""Policies as files: a StableHLO program, arrays for NumPy, and a description."""
