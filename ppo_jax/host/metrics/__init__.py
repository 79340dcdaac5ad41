"""Metrics that a run logs, and the alerts that are signs of trouble in them."""
