"""Terms that move the policy, by hand in float64."""

import chex
import jax.numpy as jnp
import numpy as np

from ppo_jax import terms
from ppo_jax.state import Batch


def test_the_share_of_imitation_by_hand():
    """R-E7: 2 of 2 + 3, and 0 of 0."""
    term = terms.AdvantageWeighted(coef=1.0, temperature=1e9)
    out = terms.Forward(None, None, jnp.zeros(2))
    batch = Batch(**dict.fromkeys(Batch._fields))._replace(
        advantage=jnp.array([-3.0, 0.0]), log_prob=jnp.array([-2.0, 0.0])
    )
    _, said = term(out, batch, terms.Context((), (), jnp.zeros(()), None))
    share = said["train/policy_bc_vs_ppo_ratio"]
    chex.assert_trees_all_close(share, np.array([0.4, 0.0]), rtol=1e-6)
