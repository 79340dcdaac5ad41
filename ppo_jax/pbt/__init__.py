"""Population-based training."""

from ppo_jax.pbt.config import PBT, Fitness, Maximize, Minimize
from ppo_jax.pbt.exploit import Copy, Reinitialize, Strategy
from ppo_jax.pbt.explore import (
    Copiers,
    Everyone,
    Explorer,
    Movers,
    Perturb,
    PerturbOrResample,
    Resample,
)
from ppo_jax.pbt.select import (
    BinaryTournament,
    Readiness,
    Selection,
    Selector,
    Truncation,
)
