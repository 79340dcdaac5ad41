"""Predictions of critics, and critics that have learned."""

import jax
import jax.numpy as jnp
import numpy as np
import optax

from ppo_jax.critics import ValueDist


def name(critic):
    clip = "" if critic.clip is None else f"-{type(critic.clip).__name__}"
    return type(critic).__name__ + clip


def predictions(critic, seed, leading=(3, 4, 2)):
    rng = np.random.default_rng(seed)
    outputs = rng.normal(size=(*leading, critic.num_outputs)) * 2
    return ValueDist(jnp.asarray(outputs, jnp.float32), critic)


def targets(seed=9, leading=(3, 4)):
    return jnp.asarray(
        np.random.default_rng(seed).normal(size=leading) * 2, jnp.float32
    )


def clipped_loss(value, old, target, eps):
    """Returns the clipped loss as PPO uses it, `[..., C]`."""
    return jnp.maximum(value.loss(target), value.clip(old, eps).loss(target))


LEVELS = (np.arange(21) + 0.5) / 21
LOC = np.array([-2.0, 0.0, 1.0, 3.0])
SPREAD = np.array([0.5, 1.0, 1.5, 2.0])


def learned(critic):
    """Returns outputs `[4, 1, N]` after regression on samples of N(LOC, SPREAD²)."""
    steps = 800
    optimizer = optax.adam(optax.cosine_decay_schedule(0.1, steps))
    loc, spread = jnp.asarray(LOC, jnp.float32), jnp.asarray(SPREAD, jnp.float32)

    def loss(outputs, key):
        noise = jax.random.normal(key, (256, 4))
        rows = jnp.broadcast_to(outputs[None], (256, *outputs.shape))
        return ValueDist(rows, critic).loss(loc[None] + spread[None] * noise).mean()

    def step(state, key):
        outputs, opt_state = state
        updates, opt_state = optimizer.update(jax.grad(loss)(outputs, key), opt_state)
        return (optax.apply_updates(outputs, updates), opt_state), None

    @jax.jit
    def train(key):
        outputs = jnp.zeros((4, 1, critic.num_outputs))
        keys = jax.random.split(key, steps)
        return jax.lax.scan(step, (outputs, optimizer.init(outputs)), keys)[0][0]

    return ValueDist(train(jax.random.key(0)), critic)
