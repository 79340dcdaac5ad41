"""Variance scaling as a component of every optimiser."""

import chex
import jax
import jax.numpy as jnp
import pytest
from stepping import PARAMS, steps

from ppo_jax.optimizers import VGS, Sgd
from ppo_jax.transforms import vgs


@pytest.mark.parametrize("quantile", [0.5, None])
def test_how_leaves_are_summed_up(quantile):
    optimizer = Sgd(vgs=VGS(quantile=quantile))
    _, state = steps(optimizer)
    metrics = optimizer.metrics(state)
    median = metrics["vgs/stochastic_var_p50"]
    assert (metrics["vgs/normalized_variance"] == median) == (quantile is not None)


def test_the_link_of_a_chain_is_the_transformation_with_these_numbers():
    """Bit for bit, and what the statistics say as well."""
    numbers = {"alpha": 0.5, "cap": 9.0, "floor": 0.2, "warmup_steps": 1}
    component = VGS(**numbers, beta=0.9, quantile=None)
    plain = vgs.scale_by_variance(**numbers, beta=0.9, eps=1e-8, aggregate=vgs.pooled)
    given = [jax.tree.map(lambda w, t=t: 9 * jnp.cos(w + t), PARAMS) for t in range(4)]
    ends = []
    for link in (component.transformation(), plain):
        state = link.init(PARAMS)
        for gradient in given:
            updates, state = link.update(gradient, state, PARAMS)
        ends.append((updates, state))
    chex.assert_trees_all_equal(*ends)
    said = component.metrics(ends[0][1])
    assert 0.2 <= said["vgs/scaling_factor"] < 1


@pytest.mark.parametrize(
    ("number", "value"),
    [
        *[("alpha", -1.0), ("beta", 1.0), ("eps", 0.0), ("cap", 0.0), ("floor", 0.0)],
        ("warmup_steps", -1),
    ],
)
def test_impossible_numbers_are_errors(number, value):
    with pytest.raises(ValueError, match=rf"^VGS\.{number}: expected"):
        VGS(**{number: value})
