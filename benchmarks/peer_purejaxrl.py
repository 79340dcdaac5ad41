"""Times purejaxrl's PPO on CartPole: run it in purejaxrl's own environment."""

import importlib
import sys
from pathlib import Path
from types import ModuleType
from typing import Any
from unittest.mock import MagicMock

import flax.linen as nn
import jax
import jax.numpy as jnp
from measure import ROLLOUT_LENGTH, argument_parser, measure, report

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


def config(num_envs: int, updates: int) -> dict[str, Any]:
    """Returns purejaxrl's own CartPole settings, at the given size."""
    return {
        "ENV_NAME": "CartPole-v1",
        "NUM_ENVS": num_envs,
        "NUM_STEPS": ROLLOUT_LENGTH,
        "TOTAL_TIMESTEPS": updates * ROLLOUT_LENGTH * num_envs,
        "UPDATE_EPOCHS": 4,
        "NUM_MINIBATCHES": 4,
        "LR": 2.5e-4,
        "ANNEAL_LR": True,
        "GAMMA": 0.99,
        "GAE_LAMBDA": 0.95,
        "CLIP_EPS": 0.2,
        "ENT_COEF": 0.01,
        "VF_COEF": 0.5,
        "MAX_GRAD_NORM": 0.5,
        "ACTIVATION": "tanh",
        "DEBUG": False,
    }


def main() -> None:
    """Trains once and prints the figures."""
    arguments = argument_parser(__doc__).parse_args()
    peer = load(arguments.source, arguments.recurrent)
    train = peer.make_train(config(arguments.num_envs, arguments.updates))
    timing = measure(train, jax.random.PRNGKey(arguments.seed))
    info = timing.output["metric" if arguments.recurrent else "metrics"]
    report("purejaxrl", arguments, timing, info["returned_episode_returns"][-1].mean())


if __name__ == "__main__":
    main()
