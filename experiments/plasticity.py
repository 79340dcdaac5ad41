"""Does an optimiser keep its plasticity? Two problems that change again and again.

*Permuted inputs*: a network learns a fixed teacher online, whose inputs are permuted
anew every 300 updates (in the manner of Elsayed and Mahmood, 2024). *Moving cues*: an
agent names one of eight cues, and every 20 updates of PPO all the names change; only a
number of the environment does, so nothing is compiled anew. Chance is 1/8, and a large
entropy bonus keeps the agent asking: one that is certain never hears of the new names.

    python experiments/plasticity.py --out runs/plasticity

Every optimiser, with and without VGS, first chooses its learning rate out of five on
seeds of its own, by the late half of a run; the grids are equally wide, and a choice at
an end of its grid is marked with *. Then it trains 20 other seeds in one program.
Nothing has weight decay, so that what differs is the direction, the gate and its noise.
What is left is a table of the late half, with 95 % intervals over seeds, and a plot of
all changes. Expect no order in advance: the table says what is true.
"""

import argparse
import dataclasses
import functools
import itertools
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import optax

from ppo_jax import Config, networks, optimizers, schedules, terms
from ppo_jax.component import as_arrays, component, program, replace_at
from ppo_jax.envs import Discrete
from ppo_jax.envs.probes import OneStep
from ppo_jax.ppo import population
from ppo_jax.schedules import Progress
from ppo_jax.transforms.noise import hashed_normal

RATES = (1e-3, 3e-3, 1e-2, 3e-2, 1e-1)
PLAIN_RATES = (3e-2, 1e-1, 3e-1, 1.0, 3.0)
"""Of plain gradients, which are smaller than Adam's directions."""
TUNING, TESTING = 1, 2
"""Streams of seeds: those that choose a rate, and those that are reported."""
TUNING_SEEDS = 4
PERIOD, BATCH, INPUTS, CLASSES = 300, 16, 16, 5
START = Progress.at(0.0)
STEADY = {"schedule": schedules.Constant(), "max_grad_norm": None}
GATED = STEADY | {"weight_decay": 0.0, "sampler": hashed_normal}
KINDS = {
    "Adam": optimizers.Adam(**STEADY),
    "SGD": optimizers.Sgd(**STEADY),
    "UPGD": optimizers.UPGD(**GATED),
    "AdaptiveUPGD": optimizers.AdaptiveUPGD(**GATED),
}
OPTIMIZERS = {
    name + suffix: dataclasses.replace(kind, vgs=vgs)
    for name, kind in KINDS.items()
    for suffix, vgs in (("", None), (" + VGS", optimizers.VGS()))
}


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
    total_timesteps=64 * 8 * 20 * 20,
    num_envs=64,
    num_steps=8,
    network=networks.ActorCritic(torso=networks.Mlp(hidden=(32,))),
    terms=(terms.Surrogate(), terms.Value(), terms.Entropy(coef=0.4)),
    optimizer=dataclasses.replace(KINDS["AdaptiveUPGD"], learning_rate=3e-3),
    phase_updates=20,
)


def rates(optimizer):
    """The learning rates that an optimiser chooses from."""
    plain = isinstance(optimizer, optimizers.Sgd) or type(optimizer) is optimizers.UPGD
    return PLAIN_RATES if plain else RATES


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
        updates, state, _ = optimizer.update(grads, state, params, key_noise, START)
        right = jnp.mean(jnp.argmax(logits, axis=-1) == label)
        return (optax.apply_updates(params, updates), state, order), right

    def task(loop, key):
        key_order, key_updates = jax.random.split(key)
        order = jax.random.permutation(key_order, INPUTS)
        keys = jax.random.split(key_updates, PERIOD)
        loop, right = jax.lax.scan(update, (*loop, order), keys)
        return loop[:2], right.mean()

    keys = jax.random.split(key, tasks)
    return jax.lax.scan(task, (params, optimizer.init(params)), keys)[1]


@functools.partial(jax.jit, static_argnames="tasks")
def supervised(optimizer, rate, keys, tasks):
    """Accuracy on each task, of runs with a rate and a key each, `[runs, tasks]`."""

    def run(rate, key):
        tuned = replace_at(optimizer, "learning_rate", rate)
        return permuted_inputs(tuned, key, tasks)

    return jax.vmap(run)(rate, keys)


def reinforced(optimizer, rate, keys, changes):
    """Mean reward after each change, of runs as in `supervised`, `[runs, changes]`."""
    size = len(rate)
    numbers = as_arrays(program(dataclasses.replace(config, optimizer=optimizer)))
    numbers = jax.tree.map(lambda x: jnp.broadcast_to(x, size), numbers)
    numbers = replace_at(numbers, "optimizer.learning_rate", rate)
    members = population.init(numbers, keys)
    progress, rewards = Progress.at(np.zeros(config.phase_updates)), []
    for change in range(changes):
        members = with_shift(members, float(3 * change % 8))
        members, history = population.advance(
            members, progress, jnp.int32(config.phase_updates)
        )
        total, count = (history[f"episodes/{x}"] for x in ("return_sum", "count"))
        rewards.append(np.asarray(total).sum(axis=0) / np.asarray(count).sum(axis=0))
    return np.stack(rewards, axis=1)


def with_shift(members, shift):
    """The same members where other answers are right."""
    learner = members.runs.learner
    shifts = jnp.full_like(learner.config.env.shift, shift)
    moved = replace_at(learner.config, "env.shift", shifts)
    learner = dataclasses.replace(learner, config=moved)
    runs = dataclasses.replace(members.runs, learner=learner)
    return dataclasses.replace(members, runs=runs)


def late(curves):
    """Mean of the second half of each run `[runs]`."""
    return curves[:, curves.shape[1] // 2 :].mean(axis=1)


def trial(problem, optimizer, seeds, changes):
    """The rate that tuning seeds chose, and curves of others `[seeds, changes]`."""
    choices = np.array(rates(optimizer), np.float32)

    def curves(rate, stream, count):
        keys = jax.random.split(jax.random.key(stream), count)
        keys = jnp.tile(keys, len(rate) // count)
        return np.asarray(problem(optimizer, jnp.asarray(rate), keys, changes))

    tuning = curves(np.repeat(choices, TUNING_SEEDS), TUNING, TUNING_SEEDS)
    figures = late(tuning).reshape(len(choices), TUNING_SEEDS).mean(axis=1)
    best = choices[figures.argmax()]
    return best, curves(np.full(seeds, best), TESTING, seeds)


def half_width(samples):
    """Half of the 95 % interval of a mean over seeds, the leading axis."""
    return 1.96 * samples.std(axis=0, ddof=1) / np.sqrt(len(samples))


def cell(optimizer, best, curves):
    """Mean and interval of the late half, and the rate; * at an end of its grid."""
    figures, ends = late(curves), np.float32(rates(optimizer))[[0, -1]]
    mark = "*" if best in ends else ""
    return f"{figures.mean():.3f} ± {half_width(figures):.3f} ({best:g}{mark})"


def plot(path, results):
    """Means over seeds after every change; needs the extra `report`."""
    import matplotlib

    matplotlib.use("agg")
    from matplotlib import pyplot

    figure, panels = pyplot.subplots(1, 2, figsize=(12, 5), layout="constrained")
    for axes, (title, (unit, curves)) in zip(panels, results.items(), strict=True):
        for i, (name, each) in enumerate(curves.items()):
            x, mean, half = (
                np.arange(each.shape[1]),
                each.mean(axis=0),
                half_width(each),
            )
            style = {"color": f"C{i // 2}", "ls": "--" if "VGS" in name else "-"}
            axes.plot(x, mean, label=name, **style)
            axes.fill_between(
                x, mean - half, mean + half, alpha=0.15, color=f"C{i // 2}"
            )
        axes.set(xlabel="change", ylabel=unit, title=title)
    panels[0].legend()
    figure.savefig(path)


def main():
    """Compares the optimisers; prints the table, leaves it and the plot in a folder."""
    parser = argparse.ArgumentParser(description="plasticity of optimisers")
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--tasks", type=int, default=50)
    parser.add_argument("--changes", type=int, default=20)
    parser.add_argument("--only", nargs="+", choices=OPTIMIZERS, default=OPTIMIZERS)
    parser.add_argument("--out", type=Path, default=Path("runs/plasticity"))
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    problems = {
        "permuted inputs": (supervised, options.tasks, "accuracy"),
        "moving cues": (reinforced, options.changes, "reward"),
    }
    results = {name: (unit, {}) for name, (_, _, unit) in problems.items()}
    heads = [f"{name}: {unit} (rate)" for name, (_, _, unit) in problems.items()]
    lines = [f"| optimiser | {' | '.join(heads)} |", "|---|--:|--:|"]
    print("\n".join(lines), flush=True)
    for name in options.only:
        optimizer, cells = as_arrays(OPTIMIZERS[name]), [name]
        for title, (problem, changes, _) in problems.items():
            best, curves = trial(problem, optimizer, options.seeds, changes)
            results[title][1][name] = curves
            cells.append(cell(optimizer, best, curves))
        lines.append(f"| {' | '.join(cells)} |")
        print(lines[-1], flush=True)
    (options.out / "table.md").write_text("\n".join(lines) + "\n")
    plot(options.out / "plot.png", results)


if __name__ == "__main__":
    main()
