"""The beginning of a process, its output, and its end."""
