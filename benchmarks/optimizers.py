"""What VGS and UPGD add to an optimiser's step, as multiples of Adam's.

    python benchmarks/optimizers.py

times whole steps (scaling, clip, direction, decay, new parameters) of a 64×64 agent
with twin quantile critics and of a network of 10 M parameters. All optimisers take
turns in one process, in another order every round; a row is a median over rounds. The
second row is Adam once more: how far it is from 1 is what the ratios can be trusted to.
"""

import argparse
import functools
import statistics
import time
from collections.abc import Callable

import jax
import jax.numpy as jnp
import optax

from ppo_jax import Config, critics, networks, optimizers
from ppo_jax.component import as_arrays
from ppo_jax.schedules import Progress
from ppo_jax.transforms.noise import Sampler, hashed_normal
from ppo_jax.types import PyTree


def free(key: jax.Array, shape: tuple[int, ...]) -> jax.Array:
    """Noise that costs no random numbers."""
    del key
    return jnp.ones(shape)


VGS = optimizers.VGS(warmup_steps=0)
GATED = {
    "UPGD": optimizers.UPGD,
    "AdaptiveUPGD": optimizers.AdaptiveUPGD,
    "UPGDW": optimizers.UPGDW,
}
SAMPLERS: dict[str, Sampler] = {
    "`random.normal`": jax.random.normal,
    "`hashed_normal`": hashed_normal,
}
OPTIMIZERS: dict[str, optimizers.Optimizer] = {
    "Adam": optimizers.Adam(),
    "Adam, again": optimizers.Adam(),
    "Adam, VGS": optimizers.Adam(vgs=VGS),
    **{name: kind(sigma=None) for name, kind in GATED.items()},
    "AdaptiveUPGD, VGS": optimizers.AdaptiveUPGD(sigma=None, vgs=VGS),
    "UPGD, free noise": optimizers.UPGD(sampler=free),
    **{f"UPGD, {name}": optimizers.UPGD(sampler=x) for name, x in SAMPLERS.items()},
}
WITHOUT_NUMBERS = "UPGD, free noise"
Step = Callable[[], None]


NETWORKS = {
    "64×64 agent with twin quantile critics": (
        Config("CartPole-v1", critic=critics.Quantile(32), num_critics=2),
        200,
    ),
    "10 M parameters": (
        Config(
            "CartPole-v1",
            network=networks.ActorCritic(torso=networks.Mlp(hidden=(2240, 2240))),
        ),
        1,
    ),
}
"""Networks, and how many steps make one measurement."""


def normal(config: Config, seed: int, steps: tuple[int, ...] = ()) -> PyTree:
    """Small normal numbers in the place of every parameter, `[*steps, ...]`."""
    key = jax.random.key(seed)
    shapes = jax.eval_shape(config.build().init, key)
    return jax.tree.map(
        lambda w: 0.03 * jax.random.normal(key, (*steps, *w.shape)), shapes
    )


def stepper(optimizer: optimizers.Optimizer, params: PyTree, gradients: PyTree) -> Step:
    """A function that takes a step per gradient, in a program that donates its state.

    Args:
        optimizer: What is measured.
        params: Where to begin.
        gradients: Leaves `[steps, ...]`.
    """
    optimizer = as_arrays(optimizer)
    key = jax.random.key(1)

    @functools.partial(jax.jit, donate_argnums=(1, 2))
    def advance(optimizer, params, state, gradients, key):
        def step(carry, gradient):
            params, state = carry
            updates, state, _ = optimizer.update(
                gradient, state, params, key, Progress.at(0.0)
            )
            return (optax.apply_updates(params, updates), state), None

        return jax.lax.scan(step, (params, state), gradients)[0]

    params = jax.tree.map(jnp.copy, params)
    state = jax.jit(lambda x, params: x.init(params))(optimizer, params)
    program = advance.lower(optimizer, params, state, gradients, key).compile()

    def run():
        nonlocal params, state
        with jax.transfer_guard("disallow"):
            params, state = program(optimizer, params, state, gradients, key)
            jax.block_until_ready((params, state))

    run()
    return run


def measure(steppers: dict[str, Step], rounds: int) -> dict[str, list[float]]:
    """Seconds of every optimiser in every round."""
    seconds: dict[str, list[float]] = {name: [] for name in steppers}
    names = list(steppers)
    for i in range(rounds):
        shift = i % len(names)
        for name in names[shift:] + names[:shift]:
            begun = time.perf_counter()
            steppers[name]()
            seconds[name].append(time.perf_counter() - begun)
    return seconds


def table(seconds: dict[str, list[float]], steps: int) -> str:
    """Medians, ratios to Adam, and the share of random numbers in steps that draw."""
    medians = {name: statistics.median(each) for name, each in seconds.items()}
    lines = ["| optimiser | ms | × Adam | random numbers |", "|---|--:|--:|--:|"]
    for name, median in medians.items():
        share = 1 - medians[WITHOUT_NUMBERS] / median
        draws = any(name.endswith(sampler) for sampler in SAMPLERS)
        cells = (
            name,
            f"{1e3 * median / steps:.3g}",
            f"{median / medians['Adam']:.2f}",
            f"{share:.0%}" if draws else "",
        )
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def main() -> None:
    """Measures both networks and prints their tables."""
    parser = argparse.ArgumentParser(description="the cost of VGS and UPGD")
    parser.add_argument("--rounds", type=int, default=40)
    options = parser.parse_args()
    for title, (config, steps) in NETWORKS.items():
        params, gradients = normal(config, 0), normal(config, 1, (steps,))
        leaves = jax.tree.leaves(params)
        size = sum(leaf.size for leaf in leaves)
        print(f"\n{title}: {size:,} in {len(leaves)} leaves, on {jax.devices()[0]}\n")
        steppers = {
            name: stepper(optimizer, params, gradients)
            for name, optimizer in OPTIMIZERS.items()
        }
        print(table(measure(steppers, options.rounds), steps), flush=True)


if __name__ == "__main__":
    main()
