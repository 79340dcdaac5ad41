"""What becomes of agents, and of fixed plans, bar by bar, each decided on its own."""

import dataclasses
import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from ppo_jax import component
from ppo_jax.backtests.folds import Span
from ppo_jax.config import Config
from ppo_jax.critics import ValueDist
from ppo_jax.ppo import acting
from ppo_jax.state import Learner
from ppo_jax.types import Array

LEVELS = (0.05, 0.25, 0.5, 0.75, 0.95)
"""Shares of returns that are to be below what critics predict."""


class Track(NamedTuple):
    """What each bar of a span led to, `[..., bars]`; zeros after its end or a ruin."""

    growth: Any
    """Of the logarithm of equity, after costs and interest."""
    turnover: Any
    """What was traded, in units of equity."""
    exposure: Any
    """What was held, long and short alike, in units of equity."""


class Played(NamedTuple):
    """An agent's track, and what it said on its way."""

    track: Track
    positions: Any
    """At the close that each bar led to, `[..., bars, A]`."""
    predicted: Any
    """At `LEVELS`, what the return to come will exceed, `[..., bars, levels]`; NaN if
    the critic predicts a mean alone."""


def numbers_of(span: Span) -> dict[str, float]:
    """The numbers of an experiment whose episodes decide at the bars of a span."""
    return {"env.first": float(span.first), "env.last": float(span.last + 1)}


def through(config: Config, learners: Learner, spans: list[Span]) -> Learner:
    """The same members, with all of their span for an episode.

    Args:
        config: Their experiment; `env.first` and `env.last` are set.
        learners: The members, leaves `[P, ...]`.
        spans: One per member.
    """
    env = dataclasses.replace(config.env, window=None)
    whole = component.program(dataclasses.replace(config, env=env))
    leaves = jax.tree.leaves(learners.config)
    numbers = jax.tree.unflatten(jax.tree.structure(whole), leaves)
    ends = [numbers_of(span) for span in spans]
    for path in ends[0]:
        each = jnp.array([end[path] for end in ends], jnp.float32)
        numbers = component.replace_at(numbers, path, each)
    return dataclasses.replace(learners, config=numbers)


@functools.partial(jax.jit, static_argnums=1)
def play(learners: Learner, bars: int) -> Played:
    """Plays one episode of each member, which takes its most likely actions.

    Args:
        learners: The members, with a span each (`through`); statistics are frozen.
        bars: As many as the longest span has.
    """
    return jax.vmap(lambda learner: _played(learner, bars))(learners)


def _played(learner: Learner, bars: int) -> Played:
    env, network = learner.config.env, learner.config.build()
    key = jax.random.key(0)  # Without a window, nothing is random.
    actor = acting.start(env, network, key[None])

    def step(loop, _):
        account, obs, carry, reset, goes_on = loop
        seen, _ = acting.view(learner, obs, reset)
        mask = jax.tree.map(lambda x: x[None], env.action_mask(account))
        out = acting.evaluate(network, learner.params, carry, seen, reset, mask)
        action = out.policy.to_action(out.policy.mode())
        timestep, after = env.transition(key, account, action[0])
        track = Track(timestep.reward, after.turnover, jnp.abs(after.positions).sum())
        said = learner.return_scale.decode(quantiles(out.value))
        played = Played(track, after.positions, said)
        played = jax.tree.map(lambda x: jnp.where(goes_on, x, 0.0), played)
        goes_on &= ~(timestep.terminated | timestep.truncated)
        seen = jax.tree.map(lambda x: x[None], timestep.obs)
        return (after, seen, out.carry, jnp.zeros_like(reset), goes_on), played

    account = jax.tree.map(lambda x: x[0], actor.env_state)
    loop = (account, actor.obs, actor.carry, actor.reset, jnp.bool_(True))
    return jax.lax.scan(step, loop, length=bars)[1]


def quantiles(value: ValueDist) -> Array:
    """What the critic with the least mean predicts of one state, at `LEVELS`.

    >>> from ppo_jax.critics import Quantile
    >>> value = ValueDist(jnp.array([[[9.0, 7.0], [2.0, 1.0]]]), Quantile(2))
    >>> [round(float(x), 3) for x in quantiles(value)]
    [0.6, 1.0, 1.5, 2.0, 2.4]
    """
    if not value.critic.distributional:
        return jnp.full(len(LEVELS), jnp.nan)
    least = jnp.argmin(value.mean()[0])
    outputs = jax.tree.map(lambda x: x[0, least], value.outputs)
    return value.critic.at(outputs, jnp.array(LEVELS))
