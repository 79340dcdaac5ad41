"""Tiny environments with known answers, one for each kind of defect.

Each docstring gives the result of a correct agent, and that of a broken one.
Everything is small: a probe compiles in no time.
"""

from ppo_jax.envs.probes.bandits import (
    GridCue,
    HiddenSteps,
    IdenticalRewards,
    MaskedBandit,
    NestedObservation,
    NoisyReturns,
    OneStep,
    RiskyBandit,
    Target,
    TwoDigits,
)
from ppo_jax.envs.probes.episodes import (
    Accumulator,
    Costs,
    RecallCue,
    TimeLimitChain,
    TimeLimited,
)
