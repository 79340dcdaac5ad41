"""Agents of a run who play another environment than that of their training."""

import dataclasses
import warnings
from collections.abc import Iterator
from typing import Any

import jax
import numpy as np

from ppo_jax import envs
from ppo_jax.config import Config
from ppo_jax.envs import Env
from ppo_jax.errors import UserError, kind
from ppo_jax.ppo import population as populations
from ppo_jax.state import Population


def members(config: Config, population: Population, env: Env | str) -> Population:
    """Returns the members of a run in another environment.

    Args:
        config: The experiment of the run.
        population: The members, with numbers of their own.
        env: The environment that they are to play, or its id; all share its numbers.

    Raises:
        UserError: If it is no environment, or has other observations or actions than
            that of the run.
    """
    try:
        with warnings.catch_warnings(action="ignore"):  # Of training, which is over.
            other = dataclasses.replace(config, env=env, pbt=None)  # pyright: ignore
    except (ValueError, TypeError) as error:
        raise UserError(str(error)) from error
    for what, trained, here in _differences(config, other):
        message = f"expected the {what} of training, {trained}, got {here}"
        raise UserError(f"env: {message}")
    envs.check_types(other.env)
    return populations.in_env_of(population, other)


def _differences(config: Config, other: Config) -> Iterator[tuple[str, Any, Any]]:
    """Yields what a network would see or do otherwise, by name: trained, and here."""
    trained, here = (jax.tree.map(kind, one.obs_spec()) for one in (config, other))
    if trained != here:
        yield "observations", trained, here
    trained, here = (one.env.action_space for one in (config, other))
    if _plain(trained) != _plain(here):
        yield "actions", trained, here


def _plain(space: Any) -> tuple[str, list[Any]]:
    """Returns the kind of actions, and their choices or bounds."""
    return type(space).__name__, [np.asarray(part).tolist() for part in space]
