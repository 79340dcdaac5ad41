"""Steps of an optimiser along gradients that change."""

import jax
import jax.numpy as jnp

KEY = jax.random.key(0)
PARAMS = {"w": jnp.linspace(-1.0, 1.0, 8), "b": jnp.array(0.3)}


def steps(optimizer, count=5, state=None):
    tx = optimizer.transformation()
    state = tx.init(PARAMS) if state is None else state
    for t in range(count):
        g = jax.tree.map(lambda w, t=t: 9 * jnp.cos(w + t), PARAMS)
        updates, state = tx.update(g, state, PARAMS, key=KEY)
    return updates, state
