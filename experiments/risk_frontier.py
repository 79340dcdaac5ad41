"""The frontier of mean and risk: agents that care more and more for their worst 5 %.

A wager of size a pays N(2a − a², (σ a)²): the mean is best at a = 1, the tail earlier.
Who maximises E[R] + w · CVaR₀.₀₅[R] is right to choose a = 1 − w c / (2 (1 + w)) with
c = 2.06 σ.

    python experiments/risk_frontier.py --out runs/frontier

trains a grid of weights × seeds in one program and leaves a table and a plot. Expect
Spearman's ρ between weight and realised CVaR above 0.9.
"""

import argparse
import functools
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

from ppo_jax import Config, networks, optimizers, terms
from ppo_jax.component import as_arrays, component, program, replace_at
from ppo_jax.envs import Box, Env, outcome
from ppo_jax.ppo import population
from ppo_jax.ppo.episodes import run_episodes, summarize
from ppo_jax.schedules import Progress

WEIGHTS = (0.0, 0.25, 0.5, 1.0, 2.0, 4.0)
EPISODES = 4096


@component
class Wager(Env):
    """One step; the larger the action, the more is won and lost."""

    volatility: float = 0.5

    @property
    def action_space(self):
        return Box((0.0,), (2.0,))

    @property
    def max_episode_steps(self):
        return 1

    def reset(self, key):
        return jnp.ones(1), ()

    def transition(self, key, state, action):
        size = action[0]
        noise = self.volatility * size * jax.random.normal(key)
        return outcome(jnp.ones(1), 2 * size - size**2 + noise, terminated=True), state


config = Config(
    env=Wager(),
    total_timesteps=400_000,
    num_envs=64,
    num_steps=32,
    network=networks.ActorCritic(
        torso=networks.Mlp(hidden=(16,)), head=networks.GaussianHead(init_std=0.3)
    ),
    terms=(
        terms.Surrogate(),
        terms.Value(),
        terms.CVaR(coef=0.0, alpha=0.05, quantity=terms.Rewards()),
    ),
    optimizer=optimizers.Adam(learning_rate=3e-3),
)


def train(weights, seeds):
    """Returns of episodes of trained agents `[weights, seeds, episodes]`."""
    size = len(weights) * seeds
    numbers = as_arrays(program(config))
    numbers = jax.tree.map(lambda x: jnp.broadcast_to(x, size), numbers)
    spread = jnp.repeat(jnp.asarray(weights, jnp.float32), seeds)
    numbers = replace_at(numbers, "terms.cvar.coef", spread)
    members = population.init(numbers, jax.random.split(jax.random.key(0), size))
    updates = config.num_updates
    progress = Progress.of(np.arange(updates), updates)
    members, _ = population.advance(members, progress, jnp.int32(updates))
    play = functools.partial(run_episodes, num_episodes=EPISODES)
    returns, _ = jax.jit(jax.vmap(play, (0, None)))(
        members.runs.learner, jax.random.key(1)
    )
    return np.asarray(returns).reshape(len(weights), seeds, EPISODES)


def frontier(returns):
    """Mean and CVaR₀.₀₅ of each agent, `[weights, seeds]` each."""
    figures = [[summarize(agent) for agent in agents] for agents in returns]
    return tuple(
        np.array([[agent[name] for agent in agents] for agents in figures])
        for name in ("mean", "cvar_5")
    )


def spearman(x, y):
    """Rank correlation of two rows without ties."""
    ranks = [np.argsort(np.argsort(row)) for row in (x, y)]
    return float(np.corrcoef(ranks)[0, 1])


def half_width(samples):
    """Half of the 95 % interval of the mean over seeds."""
    return 1.96 * samples.std(axis=1, ddof=1) / np.sqrt(samples.shape[1])


def table(weights, mean, cvar):
    """Lines of a markdown table."""
    yield "| weight | mean return | CVaR 5 % |"
    yield "|--:|--:|--:|"
    rows = zip(weights, mean, half_width(mean), cvar, half_width(cvar), strict=True)
    for weight, m, m_half, c, c_half in rows:
        yield (
            f"| {weight:g} | {m.mean():.3f} ± {m_half:.3f} "
            f"| {c.mean():.3f} ± {c_half:.3f} |"
        )


def plot(path, weights, mean, cvar):
    """The frontier as a picture; needs the extra `report`."""
    import matplotlib

    matplotlib.use("agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(6, 4), layout="constrained")
    for weight, m, c in zip(weights, mean, cvar, strict=True):
        axes.scatter(c, m, s=12, label=f"w = {weight:g}")
    axes.plot(cvar.mean(axis=1), mean.mean(axis=1), color="0.5", zorder=0)
    axes.set(xlabel="CVaR 5 % of returns", ylabel="mean return")
    axes.legend()
    figure.savefig(path)


def main():
    """Trains the grid, prints the table, leaves it and the plot in a folder."""
    parser = argparse.ArgumentParser(description="mean against CVaR over a grid")
    parser.add_argument("--seeds", type=int, default=16)
    parser.add_argument("--out", type=Path, default=Path("runs/risk_frontier"))
    options = parser.parse_args()
    mean, cvar = frontier(train(WEIGHTS, options.seeds))
    lines = list(table(WEIGHTS, mean, cvar))
    lines.append(f"\nSpearman's ρ: {spearman(WEIGHTS, cvar.mean(axis=1)):.3f}")
    options.out.mkdir(parents=True, exist_ok=True)
    (options.out / "frontier.md").write_text("\n".join(lines) + "\n")
    plot(options.out / "frontier.png", WEIGHTS, mean, cvar)
    print("\n".join(lines))


if __name__ == "__main__":
    main()
