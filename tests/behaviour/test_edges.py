"""Where nothing can be earned, nothing is; where something can, it is.

Each of 24 members learns from a fold of its own, and trades the bars after it. So their
results are independent, and the interval of their mean is one of the market's as well.
"""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from ppo_jax import Config, Policy, networks, optimizers, terms
from ppo_jax.component import as_arrays, program, replace_at
from ppo_jax.envs.trading import Bars, Features, Prices, RandomWalk, Shuffled, Trading
from ppo_jax.ppo import population
from ppo_jax.schedules import Progress

FOLDS, LEARNED, TRADED = 24, 1_500, 500
BARS = FOLDS * (LEARNED + TRADED) + 1
FEATURES = Features(horizons=(1, 2, 5), volatility=10, drawdown=10)
FIRST = np.arange(FOLDS) * (LEARNED + TRADED)


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class Persistent(Prices):
    """Returns that resemble the one before, and are 0 on average; no gap overnight."""

    persistence: float = 0.25

    def load(self) -> Bars:
        noise = np.random.default_rng(7).normal(0, 0.0125, BARS)
        moves = np.zeros(BARS)
        for t in range(1, BARS):
            moves[t] = self.persistence * moves[t - 1] + noise[t]
        moves[1:] -= moves[1:].mean()
        close = 100 * np.exp(np.cumsum(moves))[:, None]
        opens = np.concatenate([close[:1], close[:-1]])
        return RandomWalk(BARS).bars._replace(close=close, open=opens)


def config_of(prices):
    return Config(
        env=Trading(
            prices,
            cost=5.0,
            first=0.0 + FEATURES.lookback,
            last=float(LEARNED),
            window=128,
            positions=(-1, 0, 1),
            features=FEATURES,
        ),
        num_envs=16,
        num_steps=128,
        total_timesteps=16 * 128 * 60,
        num_minibatches=8,
        gamma=0.9,
        obs_clip=5.0,
        network=networks.ActorCritic(torso=networks.Mlp(hidden=(32, 32))),
        terms=(terms.Surrogate(), terms.Value(), terms.Entropy(coef=0.005)),
        optimizer=optimizers.Adam(learning_rate=1e-3),
    )


def learned(config):
    """Policies `[FOLDS]`, each of its fold."""
    numbers = as_arrays(program(config))
    numbers = jax.tree.map(lambda x: jnp.broadcast_to(x, FOLDS), numbers)
    first = np.maximum(FIRST, FEATURES.lookback).astype(np.float32)
    numbers = replace_at(numbers, "env.first", jnp.asarray(first))
    last = (FIRST + LEARNED).astype(np.float32)
    numbers = replace_at(numbers, "env.last", jnp.asarray(last))
    members = population.init(numbers, jax.random.split(jax.random.key(0), FOLDS))
    updates = config.num_updates
    progress = Progress.of(np.arange(updates), updates)
    members, _ = population.advance(members, progress, jnp.int32(updates))
    return jax.vmap(Policy.of)(members.runs.learner)


def growth(policies, env):
    """ln of what each member has after the bars behind its fold `[FOLDS]`."""

    @jax.jit
    @jax.vmap
    def play(policy, first):
        key = jax.random.key(0)
        ahead = dataclasses.replace(
            env, window=None, first=first, last=first + TRADED + 1
        )

        def step(carry, _):
            obs, account, state = carry
            action, state = policy.act(state, obs[None])
            timestep, account = ahead.transition(key, account, action[0])
            return (timestep.obs, account, state), timestep.reward

        start = (*ahead.reset(key), policy.init(1))
        return jax.lax.scan(step, start, None, TRADED)[1].sum()

    return np.asarray(play(policies, jnp.asarray(FIRST + LEARNED - 0.0)))


def interval(samples):
    """The 95 % interval of the mean."""
    half = 2.07 * samples.std(ddof=1) / np.sqrt(len(samples))
    return samples.mean() - half, samples.mean() + half


@pytest.mark.slow
@pytest.mark.parametrize(
    "prices, earns",
    [
        (lambda: Persistent(), True),
        (lambda: Shuffled(Persistent()), False),
        (lambda: RandomWalk(BARS), False),
        (lambda: RandomWalk(BARS, overnight=None, seed=1), False),
    ],
    ids=["persistent", "shuffled", "walk", "walk of closes"],
)
def test_an_edge_is_found_where_there_is_one_and_nowhere_else(prices, earns):
    """Log growth in 500 bars after costs, of what nobody has learned from."""
    config = config_of(prices())
    samples = growth(learned(config), config.env)
    low, high = interval(samples)
    assert (low > 0) == earns, (low, samples.mean(), high)
