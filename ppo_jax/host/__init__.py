"""The host's part of a run, from its process to the agents that it trains."""
