"""Do twin quantile critics with value clipping learn as fast as a scalar critic?

    python benchmarks/learning.py

trains both on CartPole and on Pendulum, all seeds of each in one program, evaluates
them at intervals, and prints after how many environment steps the mean return of an
evaluation first reaches the target: the median over seeds with a bootstrapped interval.
"""

import argparse
import dataclasses
import runpy
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

from ppo_jax import Config, terms, training
from ppo_jax.critics import PerQuantile, Quantile
from ppo_jax.pbt import population
from ppo_jax.return_scale import ReturnNormalization
from ppo_jax.schedules import Progress

EXPERIMENTS = Path(__file__).parent.parent / "experiments"
TARGETS = {"cartpole": 475.0, "pendulum": -200.0}
EVALUATIONS, EPISODES = 50, 32
CLIP_EPS = 0.7
"""In units of the return scale, which both kinds of critic have."""


def main() -> None:
    """Trains both kinds of critic on both tasks and prints the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=8)
    options = parser.parse_args()
    print("| task | target | critic | steps to it, median | 95 % | reached |")
    print("|---|---|---|---|---|---|", flush=True)
    for task, target in TARGETS.items():
        config = runpy.run_path(str(EXPERIMENTS / f"{task}.py"))["config"]
        scalar = dataclasses.replace(
            config, total_timesteps=500_000, return_scale=ReturnNormalization()
        )
        for name, config in (("scalar", scalar), ("twin quantile", twins(scalar))):
            steps = steps_to(target, config, options.seeds)
            low, high = interval(steps)
            print(
                f"| {task} | {target:g} | {name} | {shown(median(steps))} "
                f"| {shown(low)} to {shown(high)} "
                f"| {np.isfinite(steps).sum()} of {steps.size} |",
                flush=True,
            )


def twins(config: Config) -> Config:
    """The same experiment with twin quantile critics and value clipping."""
    objective = (
        dataclasses.replace(term, clip_eps=CLIP_EPS)
        if isinstance(term, terms.Value)
        else term
        for term in config.terms
    )
    critic = Quantile(32, clip=PerQuantile())
    return dataclasses.replace(
        config, critic=critic, num_critics=2, terms=tuple(objective)
    )


def steps_to(target: float, config: Config, seeds: int) -> np.ndarray:
    """Environment steps until an evaluation reaches the target, `[seeds]`; or ∞."""
    members = population.init(config, jax.random.split(jax.random.key(0), seeds))
    length = max(config.num_updates // EVALUATIONS, 1)
    reached = np.full(seeds, np.inf)
    for done in range(0, config.num_updates, length):
        progress = Progress.of(done + np.arange(length), config.num_updates)
        count = min(length, config.num_updates - done)
        members, _ = population.advance(members, progress, jnp.int32(count))
        returns, _ = training.evaluate(members, config, done, EPISODES)
        steps = (done + count) * config.steps_per_update
        there = returns.mean(axis=1) >= target
        reached = np.where(there, np.minimum(reached, steps), reached)
        if np.isfinite(reached).all():
            break
    return reached


def interval(steps: np.ndarray) -> tuple[float, float]:
    """Bootstrapped 95 % interval of the median; ends may be ∞."""
    draws = np.random.default_rng(0).choice(steps, (10_000, steps.size))
    medians = np.sort(median(draws))
    return medians[250], medians[-251]


def median(steps: np.ndarray) -> np.ndarray:
    """The upper one of an even number, which ∞ does no harm to, `[...]`."""
    return np.sort(steps, axis=-1)[..., steps.shape[-1] // 2]


def shown(steps: float) -> str:
    """A number of steps, if there is one."""
    return f"{steps:,.0f}" if np.isfinite(steps) else "never"


if __name__ == "__main__":
    main()
