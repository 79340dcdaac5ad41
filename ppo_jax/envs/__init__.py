"""Environments behind one protocol, and `check` to test yours.

`env` has the protocol, `suites` has environments of others by id, `physics` has the
common parts of simulations, `wrappers` change an environment, `pool` draws its starts
ahead, `probes` are environments with known answers, and `faults` break one on purpose.
"""

from ppo_jax.envs.brax import Brax
from ppo_jax.envs.check.check import check, check_types
from ppo_jax.envs.craftax import Craftax
from ppo_jax.envs.env import (
    NEVER,
    ActionSpace,
    Box,
    Discrete,
    Env,
    MultiDiscrete,
    Timestep,
    outcome,
)
from ppo_jax.envs.faults import Faulty
from ppo_jax.envs.gymnasium import Gymnasium
from ppo_jax.envs.gymnax import Gymnax
from ppo_jax.envs.jumanji import Jumanji
from ppo_jax.envs.physics import Physics
from ppo_jax.envs.playground import Playground
from ppo_jax.envs.pool import ResetPool
from ppo_jax.envs.suites import make
from ppo_jax.envs.wrappers import (
    FrameStack,
    MaskObservation,
    Stateful,
    TimeLimit,
    Wrapper,
)
from ppo_jax.envs.xminigrid import XMiniGrid
