"""Times rejax's PPO on CartPole: run it in rejax's own environment."""

import argparse
import math
import sys
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from gymnax.environments.classic_control.cartpole import CartPole
from measure import count, mean_returns, of_members, peer_parser, report


class Counted(NamedTuple):
    """What an environment is in, and its returns so far."""

    state: Any
    running: jax.Array
    """Return of the episode that is not over."""
    total: jax.Array
    """Sum over those that are."""
    count: jax.Array


class CountingCartPole(CartPole):
    """CartPole that adds up its returns, which rejax does not keep."""

    def reset(self, key, params=None):
        """Begins with no episode behind it."""
        obs, state = super().reset(key, params)
        return obs, Counted(state, jnp.zeros(()), jnp.zeros(()), jnp.int32(0))

    def step(self, key, state, action, params=None):
        """A step, and its reward added."""
        before = state
        obs, state, reward, done, info = super().step(key, before.state, action, params)
        running = before.running + reward
        counted = Counted(
            state,
            running=jnp.where(done, 0.0, running),
            total=before.total + jnp.where(done, running, 0.0),
            count=before.count + done,
        )
        return obs, counted, reward, done, info


def config(arguments: argparse.Namespace) -> dict[str, Any]:
    """Returns the settings shared by all peers; rejax does not anneal."""
    steps = arguments.num_steps * arguments.num_envs
    whole = arguments.updates * steps
    return {
        "env": CountingCartPole() if arguments.learning else "CartPole-v1",
        "agent_kwargs": {"activation": "tanh", "hidden_layer_sizes": (64, 64)},
        "num_envs": arguments.num_envs,
        "num_steps": arguments.num_steps,
        "total_timesteps": whole,
        "eval_freq": steps if arguments.learning else whole,
        "skip_initial_evaluation": True,
        "num_epochs": 4,
        "num_minibatches": 4,
        "learning_rate": 2.5e-4,
        "gamma": 0.99,
        "gae_lambda": 0.95,
        "clip_eps": 0.2,
        "ent_coef": 0.01,
        "vf_coef": 0.5,
        "max_grad_norm": math.inf if arguments.learning else 0.5,
    }


def counted(algorithm: Any, state: Any, key: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Sum and number of returns so far: an evaluation that plays nothing."""
    del algorithm, key
    return state.env_state.total.sum(), state.env_state.count.sum()


def learning_curves(total: jax.Array, count: jax.Array) -> np.ndarray:
    """Mean returns `[N, P]` of sums since the beginning, `[..., N]`."""
    new = (np.diff(np.asarray(x), axis=-1, prepend=0) for x in (total, count))
    return np.atleast_2d(mean_returns(*new)).T


def main() -> None:
    """Trains once and prints the figures; an evaluation at the end is not timed."""
    arguments = peer_parser(__doc__).parse_args()
    if arguments.recurrent:
        sys.exit("rejax has no recurrent PPO.")
    if arguments.source:
        sys.path.insert(0, str(Path(arguments.source, "src")))
    from rejax import PPO

    algorithm = PPO.create(**config(arguments))
    if arguments.learning:
        algorithm = algorithm.replace(eval_callback=counted)
        timing = of_members(algorithm.train, arguments)
        report(arguments, timing, learning_curves(*timing.output[1]))
        return
    timed = algorithm.replace(eval_callback=lambda *_: ())
    if arguments.kernels:
        return count(timed.train, arguments)
    timing = of_members(timed.train, arguments)
    state, _ = timing.output
    state = state if arguments.members > 1 else jax.tree.map(lambda x: x[None], state)
    key = jax.random.key(arguments.seed)
    _, played = jax.vmap(lambda one: algorithm.eval_callback(algorithm, one, key))(
        state
    )
    report(arguments, timing, np.asarray(played).mean(axis=-1)[None])


if __name__ == "__main__":
    main()
