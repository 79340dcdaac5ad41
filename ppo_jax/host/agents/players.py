"""Agents of runs that play, as a command's options ask for them."""

import argparse
import warnings
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ppo_jax.arrays import devices
from ppo_jax.component import numbers, replace_at
from ppo_jax.config import Config
from ppo_jax.envs import Env
from ppo_jax.host.agents import runs
from ppo_jax.host.agents.runs import Restored
from ppo_jax.host.agents.trained import Trained
from ppo_jax.host.loop import evaluation
from ppo_jax.host.process import command, leftover
from ppo_jax.host.programs import store
from ppo_jax.host.run_dir.description import describe, differences
from ppo_jax.host.run_dir.overrides import with_overrides, without

FIELDS = ("--env", "--env.FIELD")
"""What may be given of the experiment: its environment, or fields of that."""


class Player(NamedTuple):
    """An agent that plays, and the episodes that it plays."""

    run: Restored
    member: int
    agent: Trained
    """The member by itself."""
    seed: int
    """Seed of the episodes."""
    sample: bool
    """Whether actions are sampled instead of the most likely ones taken."""
    env: Env | None
    """The environment that is played; None: that of the agent's own experiment."""


def add_options(parser: argparse.ArgumentParser, episodes: int) -> None:
    """Adds options for the agent that plays, and for the episodes that it plays."""
    command.add_run(parser)
    parser.add_argument(
        "--episodes", type=int, default=episodes, help=f"how many (default: {episodes})"
    )
    command.add_agent_options(parser)
    parser.add_argument(
        "--seed", type=int, help="of the episodes (default: that of the run)"
    )
    parser.add_argument_group(
        "fields",
        "--env.FIELD VALUE, such as --env.cost 20 for higher costs, or --env ID plays\n"
        "another environment than that of the training",
    )


def parse(
    parser: argparse.ArgumentParser, argv: list[str] | None
) -> tuple[Any, list[str]]:
    """Parses a command's options; returns them, and those for the environment.

    Raises:
        UserError: If there are other options, or the number of episodes or their seed
            is not possible.
    """
    options, others = parser.parse_known_args(argv)
    command.refuse(parser, without(others, "env"), FIELDS)
    leftover.require_first(argv, others)
    leftover.require_named(argv, others)
    command.require(options.episodes >= 1, "--episodes", options.episodes, "at least 1")
    known = options.seed is None or 0 <= options.seed < 2**32
    command.require(known, "--seed", options.seed, "0 to 2³² − 1")
    return options, others


def restore(options: Any, fields: list[str], name: str) -> Player:
    """Restores the requested agent, and prints which one it is.

    Args:
        options: Options of the command.
        fields: Fields of the environment that are to be others.
        name: Name of the program in errors.

    Raises:
        ExperimentError: If there is no such run or member.
        CheckpointError: If there is no such checkpoint, or it cannot be restored.
    """
    devices.start()
    store.keep()
    run = runs.restore(options.run_dir, name, options.best, options.checkpoint)
    member, size = runs.choose(run, options.member), run.population.fitness.size
    seed = run.config.seed if options.seed is None else options.seed
    sample = evaluation.samples(run.config, options.sample)
    manner = "sampled" if sample else "most likely"
    print(
        f"checkpoint {run.update}, {run.steps:,} steps; {manner} actions, seed {seed}"
    )
    if options.member is None and run.fittest is not None and size > 1:
        print(f"member {member} of {size}, the fittest at its last evaluation")
    agent = Trained(run.config, run.population, run.update).member(member)
    env = _other(_own(agent), options.run_dir, fields, name) if fields else None
    return Player(run, member, agent, seed, sample, env)


def _own(agent: Trained) -> Config:
    """Returns an agent's experiment with the environment's numbers that it has."""
    config, given = agent.config, numbers(agent.config)
    for path, own in numbers(agent.learner.config).items():
        if path.startswith("env.") and np.float32(given[path]) != own:
            config = replace_at(config, path, float(own))
    return config


def _other(config: Config, run_dir: Path, fields: list[str], name: str) -> Env:
    """Returns the environment of an experiment with other fields, which are printed."""
    with warnings.catch_warnings(action="ignore"):  # Of training, which is over.
        other = with_overrides(config, run_dir, fields, name)
    for field, change in differences(describe(config), describe(other)).items():
        print(f"{field}: {change}")
    return other.env
