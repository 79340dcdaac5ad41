"""Population-based training."""
