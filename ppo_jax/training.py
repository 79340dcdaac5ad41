"""A run on the host: phases, evaluations, checkpoints, logs."""

import dataclasses
import functools
import math
import signal
import time
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ppo_jax import component, episodes
from ppo_jax.checkpoint import Checkpointer
from ppo_jax.config import Config
from ppo_jax.console import Console
from ppo_jax.logger import Logger
from ppo_jax.pbt import population as populations
from ppo_jax.state import Population


class Interrupt:
    """Ctrl-C asks for a stop between phases; a second one stops at once.

    An exception inside a phase would lose the population, which was donated to it.
    """

    def __init__(self):
        self.asked = False
        self._before = signal.signal(signal.SIGINT, self._ask)

    def _ask(self, *_: Any) -> None:
        self.asked = True
        signal.signal(signal.SIGINT, self._before)

    def close(self) -> None:
        """Gives Ctrl-C back."""
        signal.signal(signal.SIGINT, self._before)


def start(config: Config) -> Population:
    """The population of an experiment before its first update."""
    key = jax.random.fold_in(jax.random.key(config.seed), 0)
    return populations.init(config, jax.random.split(key, 1))


def train(
    config: Config, run_dir: Path, resume: bool, changed: dict[str, str]
) -> tuple[str, dict[str, float]]:
    """Trains to the end of the budget, or until something stops it.

    Args:
        config: The experiment.
        run_dir: Where checkpoints and logs go.
        resume: Whether to go on from the newest checkpoint.
        changed: Numbers that a resumed run takes from `config`, by path.

    Returns:
        How it ended: `finished`, `interrupted` or `failed`; and the last evaluation.
    """
    population, done = start(config), 0
    checkpoints = Checkpointer(run_dir)
    if resume and checkpoints.empty:
        print(f"{run_dir}: stopped before its first checkpoint; starting again")
    elif resume:
        done, population, _ = checkpoints.restore(population)
        population = _with_numbers(population, config, changed)
    steps = config.steps_per_update
    logger = Logger(run_dir, done * steps)
    console = Console(config.num_updates * steps, done * steps)
    device = jax.devices()[0]
    console.say(f"training on {device.platform} ({device.device_kind}), in {run_dir}")
    interrupt = Interrupt()
    ending, evaluation = "finished", {}
    try:
        while done < config.num_updates and ending == "finished":
            population, done, metrics = _phase(config, population, done)
            failures = int(np.max(metrics["error/failure_streak"]))
            if failures >= config.max_failures:
                ending = "failed"
            elif interrupt.asked and done < config.num_updates:
                ending = "interrupted"
            due = _phase_index(config, done) % config.eval_phases == 0
            if due or done == config.num_updates:
                evaluation = evaluate(population, config, done)
                metrics |= {f"eval/{name}": x for name, x in evaluation.items()}
            if due or done == config.num_updates or ending != "finished":
                fitness = evaluation.get("mean", -math.inf)
                checkpoints.save(done, population, fitness, {"update": done})
            logger.write(done * steps, metrics)
            console.update(done * steps, metrics)
    finally:
        interrupt.close()
        checkpoints.close()
        logger.close()
        console.close()
    return ending, evaluation or evaluate(population, config, done)


def evaluate(
    population: Population,
    config: Config,
    update: int,
    num_episodes: int | None = None,
    deterministic: bool = True,
) -> dict[str, float]:
    """Statistics of whole episodes, with keys that training never sees."""
    key = jax.random.fold_in(jax.random.key(config.seed), 1 + update)
    count = num_episodes or config.eval_episodes
    total, _ = _run_episodes(population.runs.learner, key, count, deterministic)
    return episodes.summarize(np.asarray(total)[0])


@functools.partial(jax.jit, static_argnums=(2, 3))
def _run_episodes(
    learners: Any, key: Any, num_episodes: int, deterministic: bool = True
) -> Any:
    return jax.vmap(
        lambda one: episodes.run_episodes(one, key, num_episodes, deterministic)
    )(learners)


def _phase_length(config: Config) -> int:
    return config.phase_updates or max(1, config.num_updates // 100)


def _phase_index(config: Config, done: int) -> int:
    return done // _phase_length(config)


def _phase(
    config: Config, population: Population, done: int
) -> tuple[Population, int, dict[str, float]]:
    """Advances to the next multiple of the phase length, or to the end."""
    length = _phase_length(config)
    until = min((done // length + 1) * length, config.num_updates)
    progress = (done + np.arange(length)) / config.num_updates
    began = time.perf_counter()
    population, history = populations.advance(
        population, jnp.asarray(progress, jnp.float32), jnp.int32(until - done)
    )
    history = jax.device_get(history)
    seconds = time.perf_counter() - began
    metrics = summarize({k: v[: until - done, 0] for k, v in history.items()})
    metrics["time/fps"] = (until - done) * config.steps_per_update / seconds
    return population, until, metrics


def summarize(history: dict[str, np.ndarray]) -> dict[str, float]:
    """One number per metric of a phase `[n]`: sums of counts, means of the rest."""
    count = history["episodes/count"].sum()
    metrics = {
        "rollout/ep_rew_mean": _ratio(history["episodes/return_sum"].sum(), count),
        "rollout/ep_len_mean": _ratio(history["episodes/length_sum"].sum(), count),
        "rollout/episodes": float(count),
        "rollout/cost_mean": _ratio(
            history["costs/sum"].sum(), history["costs/count"].sum()
        ),
    }
    for name, values in history.items():
        peaks = name in ("error/failure_streak", "vgs/step_count")
        if peaks or name.startswith("warn/"):
            metrics[name] = float(values.max())
        elif name.startswith("error/") or name.endswith("_count"):
            metrics[name] = float(values.sum())
        elif name.startswith(("train/", "debug/", "vgs/", "upgd/")):
            metrics[name] = float(values.mean())
    return metrics


def _ratio(total: float, count: float) -> float:
    return float(total) / float(count) if count else math.nan


def _with_numbers(
    population: Population, config: Config, changed: dict[str, str]
) -> Population:
    """The population with the numbers that a resumed run was given anew."""
    learner = population.runs.learner
    mine, given = learner.config, component.numbers(config)
    for path in changed:
        if path in given:
            old = component.numbers(mine)[path]
            mine = component.replace_at(mine, path, jnp.full_like(old, given[path]))
    learner = dataclasses.replace(learner, config=mine)
    return Population(runs=dataclasses.replace(population.runs, learner=learner))
