"""PPO in JAX: recurrent, distributional, risk-aware, robust, and in populations."""

__version__ = "0.1.0"
