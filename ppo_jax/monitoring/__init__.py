"""Runs as they are on disk, whether or not they are under way: lists and pages."""
