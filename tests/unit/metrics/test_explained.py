"""What is said of critics once they have learned, against numbers worked by hand."""

import chex
import jax.numpy as jnp

from ppo_jax.metrics.explained import Appraisal


def test_a_group_whose_targets_do_not_vary_has_no_part_in_means():
    """PROP-14.5: of two environments the first always pays the same."""
    target = jnp.array([[1.0, 0.0], [1.0, 2.0], [1.0, 4.0]])
    before, after = target.at[:, 0].set(9.0), jnp.zeros((3, 2))
    weight, alone = jnp.ones((3, 2)), jnp.full((3, 2), -1)
    said = Appraisal()(target, before, after, weight, None, alone)
    names = ("mean_grouped_weighted", "mean_grouped_unweighted", "median_grouped")
    got = [
        [float(said[f"train/ev/{name}{when}"]) for name in names]
        for when in ("", "_after")
    ]
    chex.assert_trees_all_close(got, [[1.0] * 3, [0.0] * 3], rtol=0, atol=1e-6)
