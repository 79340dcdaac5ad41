"""Compiling programs, keeping them, and finding them again."""
