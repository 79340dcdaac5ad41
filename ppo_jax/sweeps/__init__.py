"""Sweeps: many settings and seeds, in as few programs as possible."""
