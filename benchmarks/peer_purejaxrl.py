"""Times purejaxrl's PPO on CartPole: run it in purejaxrl's own environment."""

import argparse
import importlib
import math
import sys
from pathlib import Path
from types import ModuleType
from typing import Any
from unittest.mock import MagicMock

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
from measure import count, mean_returns, of_members, peer_parser, report

UNUSED_MODULES = ("brax", "brax.envs", "brax.envs.wrappers.training", "navix")


class GRUCell(nn.Module):
    """Flax's GRU with the signature it had before flax 0.7, which purejaxrl calls."""

    @nn.compact
    def __call__(self, carry: jax.Array, inputs: jax.Array) -> Any:
        """Applies a cell as wide as its carry."""
        return MODERN_GRU_CELL(features=carry.shape[-1])(carry, inputs)

    @staticmethod
    def initialize_carry(key: jax.Array, batch: tuple[int, ...], size: int):
        """Returns zeros, whatever the key."""
        del key
        return jnp.zeros((*batch, size))


MODERN_GRU_CELL = nn.GRUCell


def load(source: str, recurrent: bool) -> ModuleType:
    """Imports the unmodified module, without the heavy packages CartPole never uses."""
    for name in UNUSED_MODULES:
        sys.modules.setdefault(name, MagicMock())
    nn.GRUCell = GRUCell
    sys.path.insert(0, str(Path(source, "purejaxrl")))
    return importlib.import_module("ppo_rnn" if recurrent else "ppo")


def config(arguments: argparse.Namespace) -> dict[str, Any]:
    """Returns purejaxrl's own CartPole settings, at the given size."""
    num_envs, num_steps = arguments.num_envs, arguments.num_steps
    return {
        "ENV_NAME": "CartPole-v1",
        "NUM_ENVS": num_envs,
        "NUM_STEPS": num_steps,
        "TOTAL_TIMESTEPS": arguments.updates * num_steps * num_envs,
        "UPDATE_EPOCHS": 4,
        "NUM_MINIBATCHES": 4,
        "LR": 2.5e-4,
        "ANNEAL_LR": not arguments.learning,
        "GAMMA": 0.99,
        "GAE_LAMBDA": 0.95,
        "CLIP_EPS": 0.2,
        "ENT_COEF": 0.01,
        "VF_COEF": 0.5,
        "MAX_GRAD_NORM": math.inf if arguments.learning else 0.5,
        "ACTIVATION": "tanh",
        "DEBUG": False,
    }


def returns(info: dict[str, jax.Array]) -> np.ndarray:
    """Mean returns `[N, P]` of what is known of every step, `[..., N, T, B]`."""
    ended = np.asarray(info["returned_episode"])
    total = np.asarray(info["returned_episode_returns"] * ended)
    means = mean_returns(total.sum(axis=(-2, -1)), ended.sum(axis=(-2, -1)))
    return np.atleast_2d(means).T


def main() -> None:
    """Trains once and prints the figures."""
    arguments = peer_parser(__doc__).parse_args()
    peer = load(arguments.source, arguments.recurrent)
    train = peer.make_train(config(arguments))
    if arguments.kernels:
        return count(train, arguments)
    timing = of_members(train, arguments)
    info = timing.output["metric" if arguments.recurrent else "metrics"]
    report(arguments, timing, returns(info))


if __name__ == "__main__":
    main()
