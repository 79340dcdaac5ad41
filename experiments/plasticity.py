"""Does an optimiser keep its plasticity? Two problems that change again and again.

*Permuted inputs*: a network learns a fixed teacher online, whose inputs are permuted
anew every 300 updates (in the manner of Elsayed and Mahmood, 2024). *Moving cues*: an
agent names one of eight cues, and every 20 updates of PPO all the names change; only a
number of the environment does, so nothing is compiled anew.

    python experiments/plasticity.py --out runs/plasticity

trains 20 seeds of every optimiser, with each of three learning rates in one program,
and leaves a table of the late half of each run at the best rate. Expect no order in
advance: the table says what is true.
"""

import argparse
import dataclasses
import itertools
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import optax

from ppo_jax import Config, networks, optimizers, schedules
from ppo_jax.component import as_arrays, component, program, replace_at
from ppo_jax.envs import Discrete
from ppo_jax.envs.probes import OneStep
from ppo_jax.pbt import population

RATES = (1e-3, 3e-3, 1e-2)
PERIOD, BATCH, INPUTS, CLASSES = 300, 16, 16, 5
VGS = optimizers.VGS()
STEADY = {"schedule": schedules.Constant(), "max_grad_norm": None}
OPTIMIZERS = {
    "Adam": optimizers.Adam(**STEADY),
    "Adam + VGS": optimizers.Adam(vgs=VGS, **STEADY),
    "SGD": optimizers.Sgd(**STEADY),
    "SGD + VGS": optimizers.Sgd(vgs=VGS, **STEADY),
    "UPGD": optimizers.UPGD(**STEADY),
    "UPGD + VGS": optimizers.UPGD(vgs=VGS, **STEADY),
    "AdaptiveUPGD": optimizers.AdaptiveUPGD(**STEADY),
    "AdaptiveUPGD + VGS": optimizers.AdaptiveUPGD(vgs=VGS, **STEADY),
}
# Plain gradients need larger steps than Adam's directions, which have unit size.
PLAIN = 10.0


@component
class MovingCues(OneStep):
    """Eight cues; the right answer to cue i is i + shift, modulo 8."""

    shift: float = 0.0

    @property
    def action_space(self):
        return Discrete(8)

    def draw(self, key):
        return jax.random.randint(key, (), 0, 8)

    def observe(self, state):
        return jax.nn.one_hot(state, 8)

    def pay(self, key, state, action):
        return (action == (state + self.shift) % 8).astype(jnp.float32)


config = Config(
    env=MovingCues(),
    total_timesteps=64 * 8 * 20 * 30,
    num_envs=64,
    num_steps=8,
    network=networks.ActorCritic(torso=networks.Mlp(hidden=(32,))),
    optimizer=optimizers.AdaptiveUPGD(learning_rate=3e-3, **STEADY),
    phase_updates=20,
)


def rates(optimizer):
    """The learning rates that an optimiser is tried with."""
    plain = isinstance(optimizer, optimizers.Sgd) or type(optimizer) is optimizers.UPGD
    return [PLAIN * rate if plain else rate for rate in RATES]


def network(params, x):
    """Logits of a two-layer network."""
    for weight, bias in params[:-1]:
        x = jax.nn.relu(x @ weight + bias[None])
    weight, bias = params[-1]
    return x @ weight + bias[None]


def new_network(key, sizes=(INPUTS, 64, 64, CLASSES)):
    """He-initialised layers."""
    shapes = list(itertools.pairwise(sizes))
    return [
        (jax.random.normal(k, shape) * (2 / shape[0]) ** 0.5, jnp.zeros(shape[1]))
        for k, shape in zip(jax.random.split(key, len(shapes)), shapes, strict=True)
    ]


def permuted_inputs(optimizer, key, tasks):
    """Online accuracy on each task, `[tasks]`."""
    teacher = new_network(jax.random.key(0))
    chain = optimizer.transformation()
    key, key_params = jax.random.split(key)
    params = new_network(key_params)

    def update(loop, key):
        params, state, order = loop
        key_x, key_noise = jax.random.split(key)
        x = jax.random.normal(key_x, (BATCH, INPUTS))
        label = jnp.argmax(network(teacher, x), axis=-1)

        def loss(params):
            logits = network(params, x[:, order])
            costs = optax.softmax_cross_entropy_with_integer_labels(logits, label)
            return costs.mean(), logits

        (_, logits), grads = jax.value_and_grad(loss, has_aux=True)(params)
        updates, state = chain.update(grads, state, params, key=key_noise)
        updates = jax.tree.map(lambda u: -optimizer.learning_rate * u, updates)
        right = jnp.mean(jnp.argmax(logits, axis=-1) == label)
        return (optax.apply_updates(params, updates), state, order), right

    def task(loop, key):
        key_order, key_updates = jax.random.split(key)
        order = jax.random.permutation(key_order, INPUTS)
        keys = jax.random.split(key_updates, PERIOD)
        loop, right = jax.lax.scan(update, (*loop, order), keys)
        return loop[:2], right.mean()

    keys = jax.random.split(key, tasks)
    return jax.lax.scan(task, (params, chain.init(params)), keys)[1]


def supervised(optimizer, seeds, tasks):
    """Late accuracy by rate and seed, `[rates, seeds]`."""
    keys = jax.random.split(jax.random.key(1), seeds)

    @jax.jit
    @jax.vmap
    def by_rate(rate):
        tuned = replace_at(as_arrays(optimizer), "learning_rate", rate)
        return jax.vmap(lambda key: permuted_inputs(tuned, key, tasks))(keys)

    accuracy = np.asarray(by_rate(jnp.asarray(rates(optimizer), jnp.float32)))
    return accuracy[..., tasks // 2 :].mean(axis=-1)


def reinforced(optimizer, seeds, changes):
    """Late mean reward by rate and seed, `[rates, seeds]`."""
    choices = rates(optimizer)
    size = len(choices) * seeds
    numbers = as_arrays(program(dataclasses.replace(config, optimizer=optimizer)))
    numbers = jax.tree.map(lambda x: jnp.broadcast_to(x, size), numbers)
    rate = jnp.repeat(jnp.asarray(choices, jnp.float32), seeds)
    numbers = replace_at(numbers, "optimizer.learning_rate", rate)
    members = population.init(numbers, jax.random.split(jax.random.key(2), size))
    progress, rewards = jnp.zeros(config.phase_updates), []
    for change in range(changes):
        learner = members.runs.learner
        shift = jnp.full(size, float(3 * change % 8), jnp.float32)
        moved = replace_at(learner.config, "env.shift", shift)
        learner = dataclasses.replace(learner, config=moved)
        runs = dataclasses.replace(members.runs, learner=learner)
        members = dataclasses.replace(members, runs=runs)
        members, history = population.advance(
            members, progress, jnp.int32(config.phase_updates)
        )
        total, count = (history[f"episodes/{x}"] for x in ("return_sum", "count"))
        rewards.append(np.asarray(total).sum(axis=0) / np.asarray(count).sum(axis=0))
    return np.mean(rewards[changes // 2 :], axis=0).reshape(len(choices), seeds)


def row(name, optimizer, seeds, tasks, changes):
    """A line of the table: the best rate of each problem, mean and 95 % interval."""
    cells = [name]
    for figures in (
        supervised(optimizer, seeds, tasks),
        reinforced(optimizer, seeds, changes),
    ):
        best = figures.mean(axis=1).argmax()
        half = 1.96 * figures[best].std(ddof=1) / np.sqrt(seeds)
        mean, rate = figures[best].mean(), rates(optimizer)[best]
        cells.append(f"{mean:.3f} ± {half:.3f} ({rate:g})")
    return f"| {' | '.join(cells)} |"


def main():
    """Compares the optimisers; prints the table and leaves it in a folder."""
    parser = argparse.ArgumentParser(description="plasticity of optimisers")
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--tasks", type=int, default=100)
    parser.add_argument("--changes", type=int, default=30)
    parser.add_argument("--out", type=Path, default=Path("runs/plasticity"))
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    lines = [
        "| optimiser | permuted inputs: accuracy (rate) | moving cues: reward (rate) |",
        "|---|--:|--:|",
    ]
    print("\n".join(lines))
    for name, optimizer in OPTIMIZERS.items():
        lines.append(
            row(name, optimizer, options.seeds, options.tasks, options.changes)
        )
        print(lines[-1], flush=True)
    (options.out / "table.md").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
