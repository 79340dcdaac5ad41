"""A tiny experiment that trades, in Python and as a file."""

from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np

from ppo_jax import Config, critics, networks, pbt, terms
from ppo_jax.backtests import plan
from ppo_jax.component import component
from ppo_jax.envs.trading import Features, RandomWalk, Trading
from ppo_jax.pbt.ranges import LogUniform

FEATURES = Features(horizons=(1, 5), volatility=5, drawdown=5)
PAST = Features(horizons=(1, 3), volatility=4, drawdown=5)
TEXT = """
from traders import tiny

config = tiny()
"""


@component
class Shifted(Features):
    """Features of the next bar."""

    def __call__(self, bars):
        return np.roll(super().__call__(bars), -1, axis=0)


@component
class Cautious(Trading):
    """Short of each of two assets, or out of it; never long."""

    def action_mask(self, state):
        return jnp.array([True, True, False] * 2)


@component
class Weighed(terms.Term):
    """A term that moves nothing, unless its factor is not finite."""

    factor: float = 0.0

    def __call__(self, out, batch, context):
        return self.factor * out.log_ratio, {}


BROKEN = """
from ppo_jax.component import paths
from traders import tiny

config = paths.replace(
    tiny(max_failures=2, eval_phases=2), {"terms.weighed.factor": float("nan")}
)
"""
"""An experiment that fails before its first evaluation, by the same programs."""
PAIRS = pbt.PBT(
    {"optimizer.learning_rate": LogUniform(1e-4, 1e-1, factor=1.5)},
    size=2,
    interval=2,
    selector=pbt.Truncation(ratio=0.5),
    explorer=pbt.Perturb(),
    readiness=pbt.Readiness(min_episodes=0.0),
)
"""Populations of two: the worse one copies the other, and goes a step up or down."""
POPULATIONS = """
from traders import PAIRS, tiny

config = tiny(pbt=PAIRS)
"""


def tiny(prices=None, **fields):
    """Returns an experiment of two assets, 300 bars and a few updates."""
    prices = prices or RandomWalk(num_bars=300, num_assets=2)
    given = dict(
        env=Trading(prices, window=16, features=FEATURES),
        num_envs=4,
        num_steps=16,
        num_minibatches=2,
        num_epochs=2,
        total_timesteps=64 * 6,
        phase_updates=2,
        eval_phases=1,
        eval_episodes=4,
        gamma=0.9,
        network=networks.ActorCritic(torso=networks.Mlp(hidden=(8,)), shared=True),
        critic=critics.Quantile(num_quantiles=8),
        terms=(terms.Surrogate(), terms.Value(), terms.CVaR(coef=0.5), Weighed()),
    )
    return Config(**given | fields)


def cautious():
    """A market of two assets where nobody may be long, and would like to."""
    prices = RandomWalk(num_bars=70, num_assets=2)
    return Cautious(prices, window=9, positions=(-1, 0, 1), features=FEATURES)


def planned(config, **asked):
    """Plans two folds of two seeds, unless something else is asked for."""
    given = dict(folds=2, train=100, validation=30, purge=5, embargo=3, rolling=False)
    options = SimpleNamespace(
        **given | {"seeds": 2, "grid": [], "trials": 0, "sizes": []} | asked
    )
    return plan.plan(config, {"RandomWalk": RandomWalk}, options)


def csv_of(bars, count):
    """Returns the text of a file of the first bars, a row per bar and asset."""
    lines = ["date,symbol,open,close"]
    for bar in range(count):
        day = str(bars.times[bar])[:10]
        for i, name in enumerate(bars.symbols):
            prices = (float(x[bar, i]) for x in (bars.open, bars.close))
            lines.append(",".join([day, name, *map(repr, prices)]))
    return "\n".join(lines) + "\n"


def moved(filled, bars, where):
    """Returns what positions `[bars, A]` are at the close, if none is traded after."""
    growth = bars.close[where] / bars.fill[where]
    return filled * growth / (1 + (filled * (growth - 1)).sum(axis=1, keepdims=True))


def loud(learner, factor=1000.0):
    """Returns an agent whose outputs are `factor` times as large, so that it trades."""
    actor = learner.params["actor"]
    head = jax.tree.map(lambda x: factor * x, actor["head"])
    return learner.replace(params=learner.params | {"actor": actor | {"head": head}})
