"""What it is worth to train under attack: the same agents with and without it.

    python experiments/sa_gain.py experiments/sa_cartpole.py --eps 1.25
    python experiments/sa_gain.py experiments/sa_memory.py --eps 1.0

trains seeds of both in one program, in which an adversary without rows, a divergence
without weight and an opponent without environments are none, plays whole episodes
against every opponent, and leaves a table. Each agent is judged by the opponent that is
the worst for it. What is lost is a share of what plain agents are better than untrained
ones. Expect what `docs/results.md` says.
"""

import argparse
import json
import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import sa_cartpole

from ppo_jax.arrays import devices
from ppo_jax.attacks.opponents import OPPONENTS
from ppo_jax.component import as_arrays, program, replace_at
from ppo_jax.host.devices import mesh
from ppo_jax.host.run_dir import experiment
from ppo_jax.ppo import population
from ppo_jax.ppo.episodes import returns_against, run_episodes
from ppo_jax.schedules import Progress
from ppo_jax.terms import RobustKL

if __name__ == "__main__":
    devices.prepare()  # Before JAX starts.

config = sa_cartpole.config
EPISODES = 64


def both(config, seeds):
    """Members that train without and with the adversary, from the same keys."""
    with_it = jnp.repeat(jnp.array([0.0, 1.0]), seeds)
    smoothing = next(term for term in config.terms if isinstance(term, RobustKL))
    numbers = as_arrays(program(config))
    paths = {
        "adversary.ratio": config.adversary.ratio,
        "terms.robust_kl.coef": smoothing.coef,
    }
    if config.opponent is not None:
        paths["opponent.share"] = config.opponent.share
    numbers = jax.tree.map(lambda x: jnp.broadcast_to(x, 2 * seeds), numbers)
    for path, number in paths.items():
        numbers = replace_at(numbers, path, number * with_it)
    keys = jax.random.split(jax.random.key(config.seed), seeds)
    return population.init(numbers, jnp.concatenate([keys, keys]))


def train(config, seeds):
    """Trained learners, half of them plain, `[2 · seeds]`, and the untrained ones."""
    members, updates = both(config, seeds), config.num_updates
    untrained = jax.tree.map(jnp.copy, members.runs.learner)
    progress = Progress.of(np.arange(updates), updates)
    layout = mesh.over_all_devices(2 * seeds)
    members, _ = layout.advance(layout.place(members), progress, np.int32(updates))
    return mesh.on_one_device().place(members).runs.learner, untrained


def play(learners, opponent, eps, key):
    """Mean returns against an opponent `[2, seeds]`."""

    @jax.jit
    @jax.vmap
    def one(learner):
        return returns_against(opponent, learner, eps, key, EPISODES)[0].mean()

    return np.asarray(one(learners)).reshape(2, -1)


def attacked(learners, untrained, eps):
    """Mean returns by opponent `[2, seeds]`, and of agents that learned nothing."""
    key = jax.random.key(1)
    chance = jax.jit(
        jax.vmap(lambda x: run_episodes(x, key, EPISODES, False)[0].mean())
    )
    found = {"none": play(learners, OPPONENTS["random"], 0.0, key)}
    found |= {
        name: play(learners, opponent, eps, key) for name, opponent in OPPONENTS.items()
    }
    found["the worst of them"] = np.min([*found.values()], axis=0)
    return found, float(np.mean(chance(untrained)))


def verdict(found, chance):
    """What was lost and gained, with half of 95 % intervals over pairs of seeds."""
    clean, worst = found["none"], found["the worst of them"]
    worth = clean[0].mean() - chance
    lost = (clean - worst) / worth
    gain = lost[0] - lost[1]
    return {
        "chance": chance,
        "plain loses": float(lost[0].mean()),
        "robust loses": float(lost[1].mean()),
        "gain": float(gain.mean()),
        "± of the gain": float(1.96 * gain.std(ddof=1) / np.sqrt(gain.size)),
        "clean difference": float((clean[1].mean() - clean[0].mean()) / worth),
    }


def table(found):
    """Lines of a markdown table."""
    yield "| opponent | plain | robust |"
    yield "|---|--:|--:|"
    for name, returns in found.items():
        half = 1.96 * returns.std(axis=1, ddof=1) / np.sqrt(returns.shape[1])
        cells = [
            f"{m:.4g} ± {h:.2g}"
            for m, h in zip(returns.mean(axis=1), half, strict=True)
        ]
        yield f"| {name} | {' | '.join(cells)} |"


def parse_arguments(argv):
    """The options of this script, and the experiment with what the others override."""
    parser = argparse.ArgumentParser(
        description="agents with and without SA-PPO", allow_abbrev=False
    )
    parser.add_argument("experiment", type=Path)
    parser.add_argument("--eps", type=float, nargs="+", required=True)
    parser.add_argument("--seeds", type=int, default=8)
    parser.add_argument("--out", type=Path, default=Path("runs/sa_gain"))
    options, overrides = parser.parse_known_args(argv)
    return options, experiment.load(options.experiment, overrides, "sa_gain.py")


def main():
    """Trains and attacks; prints the table and leaves it in a folder."""
    options, config = parse_arguments(sys.argv[1:])
    learners, untrained = train(config, options.seeds)
    lines, verdicts = [], {}
    for eps in options.eps:
        found, chance = attacked(learners, untrained, eps)
        verdicts[eps] = verdict(found, chance)
        block = [f"\nε = {eps:g}\n", *table(found), ""]
        block += [f"- {what}: {x:.3g}" for what, x in verdicts[eps].items()]
        print("\n".join(block), flush=True)
        lines += block
    options.out.mkdir(parents=True, exist_ok=True)
    name = options.experiment.stem
    (options.out / f"{name}.md").write_text("\n".join(lines) + "\n")
    (options.out / f"{name}.json").write_text(json.dumps(verdicts, indent=2) + "\n")


if __name__ == "__main__":
    main()
