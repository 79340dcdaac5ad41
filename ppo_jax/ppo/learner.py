"""Learning: how a run begins, and one iteration of PPO.

An iteration is a rollout, its advantages, and epochs of minibatch steps over it. All
functions are those of one member; a population maps them.
"""

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp

from ppo_jax import networks, returns, tree
from ppo_jax.component import as_arrays, replace_at
from ppo_jax.critics import pessimistic
from ppo_jax.normalization import observations, return_scale
from ppo_jax.normalization.return_scale import ReturnScale
from ppo_jax.ppo import counting, diagnostics, rollout
from ppo_jax.ppo.update import Outcome, update
from ppo_jax.schedules import Progress
from ppo_jax.state import Batch, Counters, Learner, Run, Transition
from ppo_jax.terms import Rollout
from ppo_jax.terms.term import prepared_by, remembered_by
from ppo_jax.types import Array, Carry, Key, Metrics, PyTree


def init(config: Any, key: Key) -> Run:
    """A run before its first update.

    Args:
        config: The experiment, without what only the host reads.
        key: The run's key.
    """
    config = as_arrays(config)
    key, key_params, key_envs = jax.random.split(key, 3)
    network = config.build()
    params = network.init(key_params)
    actor = rollout.start(config.env, network, config.num_envs, key_envs)
    obs = jax.tree.map(lambda x: x[0], actor.obs)
    learner = Learner(
        params=params,
        opt_state=config.optimizer.transformation().init(params),
        config=config,
        obs_moments=() if config.obs_clip is None else observations.init(obs),
        return_scale=return_scale.identity(),
        memories=tuple(term.init() for term in config.terms),
        stop_memory=config.early_stop.init(),
    )
    zero = jnp.zeros((), jnp.int32)
    return Run(learner, actor, key, Counters(zero, zero, zero, zero, zero))


def iteration(run: Run, progress: Progress) -> tuple[Run, Metrics]:
    """One update of PPO.

    Args:
        run: One member.
        progress: How far training is; schedules follow it.

    Returns:
        The run afterwards, and metrics `[]` with the same keys every time.
    """
    key, key_rollout, key_update = jax.random.split(run.key, 3)
    actor, steps, carries = rollout.unroll(
        _opposed(run.learner, progress.course), run.actor, key_rollout
    )
    batch, seen, metrics, said = _batch(run.learner, steps, carries)
    learner, outcome = update(run.learner, batch, key_update, progress)
    metrics |= diagnostics.rollout_metrics(steps) | outcome.metrics
    metrics |= diagnostics.carry_metrics(actor.carry)
    metrics |= _appraise(learner, steps, carries, seen)
    learner = _adapt(learner, seen, outcome, metrics, said)
    learner, drift = _observe_moments(learner, steps, seen.weight)
    metrics |= drift | learner.config.optimizer.metrics(learner.opt_state)
    metrics |= learner.config.optimizer.rate_metrics(progress.done)
    counters = _count(run.counters, steps, outcome, metrics["episodes/count"])
    metrics["error/failure_streak"] = counters.failure_streak
    return Run(learner, actor, key, counters), metrics


def _opposed(learner: Learner, progress: Array) -> Learner:
    """The learner whose opponent attacks with the radius in force."""
    opponent = learner.config.opponent
    if opponent is None:
        return learner
    eps = opponent.attack.at(progress).eps
    config = replace_at(learner.config, "opponent.attack.eps", eps)
    return dataclasses.replace(learner, config=config)


def _batch(
    learner: Learner, steps: Transition, carries: Carry
) -> tuple[Batch, Rollout, Metrics, list[Metrics]]:
    """What is learned from a rollout, all that needs the whole of it included.

    Returns:
        The batch, what terms saw of the rollout, all metrics, and those of each term.
    """
    config, scale = learner.config, learner.return_scale
    learned = jnp.arange(config.num_envs) < config.num_envs - config.holdout_envs
    weight = jnp.where(learned[None], steps.weight, 0.0)
    advantage, clipped = advantages(config, steps, scale)
    target = advantage + scale.decode(steps.value)
    metrics = diagnostics.target_metrics(
        steps.value, advantage, target, weight, _held_out(config, steps, weight), scale
    )
    normalized, unit = advantage, jnp.ones(())
    if config.standardization is not None:
        normalized, flat = config.standardization(advantage, weight, steps.group)
        metrics |= diagnostics.scaled_metrics(normalized, flat, weight)
        std = metrics["train/advantages_std_raw"]
        unit = jnp.where((flat | (weight == 0)).all(), jnp.inf, std)
    seen = Rollout(steps.reward, target, weight, unit)
    prepared, said = [], []
    for term, memory in zip(config.terms, learner.memories, strict=True):
        examples, own = prepared_by(term, memory, seen)
        prepared.append(examples)
        said.append(own)
        metrics |= own
    metrics["train/gae_clip_count"] = clipped.sum()
    steps = steps._replace(weight=weight)
    target = scale.encode(target)
    metrics |= {
        name: diagnostics.average(each, weight)
        for name, each in config.critic.target_metrics(target).items()
    }
    batch = chunks(config, steps, normalized, target, carries, tuple(prepared))
    return batch, seen, metrics, said


def advantages(
    config: Any, steps: Transition, scale: ReturnScale | None = None
) -> tuple[Array, Array]:
    """Generalised advantages `[T, B]` in units of rewards, and where they were clipped.

    A quarantined step has advantage 0 and stops the trace: the step before it is
    valued by the critic alone.
    """
    scale = return_scale.identity() if scale is None else scale
    value, next_value = scale.decode(steps.value), scale.decode(steps.next_value)
    r_t = jnp.where(steps.valid, steps.reward, value)
    discount = config.gamma * (steps.valid & ~steps.terminated)
    trace = config.gamma * config.gae_lambda * (steps.valid & ~steps.last)
    return returns.gae(r_t, discount, trace, value, next_value)


def chunks(
    config: Any,
    steps: Transition,
    advantage: Array,
    target: Array,
    carries: Carry,
    prepared: tuple[PyTree, ...] | None = None,
) -> Batch:
    """The rollout as chunks of L steps, leaves `[K, L, ...]`, carries `[K, ...]`."""

    def cut(x):
        x = x.reshape(-1, config.chunk, *x.shape[1:])
        return x.swapaxes(1, 2).reshape(-1, config.chunk, *x.shape[3:])

    rows = Batch(
        obs=steps.obs,
        reset=steps.reset,
        action=steps.action,
        log_prob=steps.log_prob,
        action_mask=steps.action_mask,
        advantage=advantage,
        target=target,
        weight=steps.weight,
        old_value=steps.old_value,
        old_policy=steps.old_policy,
        prepared=((),) * len(config.terms) if prepared is None else prepared,
        carry=(),
    )
    return jax.tree.map(cut, rows)._replace(carry=tree.merge_leading(carries))


def _held_out(config: Any, steps: Transition, weight: Array) -> Array | None:
    """Weights of what is held out `[T, B]`, if anything is."""
    return steps.weight - weight if config.holdout_envs else None


def _appraise(
    learner: Learner, steps: Transition, carries: Carry, seen: Rollout
) -> Metrics:
    """What the critics say of the rollout after they learned from it."""
    config, scale = learner.config, learner.return_scale
    if config.appraisal is None:
        return {}
    carry = jax.tree.map(lambda x: x[0], carries)
    out = config.build().apply(learner.params, carry, steps.obs, steps.reset)
    before, after = (scale.decode(x) for x in (steps.value, pessimistic(out.value)))
    held_out = _held_out(config, steps, seen.weight)
    return config.appraisal(
        seen.target, before, after, seen.weight, held_out, steps.group
    )


def _adapt(
    learner: Learner,
    seen: Rollout,
    outcome: Outcome,
    metrics: Metrics,
    said: list[Metrics],
) -> Learner:
    """Moves what steers the next update, unless no step of this one was taken.

    A term hears what it said itself, where several give a metric the same name.
    """
    config, old = learner.config, learner
    memories = tuple(
        remembered_by(term, memory, metrics | own)
        for term, memory, own in zip(config.terms, learner.memories, said, strict=True)
    )
    stop = config.early_stop.update(learner.stop_memory, metrics, config.num_epochs)
    learner = dataclasses.replace(learner, memories=memories, stop_memory=stop)
    if config.return_scale is not None:
        learner = _rescale(learner, seen)
    return tree.where(outcome.taken > 0, learner, old)


def _rescale(learner: Learner, seen: Rollout) -> Learner:
    """Moves the return scale, and the heads with it: no prediction changes (PopArt)."""
    old = learner.return_scale
    new = learner.config.return_scale.update(old, seen.target, seen.weight)
    critic = learner.config.critic
    params = networks.map_value_heads(
        learner.params, lambda kernel, bias: critic.rescale(kernel, bias, old, new)
    )
    return dataclasses.replace(learner, params=params, return_scale=new)


def _observe_moments(
    learner: Learner, steps: Transition, weight: Array
) -> tuple[Learner, Metrics]:
    """Merges the rollout into the observation moments, after it was learned from.

    Attacks lead far away, and would widen the moments and so their own ball: what is
    seen in environments without an opponent counts, if there are any.
    """
    config = learner.config
    if config.obs_clip is None:
        return learner, {}
    if config.opponent is not None:
        plays = config.opponent.plays(config.num_envs)
        weight = jnp.where(plays & ~plays.all(), 0.0, weight)
    new = observations.update(learner.obs_moments, steps.raw_obs, weight)
    drift = observations.drift(learner.obs_moments, new)
    return dataclasses.replace(learner, obs_moments=new), drift


def _count(
    counters: Counters, steps: Transition, outcome: Outcome, episodes: Array
) -> Counters:
    failed = (outcome.taken == 0) & ((outcome.failed > 0) | ~steps.valid.any())
    return Counters(
        updates=counting.add(counters.updates),
        skipped_steps=counting.add(counters.skipped_steps, outcome.failed),
        quarantined=counting.add(counters.quarantined, jnp.sum(~steps.valid)),
        failure_streak=jnp.where(failed, counting.add(counters.failure_streak), 0),
        episodes=counting.add(counters.episodes, episodes),
    )
