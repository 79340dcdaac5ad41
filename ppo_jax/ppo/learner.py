"""Learning: the beginning of a run, and one iteration of PPO.

An iteration is a rollout, its advantages, and epochs of minibatch steps over it. All
functions are for one member; a population maps them.
"""

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp

from ppo_jax import networks
from ppo_jax.arrays import counting, sharding, tree
from ppo_jax.arrays.keys import fused, plain
from ppo_jax.component import as_arrays, replace_at
from ppo_jax.critics import pessimistic
from ppo_jax.envs.env import strong
from ppo_jax.metrics.own import named
from ppo_jax.normalization import observations, return_scale
from ppo_jax.ppo import acting, diagnostics, rollout, valuation
from ppo_jax.ppo.batch import assemble, held_out, sources
from ppo_jax.ppo.update import UpdateResult, update
from ppo_jax.schedules import Progress
from ppo_jax.state import Actor, Counters, Learner, Run, Trajectory
from ppo_jax.terms import RolloutTargets
from ppo_jax.terms.term import remembered_by
from ppo_jax.types import Array, Carry, Key, Metrics


def init(config: Any, key: Key) -> Run:
    """Makes a run before its first update.

    Args:
        config: The experiment, without the fields that only the host reads.
        key: The run's key.
    """
    config = as_arrays(config)
    key, key_params, key_envs = jax.random.split(fused(key), 3)
    network = config.build()
    params = network.init(key_params)
    keys = jax.random.split(key_envs, config.num_envs)
    actor = acting.start(config.env, network, keys)
    obs = jax.tree.map(lambda x: x[0], actor.obs)
    learner = Learner(
        params=params,
        opt_state=config.optimizer.init(params),
        config=config,
        obs_moments=() if config.obs_clip is None else observations.init(obs),
        return_scale=return_scale.identity(),
        memories=tuple(strong(term.init()) for term in config.terms),
        stop_memory=strong(config.early_stop.init()),
    )
    numbers = dataclasses.fields(Counters)
    counters = Counters(*(jnp.zeros((), jnp.int32) for _ in numbers))
    return Run(learner, plain(actor), plain(key), counters)


def iteration(run: Run, progress: Progress) -> tuple[Run, Metrics]:
    """Runs one iteration of PPO.

    Args:
        run: One member.
        progress: Progress of training; schedules follow it.

    Returns:
        The run afterwards, and metrics `[]` with the same keys every time.
    """
    run, key, actor, steps, carries = lived(run, progress)
    return learned(run, progress, key, actor, steps, carries)


def lived(run: Run, progress: Progress) -> tuple[Run, Key, Actor, Trajectory, Carry]:
    """Runs the rollout; returns the arguments of `learned`, except the progress."""
    key, key_rollout, key_update = jax.random.split(fused(run.key), 3)
    experience = rollout.unroll(
        opposed(run.learner, progress.course), run.actor, key_rollout
    )
    return dataclasses.replace(run, key=key), key_update, *experience


def learned(
    run: Run,
    progress: Progress,
    key: Key,
    actor: Actor,
    steps: Trajectory,
    carries: Carry,
) -> tuple[Run, Metrics]:
    """Runs the part of `iteration` after the rollout: learns from it.

    Args:
        run: One member.
        progress: Progress of training.
        key: Key of the minibatches.
        actor: The actor after the rollout.
        steps: The rollout `[T, B, ...]`.
        carries: Carries before the first step of each chunk, `[T / L, B, ...]`.
    """
    crew = sharding.crew(run.learner.config.num_envs)
    batch, targets, metrics, own_metrics = assemble(run.learner, key, steps, carries)
    learner, result = update(run.learner, batch, key, progress)
    metrics |= diagnostics.rollout_metrics(steps) | result.metrics
    metrics |= diagnostics.carry_metrics(crew.whole(actor.carry))
    metrics |= _environment_metrics(learner, actor)
    metrics |= named("Config.appraisal", _explained(learner, steps, carries, targets))
    learner = _adapt(learner, targets, result, metrics, own_metrics)
    learner, drift = _observe_moments(learner, steps, targets.weight)
    own = learner.config.optimizer.metrics(learner.opt_state)
    metrics |= drift | named("Config.optimizer.metrics", own)
    metrics |= learner.config.optimizer.rate_metrics(learner.opt_state, progress)
    counters = _count(run.counters, steps, result, metrics["episodes/count"])
    metrics["error/failure_streak"] = counters.failure_streak
    return Run(learner, actor, plain(run.key), counters), metrics


def opposed(learner: Learner, progress: Array) -> Learner:
    """Returns the learner with the radius in force for its opponent's attacks."""
    opponent = learner.config.opponent
    if opponent is None:
        return learner
    eps = opponent.attack.at(progress).eps
    config = replace_at(learner.config, "opponent.attack.eps", eps)
    return dataclasses.replace(learner, config=config)


def _environment_metrics(learner: Learner, actor: Actor) -> Metrics:
    """Returns the environments' own metrics of the rollout, summed over them."""
    config, num_envs = learner.config, actor.reset.shape[0]  # This device's share.

    def of_one(state):
        return named("Config.env.metrics", config.env.metrics(state))

    metrics = jax.vmap(of_one, axis_size=num_envs)(actor.env_state)
    metrics = sharding.crew(config.num_envs).whole(metrics)
    return {name: each.sum() for name, each in metrics.items()}


def _explained(
    learner: Learner, steps: Trajectory, carries: Carry, targets: RolloutTargets
) -> Metrics:
    """Returns metrics of the critics for the rollout that they have learned from."""
    config, scale = learner.config, learner.return_scale
    if config.appraisal is None:
        return {}
    crew = sharding.crew(config.num_envs)
    carry = crew.own(jax.tree.map(lambda x: x[0], carries))
    rows = crew.own((steps.obs, steps.reset), axis=1)
    value = pessimistic(valuation.predict(learner, carry, *rows))
    value = crew.whole(value, axis=1)
    before, after = scale.decode(steps.value), scale.decode(value)
    apart = held_out(config, steps, targets.weight)
    return config.appraisal(
        targets.target, before, after, targets.weight, apart, steps.group
    )


def _adapt(
    learner: Learner,
    targets: RolloutTargets,
    result: UpdateResult,
    metrics: Metrics,
    own_metrics: list[Metrics],
) -> Learner:
    """Moves memories of terms and early stop and the return scale, if a step was taken.

    If several terms give a metric the same name, each term gets its own value.
    """
    config, old = learner.config, learner
    memories = tuple(
        remembered_by(term, memory, metrics | own)
        for term, memory, own in zip(
            config.terms, learner.memories, own_metrics, strict=True
        )
    )
    stop = config.early_stop.update(learner.stop_memory, metrics, config.num_epochs)
    learner = dataclasses.replace(learner, memories=memories, stop_memory=stop)
    if config.return_scale is not None:
        learner = _rescale(learner, targets)
    return tree.where(result.taken > 0, learner, old)


def _rescale(learner: Learner, targets: RolloutTargets) -> Learner:
    """Moves the return scale, and the heads with it: no prediction changes (PopArt)."""
    old = learner.return_scale
    new = learner.config.return_scale.update(old, targets.target, targets.weight)
    critic = learner.config.critic
    params = networks.map_value_heads(
        learner.params, lambda kernel, bias: critic.rescale(kernel, bias, old, new)
    )
    return dataclasses.replace(learner, params=params, return_scale=new)


def _observe_moments(
    learner: Learner, steps: Trajectory, weight: Array
) -> tuple[Learner, Metrics]:
    """Merges the rollout into the observation moments, after it was learned from.

    Attacks lead far away: they would widen the moments, and so their own ball. The
    moments are therefore those of environments without an opponent, if any of these is
    learned from.
    """
    config = learner.config
    if config.obs_clip is None:
        return learner, {}
    if config.opponent is not None:
        plays = config.opponent.plays(config.num_envs)
        spared = sources(config) & ~plays
        weight = jnp.where(plays & spared.any(), 0.0, weight)
    new = observations.update(learner.obs_moments, steps.raw_obs, weight)
    drift = observations.drift(learner.obs_moments, new)
    return dataclasses.replace(learner, obs_moments=new), drift


def _count(
    counters: Counters, steps: Trajectory, result: UpdateResult, episodes: Array
) -> Counters:
    failed = (result.taken == 0) & ((result.failed > 0) | ~steps.valid.any())
    return Counters(
        updates=counting.add(counters.updates),
        skipped_steps=counting.add(counters.skipped_steps, result.failed),
        quarantined=counting.add(counters.quarantined, jnp.sum(~steps.valid)),
        failure_streak=jnp.where(failed, counting.add(counters.failure_streak), 0),
        episodes=counting.add(counters.episodes, episodes),
    )
