"""Tracks of agents: their earnings and trades, bar by bar, each decided on its own."""

import dataclasses
import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from ppo_jax import component
from ppo_jax.backtests.folds import Span
from ppo_jax.config import Config
from ppo_jax.critics import ValueDist
from ppo_jax.envs.env import exact
from ppo_jax.envs.trading import Trading
from ppo_jax.envs.trading.account import Account
from ppo_jax.envs.trading.trading import tape
from ppo_jax.ppo import acting
from ppo_jax.state import Learner
from ppo_jax.types import Array

LEVELS = (0.05, 0.25, 0.5, 0.75, 0.95)
"""Levels of the predicted quantiles: shares of returns expected below each of them."""


class Track(NamedTuple):
    """Results of each bar of a span, `[..., bars]`; zeros after its end or a ruin."""

    growth: Any
    """Growth of the logarithm of equity, after costs and interest."""
    turnover: Any
    """Buys and sales, in units of equity."""
    exposure: Any
    """Sum of the sizes of positions, long and short alike, in units of equity."""


class Played(NamedTuple):
    """An agent's track, its positions and its predictions."""

    track: Track
    positions: Any
    """Positions when the orders of each bar were filled, `[..., bars, A]`."""
    predicted: Any
    """Predicted quantiles of the return to come, at `LEVELS`, `[..., bars, levels]`;
    NaN if the critic predicts a mean alone."""


def numbers_of(span: Span) -> dict[str, float]:
    """Returns numbers of an experiment by which episodes decide at a span's bars."""
    return {"env.first": float(span.first), "env.last": float(span.last + 1)}


def through(config: Config, learners: Learner, spans: list[Span]) -> Learner:
    """Returns the same members, each of which has its whole span as one episode.

    Args:
        config: The members' experiment; `env.first` and `env.last` are set.
        learners: The members, leaves `[P, ...]`.
        spans: One span per member.
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
        bars: The number of bars of the longest span.
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
        timestep, after = exact(env.transition)(key, account, action[0])
        track = Track(timestep.reward, after.turnover, jnp.abs(after.positions).sum())
        predicted = learner.return_scale.decode(quantiles(out.value))
        played = Played(track, filled(env, account, after), predicted)
        played = jax.tree.map(lambda x: jnp.where(goes_on, x, 0.0), played)
        goes_on &= ~(timestep.terminated | timestep.truncated)
        seen = jax.tree.map(lambda x: x[None], timestep.obs)
        return (after, seen, out.carry, jnp.zeros_like(reset), goes_on), played

    account = jax.tree.map(lambda x: x[0], actor.env_state)
    loop = (account, actor.obs, actor.carry, actor.reset, jnp.bool_(True))
    return jax.lax.scan(step, loop, length=bars)[1]


def filled(env: Trading, before: Account, after: Account) -> Array:
    """Returns the positions once orders are filled, before prices move on, `[A]`.

    Args:
        env: The market.
        before: The account when orders were decided.
        after: The account at the next close.
    """
    prices = tape(env.prices, env.features).after(before.bar).fill
    values = after.shares * prices
    equity = after.cash + values.sum()
    return values / jnp.where(equity > 0, equity, 1.0)


def quantiles(value: ValueDist) -> Array:
    """Returns a state's quantiles at `LEVELS`, by the critic with the least mean.

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
