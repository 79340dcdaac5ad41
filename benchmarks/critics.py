"""What kinds of critic cost against the scalar one, and how exact quantiles are.

    python benchmarks/critics.py

compiles CartPole training with every kind of critic and prints two tables: environment
steps per second, as a ratio to the scalar critic in the same round; and, for numbers of
quantiles, the same beside the error of what they learn of a normal distribution.
"""

import argparse
import statistics
import time

import jax
import jax.numpy as jnp
import numpy as np
import optax
from measure import ROLLOUT_LENGTH
from scipy import stats

from ppo_jax import Config, critics, terms
from ppo_jax.critics import Categorical, MeanOnly, PerQuantile, Quantile, Scalar
from ppo_jax.ppo import population
from ppo_jax.schedules import Progress

ALPHA = 0.05
SUPPORT = (0.0, 100.0)
KINDS = {
    "scalar": (Scalar(), 1),
    "scalar, clipped": (Scalar(clip=MeanOnly()), 1),
    "quantile-32": (Quantile(32), 1),
    "quantile-32, clipped": (Quantile(32, clip=PerQuantile()), 1),
    "twin quantile-32": (Quantile(32), 2),
    "twin quantile-32, clipped": (Quantile(32, clip=PerQuantile()), 2),
    "C51-51": (Categorical(51, *SUPPORT), 1),
    "C51-51, clipped": (Categorical(51, *SUPPORT, clip=MeanOnly()), 1),
}
SIZES = {f"quantile-{n}": (Quantile(n), 1) for n in (21, 51, 101)}


def main() -> None:
    """Measures all kinds in turn and prints the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--num-envs", type=int, default=2048)
    parser.add_argument("--updates", type=int, default=3, help="per measurement")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--num-microbatches", type=int, default=1)
    options = parser.parse_args()

    programs = {
        name: compiled(*kind, options) for name, kind in (KINDS | SIZES).items()
    }
    steps = options.updates * ROLLOUT_LENGTH * options.num_envs
    speeds = {name: [] for name in programs}
    for _ in range(options.repeats):
        for name, (train, members) in programs.items():
            begun = time.perf_counter()
            jax.block_until_ready(train(members))
            speeds[name].append(steps / (time.perf_counter() - begun))

    print(f"{options.num_envs} environments, jax {jax.__version__}, {jax.devices()[0]}")
    print("\n| critic | steps/s | of scalar | time, × scalar |\n|---|---|---|---|")
    for name in KINDS:
        print(f"| {name} | {shown(speeds, name)} |")
    print(f"\n| critic | steps/s | of scalar | time, × scalar | {ERRORS} |")
    print("|---|---|---|---|---|---|---|")
    for name, (critic, _) in SIZES.items():
        errors = " | ".join(f"{100 * error:.1f} %" for error in learned(critic))
        print(f"| {name} | {shown(speeds, name)} | {errors} |")


def compiled(critic: critics.Critic, num_critics: int, options: argparse.Namespace):
    """A program of some updates, and what it begins with."""
    clip_eps = None if critic.clip is None else 0.2
    updates, num_envs = options.updates, options.num_envs
    config = Config(
        env="CartPole-v1",
        num_envs=num_envs,
        num_steps=ROLLOUT_LENGTH,
        num_microbatches=options.num_microbatches,
        critic=critic,
        num_critics=num_critics,
        terms=(terms.Surrogate(), terms.Value(clip_eps=clip_eps), terms.Entropy()),
        total_timesteps=updates * ROLLOUT_LENGTH * num_envs,
    )
    members = population.init(config, jax.random.split(jax.random.key(0), 1))
    progress = Progress.of(np.arange(updates), updates)

    def train(members):
        return population.advance(members, progress, jnp.int32(updates))[1]

    return jax.jit(train).lower(members).compile(), members


def shown(speeds: dict[str, list[float]], name: str) -> str:
    """Median speed, and the ratio to the scalar critic's in the same round."""
    ratios = [a / b for a, b in zip(speeds[name], speeds["scalar"], strict=True)]
    ratio = statistics.median(ratios)
    return f"{statistics.median(speeds[name]):,.0f} | {ratio:.2f} | {1 / ratio:.2f}"


ERRORS = "quantiles, of σ | CVaR 5 %, step | CVaR 5 %, linear"


def learned(critic: Quantile) -> tuple[float, float, float]:
    """Largest error of learned quantiles of N(0, 1), and those of its CVaR."""
    steps, batch = 3000, 512
    critic = Quantile(critic.num_quantiles, kappa=0.02)
    optimizer = optax.adam(optax.cosine_decay_schedule(0.05, steps))

    def loss(outputs, key):
        rows = jnp.broadcast_to(outputs[None], (batch, outputs.size))
        return critic.loss(rows, jax.random.normal(key, (batch,))).mean()

    def step(state, key):
        outputs, opt_state = state
        updates, opt_state = optimizer.update(jax.grad(loss)(outputs, key), opt_state)
        return (optax.apply_updates(outputs, updates), opt_state), None

    first = jnp.zeros(critic.num_outputs)
    keys = jax.random.split(jax.random.key(0), steps)
    (outputs, _), _ = jax.jit(
        lambda keys: jax.lax.scan(step, (first, optimizer.init(first)), keys)
    )(keys)
    levels = (np.arange(critic.num_outputs) + 0.5) / critic.num_outputs
    error = np.abs(np.asarray(outputs) - stats.norm.ppf(levels)).max()
    exact = -stats.norm.pdf(stats.norm.ppf(ALPHA)) / ALPHA
    tails = (critics.StepTail(), critics.LinearTail())
    return error, *(abs(float(tail(outputs, ALPHA)) / exact - 1) for tail in tails)


if __name__ == "__main__":
    main()
