"""What critics say of many steps at once, against what they say of one."""

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from brief import experiment
from tabular import drawn

from ppo_jax import networks
from ppo_jax.ppo import valuation

SMALL = networks.Mlp(hidden=(8,))
KINDS = {
    "by themselves": networks.ActorCritic(torso=SMALL),
    "shared": networks.ActorCritic(torso=SMALL, shared=True),
    "with a memory": networks.ActorCritic(torso=SMALL, memory=networks.Gru(size=4)),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("length", "num_envs"), [(4, 2), (12, 1024)])
def test_each_step_has_the_value_that_it_has_alone(kind, length, num_envs):
    """Whether a CPU looks at all steps at once, or at three parts of them."""
    run = drawn(experiment("CartPole-v1", network=KINDS[kind], num_critics=2))
    draw = np.random.default_rng(0)
    obs = jnp.asarray(draw.normal(size=(length, num_envs, 4)), jnp.float32)
    reset = jnp.asarray(draw.random((length, num_envs)) < 0.3)
    network = run.learner.config.build()

    def alone(carry, step):
        rows = jax.tree.map(lambda x: x[None], step)
        out = network.apply(run.learner.params, carry, *rows)
        return out.carry, out.value.outputs[0]

    carry = network.initial_carry(num_envs)
    _, expected = jax.jit(lambda: jax.lax.scan(alone, carry, (obs, reset)))()
    said = jax.jit(valuation.predict)(run.learner, carry, obs, reset)
    chex.assert_trees_all_close(said.outputs, expected, rtol=1e-5, atol=1e-6)
    traced = str(jax.make_jaxpr(valuation.predict)(run.learner, carry, obs, reset))
    in_parts = kind == "by themselves" and length == 12
    assert ("f32[3,4,1024,4]" in traced) == in_parts


@pytest.mark.parametrize("kind", KINDS)
def test_critics_with_a_trunk_of_the_actor_or_a_memory_need_more(kind):
    config = experiment("CartPole-v1", network=KINDS[kind])
    assert valuation.independent(config) == (kind == "by themselves")
