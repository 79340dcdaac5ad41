"""Whole episodes with a frozen learner, and statistics of their returns."""

import dataclasses
import functools
import math
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike

from ppo_jax.arrays import sharding
from ppo_jax.arrays.keys import fused
from ppo_jax.attacks.opponents import Opponent
from ppo_jax.envs.env import Env
from ppo_jax.ppo import acting
from ppo_jax.ppo.acting import Agent, Deed, Keys, Opposition
from ppo_jax.state import Actor, Learner
from ppo_jax.types import Array, Carry, Key

DEFAULT_LIMIT = 10_000
"""Steps after which an episode is given up if the environment knows no limit."""


class Game(NamedTuple):
    """The player of episodes, their number, and the way of playing."""

    learner: Learner
    num_episodes: int
    deterministic: bool = True
    """Whether the most likely action is taken instead of a sample."""
    opponent: Opponent | None = None
    """Attacker of the observations in every environment; None: no attacks."""


class Play(NamedTuple):
    """Episodes under way, one in each of `[B]` environments."""

    key: Key
    """Key from which the keys of all steps are made."""
    actor: Actor
    truth: Carry
    """Carry that the agent would have, had it always seen the true observations."""
    time: Array
    """Steps done."""
    total: Array
    """Returns so far `[B]`; of an episode that has ended, its return."""
    ended: Array
    """Whether each episode has ended, bool `[B]`; its later steps are ignored."""


def limit(env: Any) -> int:
    """Returns the steps after which an episode is over, or given up."""
    return env.max_episode_steps or DEFAULT_LIMIT


def run_episodes(
    learner: Learner,
    key: Key,
    num_episodes: int,
    deterministic: bool = True,
    opponent: Opponent | None = None,
) -> tuple[Array, Array]:
    """Plays one episode in each of `num_episodes` environments.

    The learner's statistics are frozen; a memory starts empty.

    Args:
        learner: One member.
        key: A key of its own, so that evaluating never changes the training.
        num_episodes: How many episodes.
        deterministic: Whether the most likely action is taken instead of a sample.
        opponent: Attacker of the observations in every environment; None: no attacks.
            Harm is measured against the agent's behaviour had it always seen the true
            observations.

    Returns:
        Returns of the episodes `[num_episodes]`, and whether each came to its end.
    """
    game = Game(learner, num_episodes, deterministic, opponent)
    longest = limit(learner.config.env)
    play = jax.lax.while_loop(
        lambda play: (play.time < longest) & ~play.ended.all(),
        functools.partial(advance, game),
        begin(game, key),
    )
    return sharding.crew(num_episodes).whole((play.total, play.ended))


def begin(game: Game, key: Key) -> Play:
    """Returns episodes before their first step."""
    key, key_start = jax.random.split(fused(key))
    env, network = game.learner.config.env, game.learner.config.build()
    crew = sharding.crew(game.num_episodes)
    starts = crew.own(jax.random.split(key_start, game.num_episodes))
    actor = fused(acting.start(env, network, starts))
    nothing = crew.own(jnp.zeros(game.num_episodes))
    return Play(key, actor, actor.carry, jnp.int32(0), nothing, nothing > 0)


def advance(game: Game, play: Play) -> Play:
    """Takes one step of all episodes."""
    learner, num_episodes, deterministic, opponent = game
    everywhere = jnp.ones_like(play.ended)
    agent = player(learner, everywhere, deterministic, opponent)
    keys = keys_at(play.key, play.time, num_episodes)
    step = _unending(learner.config.env)
    deed = acting.act(agent, step, play.actor, play.truth, keys)
    actor = after(play.actor, deed)
    total = play.total + jnp.where(play.ended, 0.0, deed.timestep.reward)
    ended = play.ended | actor.reset
    return Play(play.key, actor, deed.decision.truth, play.time + 1, total, ended)


def _unending(env: Env) -> acting.Move:
    """Returns `env.step`, without the restart at an end if that can be left out."""
    if not env.has_transition:
        return env.step

    def step(key, state, action):
        key_step, _ = jax.random.split(key)
        return env.transition(key_step, state, action)

    return step


def returns_against(
    opponent: Opponent,
    learner: Learner,
    eps: ArrayLike,
    key: Key,
    num_episodes: int,
    deterministic: bool = True,
) -> tuple[Array, Array]:
    """Plays as `run_episodes` does, with attacks of another radius.

    Args:
        opponent: The attacker.
        learner: One member.
        eps: Radius ≥ 0 of the ball around the observations as the network sees them;
            may be traced.
        key: Key of the episodes; the same key gives the same starts for all opponents.
        num_episodes: How many episodes.
        deterministic: Whether the most likely action is taken instead of a sample.
    """
    opponent = opponent.of_radius(eps)
    return run_episodes(learner, key, num_episodes, deterministic, opponent)


@functools.partial(jax.jit, static_argnums=(4, 5))
def returns_at(
    radii: Array,
    opponent: Opponent,
    learner: Learner,
    key: Key,
    num_episodes: int,
    deterministic: bool = True,
) -> tuple[Array, Array]:
    """Plays as `returns_against` does, for radii `[R]`; one program for all agents."""

    def at(eps):
        return returns_against(opponent, learner, eps, key, num_episodes, deterministic)

    return jax.vmap(at)(radii)


def summarize(returns: Any) -> dict[str, Any]:
    """Returns statistics of the returns `[..., E]` of episodes, on the host.

    They are numbers, or `[...]` of agents. Of returns of which one is NaN, all but the
    number of episodes are NaN.

    >>> summarize([1.0, 2.0, 3.0, 4.0])["cvar_5"]
    1.0
    """
    x = np.sort(np.asarray(returns, np.float64))  # NaN comes last.
    size = x.shape[-1]
    tail = x[..., : max(1, int(np.ceil(0.05 * size)))]
    figures = {
        "mean": x.mean(axis=-1),
        "std": x.std(axis=-1, ddof=1) if size > 1 else np.zeros(x.shape[:-1]),
        "median": np.median(x, axis=-1),
        "q25": np.quantile(x, 0.25, axis=-1),
        "q75": np.quantile(x, 0.75, axis=-1),
        "cvar_5": np.where(np.isnan(x[..., -1]), math.nan, tail.mean(axis=-1)),
    }
    plain = {k: each if np.ndim(each) else float(each) for k, each in figures.items()}
    return plain | {"episodes": size}


def player(
    learner: Learner, everywhere: Array, deterministic: bool, opponent: Opponent | None
) -> Agent:
    """Makes the agent that plays; an opponent attacks where `everywhere` is true."""
    choice = acting.most_likely if deterministic else acting.sampled
    opposition = None if opponent is None else Opposition(opponent, everywhere)
    return Agent(learner, learner.config.build(), choice, opposition)


def keys_at(key: Key, time: ArrayLike, num_episodes: int) -> Keys:
    """Returns this device's keys for one step."""
    crew = sharding.crew(num_episodes)
    both = jax.random.split(jax.random.fold_in(key, time))
    return Keys(*(crew.own(jax.random.split(k, num_episodes)) for k in both))


def after(actor: Actor, deed: Deed) -> Actor:
    """Returns the actor after a step."""
    timestep = deed.timestep
    return dataclasses.replace(
        actor,
        env_state=deed.env_state,
        obs=timestep.obs,
        reset=timestep.terminated | timestep.truncated,
        carry=deed.decision.carry,
    )
