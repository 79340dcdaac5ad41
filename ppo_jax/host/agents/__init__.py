"""Results of runs: agents that are found again, played and drawn."""
