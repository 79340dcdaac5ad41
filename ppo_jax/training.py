"""A run on the host: phases, evaluations, checkpoints, logs."""

import dataclasses
import functools
import math
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ppo_jax import component, episodes
from ppo_jax.alerts import Alarms
from ppo_jax.checkpoint import Checkpointer
from ppo_jax.config import Config
from ppo_jax.console import Console
from ppo_jax.experiment import describe, differences
from ppo_jax.interrupt import Interrupt
from ppo_jax.logger import Logger
from ppo_jax.metrics import summarize
from ppo_jax.pbt import population as populations
from ppo_jax.state import Population
from ppo_jax.watchdog import Watchdog


def start(config: Config) -> Population:
    """The population of an experiment before its first update."""
    key = jax.random.fold_in(jax.random.key(config.seed), 0)
    return populations.init(config, jax.random.split(key, 1))


def train(config: Config, run_dir: Path, resume: bool, hint: str = "") -> str:
    """Trains to the end of the budget, or until something stops it.

    A row is logged before its checkpoint is saved: what a resumed run finds in the log
    reaches at least as far as the checkpoint, and is cut back to it.

    Args:
        config: The experiment.
        run_dir: Where checkpoints and logs go.
        resume: Whether to go on from the newest checkpoint.
        hint: How to go on with the run, for whoever ends it or finds it ended.

    Returns:
        How it ended: `finished`, `interrupted` or `failed`.

    Raises:
        CheckpointError: If no checkpoint can be restored.
        OSError: If the disk does not take a checkpoint or a log.
    """
    with (
        closing(Console()) as console,
        Interrupt(console) as interrupt,
        Watchdog(config.stall_seconds, console, hint) as watchdog,
        closing(Checkpointer(run_dir)) as checkpoints,
    ):
        console.say(f"training on {_device()}, in {run_dir}")
        population, done = start(config), 0
        if resume:
            population, done = _resume(config, checkpoints, population, console)
        steps = config.steps_per_update
        console.start(config.num_updates * steps, done * steps)
        ending = "finished" if done >= config.num_updates else ""
        with closing(Logger(run_dir, done * steps)) as logger:
            alarms = Alarms(logger.rows)
            while not ending:
                watchdog.heard()
                population, done, metrics = _phase(config, population, done)
                watchdog.heard()
                ending = _ending(config, done, metrics, interrupt)
                due = ending == "finished" or _is_evaluated(config, done)
                if due:
                    metrics |= _evaluation(config, population, done)
                flags, lines = alarms.check(metrics)
                metrics |= flags
                for line in lines:
                    console.say(line)
                logger.write(done * steps, metrics)
                console.update(done * steps, metrics)
                if due or ending:
                    fitness = metrics.get("eval/mean_reward", -math.inf)
                    meta = {"config": describe(config)}
                    checkpoints.save(done, population, fitness, meta)
    return ending


def evaluate(
    population: Population,
    config: Config,
    update: int,
    num_episodes: int,
    deterministic: bool = True,
) -> tuple[np.ndarray, np.ndarray]:
    """Returns of whole episodes, with keys that training never sees.

    Returns:
        Returns `[num_episodes]`, and whether each episode came to its end.
    """
    key = jax.random.fold_in(jax.random.key(config.seed), 1 + update)
    total, ended = _run_episodes(
        population.runs.learner, key, num_episodes, deterministic
    )
    return np.asarray(total)[0], np.asarray(ended)[0]


@functools.partial(jax.jit, static_argnums=(2, 3))
def _run_episodes(
    learners: Any, key: Any, num_episodes: int, deterministic: bool
) -> Any:
    return jax.vmap(
        lambda one: episodes.run_episodes(one, key, num_episodes, deterministic)
    )(learners)


def _device() -> str:
    device = jax.devices()[0]
    return f"{device.platform} ({device.device_kind})"


def _resume(
    config: Config, checkpoints: Checkpointer, fresh: Population, console: Console
) -> tuple[Population, int]:
    """The newest checkpoint, with the numbers that the run was given anew."""
    if checkpoints.empty:
        checkpoints.rewind(0)
        console.say("stopped before its first checkpoint; starting again")
        return fresh, 0
    done, population, meta = checkpoints.restore(fresh)
    checkpoints.rewind(done)
    changed = differences(meta["config"], describe(config))
    for name, change in changed.items():
        console.say(f"resuming with another {name}: {change}")
    console.say(f"resuming after update {done} of {config.num_updates}")
    return _with_numbers(population, config, changed), done


def _with_numbers(
    population: Population, config: Config, changed: dict[str, str]
) -> Population:
    learner = population.runs.learner
    mine, given = learner.config, component.numbers(config)
    for path in changed.keys() & given.keys():
        old = component.numbers(mine)[path]
        mine = component.replace_at(mine, path, jnp.full_like(old, given[path]))
    learner = dataclasses.replace(learner, config=mine)
    return Population(runs=dataclasses.replace(population.runs, learner=learner))


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
    steps = config.steps_per_update
    metrics = summarize({k: v[: until - done, 0] for k, v in history.items()})
    metrics |= {
        "time/fps": (until - done) * steps / seconds,
        "time/iterations": until,
        "time/total_timesteps": until * steps,
    }
    return population, until, metrics


def _phase_length(config: Config) -> int:
    return config.phase_updates or max(1, config.num_updates // 100)


def _is_evaluated(config: Config, done: int) -> bool:
    return done // _phase_length(config) % config.eval_phases == 0


def _ending(
    config: Config, done: int, metrics: dict[str, float], interrupt: Interrupt
) -> str:
    """How the run ends after this phase, or nothing."""
    if metrics["error/failure_streak"] >= config.max_failures:
        return "failed"
    if done >= config.num_updates:
        return "finished"
    return "interrupted" if interrupt.asked else ""


def _evaluation(config: Config, population: Population, done: int) -> dict[str, float]:
    returns, ended = evaluate(population, config, done, config.eval_episodes)
    figures = episodes.summarize(returns)
    count = figures.pop("episodes")
    return {f"eval/{name}_reward": figure for name, figure in figures.items()} | {
        "eval/episodes": count,
        "eval/unfinished_episodes": np.sum(~ended),
    }
