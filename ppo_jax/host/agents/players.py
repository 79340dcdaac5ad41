"""Agents of runs that play, as a command's options ask for them."""

import argparse
from typing import Any, NamedTuple

from ppo_jax.arrays import devices
from ppo_jax.host.agents import runs
from ppo_jax.host.agents.runs import Restored
from ppo_jax.host.agents.trained import Trained
from ppo_jax.host.loop import evaluation
from ppo_jax.host.process import command
from ppo_jax.host.programs import store


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


def require(options: Any) -> None:
    """Checks the number of episodes and their seed.

    Raises:
        UserError: If one of them is not possible.
    """
    command.require(options.episodes >= 1, "--episodes", options.episodes, "at least 1")
    known = options.seed is None or 0 <= options.seed < 2**32
    command.require(known, "--seed", options.seed, "0 to 2³² − 1")


def restore(options: Any, name: str) -> Player:
    """Restores the requested agent, and prints which one it is.

    Args:
        options: Options of the command.
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
    return Player(run, member, agent, seed, sample)
