"""Policies as files: a StableHLO program, arrays for NumPy, and what both mean."""
