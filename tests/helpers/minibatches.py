"""Minibatches `[3, 2]` of random numbers, and the other arguments of terms."""

import jax
import jax.numpy as jnp
import numpy as np

from ppo_jax import terms
from ppo_jax.critics import Scalar, ValueDist
from ppo_jax.networks.distributions import Categorical
from ppo_jax.normalization.return_scale import identity
from ppo_jax.state import Batch

SHAPE = (3, 2)


def normal(seed, *axes, scale=1.0):
    numbers = np.random.default_rng(seed).normal(size=(*SHAPE, *axes)) * scale
    return jnp.asarray(np.float32(numbers))


def forward(critic=None, twins=2, seed=0):
    """Returns the output of a pass: a policy of three actions, and critics."""
    critic = Scalar() if critic is None else critic
    value = ValueDist(normal(seed + 2, twins, critic.num_outputs), critic)
    policy = Categorical(normal(seed, 3))
    return terms.Forward(policy, value, normal(seed + 1, scale=0.3))


def minibatch(**fields):
    """Returns a batch with these fields and the weights, and nothing more."""
    empty = dict.fromkeys(Batch._fields) | {"weight": jnp.ones(SHAPE)}
    return Batch(**empty | fields)


def context(memory=(), prepared=(), progress=0.0, scale=None, **fields):
    scale = identity() if scale is None else scale
    return terms.Context(memory, prepared, jnp.float32(progress), scale, **fields)


def targets(reward, target=None, weight=None, unit=1.0, cost=0.0, discount=0.0):
    """A rollout, of which a term prepares what it needs; each step by itself."""
    reward = jnp.asarray(reward, jnp.float32)
    target = reward if target is None else jnp.asarray(target, jnp.float32)
    weight = jnp.ones_like(reward) if weight is None else jnp.asarray(weight)
    cost, discount = (
        jnp.broadcast_to(jnp.float32(x), reward.shape) for x in (cost, discount)
    )
    unit, key = jnp.float32(unit), jax.random.key(0)
    return terms.RolloutTargets(reward, target, weight, unit, cost, discount, key)
