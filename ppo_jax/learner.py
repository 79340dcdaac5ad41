"""Learning: how a run begins, and one iteration of PPO.

An iteration is a rollout, its advantages, and epochs of minibatch steps over it. All
functions are those of one member; a population maps them.
"""

import dataclasses
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax

from ppo_jax import diagnostics, moments, returns, rollout, tree
from ppo_jax.component import as_arrays
from ppo_jax.networks import Network
from ppo_jax.objective import objective
from ppo_jax.state import Batch, Counters, Learner, Run, Transition
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
        obs_moments=() if config.obs_clip is None else moments.init(obs),
    )
    zero = jnp.zeros((), jnp.int32)
    return Run(learner, actor, key, Counters(zero, zero, zero, zero))


def iteration(run: Run, progress: Array) -> tuple[Run, Metrics]:
    """One update of PPO.

    Args:
        run: One member.
        progress: Share of the training that is done, in [0, 1]; schedules follow it.

    Returns:
        The run afterwards, and metrics `[]` with the same keys every time.
    """
    key, key_rollout, key_update = jax.random.split(run.key, 3)
    actor, steps, carries = rollout.unroll(run.learner, run.actor, key_rollout)
    advantage, clipped = advantages(run.learner.config, steps)
    target = advantage + steps.value
    normalized, zero_variance = returns.standardize(advantage, steps.weight)
    batch = chunks(run.learner.config, steps, normalized, target, carries)
    learner, sums, step_metrics = _update(run.learner, batch, key_update, progress)
    learner, drift = _observe_moments(learner, steps)
    metrics = {
        **diagnostics.rollout_metrics(steps),
        **diagnostics.target_metrics(steps, advantage, target),
        **step_metrics,
        **drift,
        "train/gae_clip_count": clipped.sum(),
        "train/advantages_zero_std": zero_variance.astype(jnp.float32),
        **learner.config.optimizer.metrics(learner.opt_state),
        "train/learning_rate": learner.config.optimizer.step_size(progress),
    }
    counters = _count(run.counters, steps, sums)
    metrics["error/failure_streak"] = counters.failure_streak
    return Run(learner, actor, key, counters), metrics


def advantages(config: Any, steps: Transition) -> tuple[Array, Array]:
    """Generalised advantages `[T, B]`, and where they had to be clipped.

    A quarantined step has advantage 0 and stops the trace: the step before it is
    valued by the critic alone.
    """
    r_t = jnp.where(steps.valid, steps.reward, steps.value)
    discount = config.gamma * (steps.valid & ~steps.terminated)
    trace = config.gamma * config.gae_lambda * (steps.valid & ~steps.last)
    return returns.gae(r_t, discount, trace, steps.value, steps.next_value)


def chunks(
    config: Any, steps: Transition, advantage: Array, target: Array, carries: Carry
) -> Batch:
    """The rollout as chunks of L steps, leaves `[K, L, ...]`, carries `[K, ...]`."""

    def cut(x):
        x = x.reshape(-1, config.chunk, *x.shape[1:])
        return x.swapaxes(1, 2).reshape(-1, config.chunk, *x.shape[3:])

    return Batch(
        *jax.tree.map(
            cut,
            (
                steps.obs,
                steps.reset,
                steps.action,
                steps.log_prob,
                steps.action_mask,
                advantage,
                target,
                steps.weight,
            ),
        ),
        carry=tree.merge_leading(carries),
    )


class _Trainee(NamedTuple):
    """What minibatch steps change."""

    params: PyTree
    opt_state: PyTree


def _update(
    learner: Learner, batch: Batch, key: Key, progress: Array
) -> tuple[Learner, Metrics, Metrics]:
    """Epochs of minibatch steps; returns the sums of flags and mean metrics."""
    config = learner.config
    network = config.build()
    num_chunks = batch.weight.shape[0]

    def step(trainee, inputs):
        order, key = inputs
        return _minibatch_step(learner, network, batch, trainee, order, key, progress)

    def epoch(trainee, key):
        keys = jax.random.split(key, 1 + config.num_minibatches)
        order = jnp.argsort(jax.random.bits(keys[0], (num_chunks,)))
        order = order.reshape(config.num_minibatches, -1)
        return jax.lax.scan(step, trainee, (order, keys[1:]))

    trainee = _Trainee(learner.params, learner.opt_state)
    keys = jax.random.split(key, config.num_epochs)
    trainee, (flags, metrics) = jax.lax.scan(epoch, trainee, keys)
    sums = jax.tree.map(jnp.sum, flags)
    taken = flags["taken"].astype(jnp.float32)
    means = {
        name: jnp.sum(jnp.where(flags["taken"], value, 0.0))
        / jnp.maximum(taken.sum(), 1)
        for name, value in metrics.items()
    }
    errors = {name: value for name, value in sums.items() if name.startswith("error/")}
    means |= errors | {
        "train/n_minibatches_done": sums["taken"],
        "train/n_epochs_completed": flags["taken"].any(axis=1).sum(),
        "warn/empty_epoch": (~(batch.weight > 0).any()).astype(jnp.float32),
    }
    learner = dataclasses.replace(
        learner, params=trainee.params, opt_state=trainee.opt_state
    )
    return learner, sums, means


def _minibatch_step(
    learner: Learner,
    network: Network,
    batch: Batch,
    trainee: _Trainee,
    order: Array,
    key: Key,
    progress: Array,
) -> tuple[_Trainee, tuple[Metrics, Metrics]]:
    """One optimiser step; a no-op if anything about it is not finite."""
    config = learner.config
    grads, loss, metrics, weight = _gradients(
        config, network, trainee.params, batch, order
    )
    norms = diagnostics.gradient_norms(grads)
    nan = metrics.pop("error/log_ratio_nan_count")
    inf = metrics.pop("error/log_ratio_inf_count")
    finite_loss = jnp.isfinite(loss)
    finite_grad = jnp.isfinite(norms["train/grad_norm_pre_clip"])
    finite = finite_loss & finite_grad & (nan + inf == 0)
    taken = finite & (weight > 0)
    updates, opt_state = config.optimizer.transformation().update(
        grads, trainee.opt_state, trainee.params, key=key
    )
    step_size = config.optimizer.step_size(progress)
    updates = jax.tree.map(lambda u: -step_size * u, updates)
    stepped = _Trainee(optax.apply_updates(trainee.params, updates), opt_state)
    flags = {
        "taken": taken,
        "failed": ~finite,
        "error/log_ratio_nan_count": nan,
        "error/log_ratio_inf_count": inf,
        "error/nonfinite_loss": ~finite_loss,
        "error/nonfinite_grad": ~finite_grad,
        "error/skipped_steps": ~finite,
    }
    metrics |= norms | {"train/loss": loss}
    return tree.where(taken, stepped, trainee), (flags, metrics)


def _gradients(
    config: Any, network: Network, params: PyTree, batch: Batch, order: Array
) -> tuple[PyTree, Array, Metrics, Array]:
    """Weighted mean over a minibatch of gradients, loss and metrics; its weight."""

    def part(order):
        rows = gather(batch, order)
        (loss, sums), grads = jax.value_and_grad(objective, has_aux=True)(
            params, network, config.terms, rows
        )
        return grads, loss, sums, rows.weight.sum()

    if config.num_microbatches == 1:
        grads, loss, sums, weight = part(order)
    else:
        parts = jax.lax.map(part, order.reshape(config.num_microbatches, -1))
        grads, loss, sums, weight = jax.tree.map(lambda x: x.sum(axis=0), parts)
    total = jnp.maximum(weight, moments.TINY)
    grads, loss = jax.tree.map(lambda x: x / total, (grads, loss))
    means = {
        name: value if name.startswith("error/") else value / total
        for name, value in sums.items()
    }
    return grads, loss, means, weight


def gather(batch: Batch, order: Array) -> Batch:
    """Chunks by index, time-major `[L, b, ...]`."""
    carry = tree.take(batch.carry, order)
    rows = tree.take(batch._replace(carry=()), order)
    return jax.tree.map(lambda x: x.swapaxes(0, 1), rows)._replace(carry=carry)


def _observe_moments(learner: Learner, steps: Transition) -> tuple[Learner, Metrics]:
    """Merges the rollout into the observation moments, after it was learned from."""
    if learner.config.obs_clip is None:
        return learner, {}
    new = moments.update(learner.obs_moments, steps.raw_obs, steps.weight)
    drift = moments.drift(learner.obs_moments, new)
    return dataclasses.replace(learner, obs_moments=new), drift


def _count(counters: Counters, steps: Transition, sums: Metrics) -> Counters:
    failed = (sums["taken"] == 0) & (sums["failed"] > 0)
    return Counters(
        updates=counters.updates + 1,
        skipped_steps=counters.skipped_steps + sums["failed"],
        quarantined=counters.quarantined + jnp.sum(~steps.valid),
        failure_streak=jnp.where(failed, counters.failure_streak + 1, 0),
    )
