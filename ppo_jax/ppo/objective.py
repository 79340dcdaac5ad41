"""The objective: Σ over terms and examples of weight · loss, divided by the weight.

Sums and weights are kept apart, so that microbatches add up to the same objective.
"""

import functools
from collections.abc import Callable

import jax
import jax.numpy as jnp

from ppo_jax.arrays.calls import apart
from ppo_jax.attacks.adversaries import Replay
from ppo_jax.config import Config
from ppo_jax.metrics import LARGEST
from ppo_jax.metrics.own import named, rows_of
from ppo_jax.metrics.rows import match
from ppo_jax.networks import Network
from ppo_jax.networks.distributions import Distribution
from ppo_jax.ppo import diagnostics
from ppo_jax.state import Batch
from ppo_jax.terms import Context, Forward
from ppo_jax.terms.metrics import POLICY
from ppo_jax.terms.term import evaluated
from ppo_jax.types import Array, Metrics, Params, PyTree

AdversarialForward = Callable[[Replay], Forward]
"""A function from a `Replay` to the forward pass that the terms see."""


def forward(network: Network, params: Params, batch: Batch) -> Forward:
    """Replays chunks from their stored carries; see `Batch` for shapes."""
    mask = None if isinstance(batch.action_mask, tuple) else batch.action_mask
    out = network.apply(params, batch.carry, batch.obs, batch.reset, mask)
    log_ratio = out.policy.log_prob(batch.action) - batch.log_prob
    return Forward(out.policy, out.value, log_ratio)


def objective(
    params: Params,
    network: Network,
    config: Config,
    contexts: tuple[Context, ...],
    batch: Batch,
    look: AdversarialForward | None = None,
) -> tuple[Array, Metrics]:
    """Sums weighted losses and metrics over a minibatch.

    Args:
        params: Parameters to differentiate by.
        network: The network.
        config: The experiment, whose terms are the summands.
        contexts: Context of each term, without its prepared data, which is in the
            batch.
        batch: The minibatch, time-major.
        look: Forward pass of an adversary; None: that of the true observations.

    Returns:
        The weighted sum of losses `[]`, and weighted sums or maxima of metrics `[]`,
        with counts of log-ratios that are not finite.
    """
    replay = functools.partial(forward, network, params)
    out = replay(batch) if look is None else look(replay)
    active = batch.weight > 0
    total = jnp.zeros((), jnp.float32)
    shift = jax.lax.stop_gradient((out.log_ratio, batch.old_policy, out.policy))
    metrics, counts = apart(_shifted)(*shift, active)
    if out.attacked is not None:
        metrics |= named("Config.adversary.forward", out.attacked.metrics)
    for term, context, prepared in zip(
        config.terms, contexts, batch.prepared, strict=True
    ):
        policy = functools.partial(_policy, network, params, context.observe)
        context = context._replace(prepared=prepared, policy=policy)
        loss, own = evaluated(term, out, batch, context)
        total += _weighted_sum(loss, batch.weight)
        metrics |= own
    largest = peaks(config, metrics)
    metrics = jax.lax.stop_gradient(metrics)
    sums = {name: _largest(metrics.pop(name), batch.weight) for name in largest}
    rows = jnp.stack(list(metrics.values()))  # So that one kernel sums all of them.
    summed = jax.vmap(_weighted_sum, (0, None))(rows, batch.weight)
    sums |= counts | dict(zip(metrics, summed, strict=True))
    if out.attacked is not None:
        sums["sa_ppo/num_adversarial"] = jnp.sum(active & out.attacked.mask)
        sums["sa_ppo/num_clean"] = jnp.sum(active & ~out.attacked.mask)
    return total, sums


def peaks(config: Config, metrics: Metrics) -> list[str]:
    """Returns the metrics that are maxima over examples and optimiser steps."""
    rows = (*POLICY, *rows_of(config))
    patterns = [row.name for row in rows if row.reduction is LARGEST]
    return [
        name
        for name in metrics
        if any(match(pattern, name) is not None for pattern in patterns)
    ]


def _policy(
    network: Network, params: Params, observe: Callable[[PyTree], PyTree], obs: PyTree
) -> Distribution:
    """Returns the policy for episodes that begin with the first observation.

    The leaves of `obs` are `[L, n, ...]`.
    """
    length, count = jax.tree.leaves(obs)[0].shape[:2]
    carry = network.initial_carry(count)
    reset = jnp.zeros((length, count), bool)
    return network.apply(params, carry, observe(obs), reset).policy


def _shifted(
    log_ratio: Array, old: PyTree, new: Distribution, active: Array
) -> tuple[Metrics, Metrics]:
    """Returns metrics of the policy's shift per example, and counts of bad ratios.

    Log-ratios are bad if they are NaN or infinite.
    """
    return diagnostics.shift_metrics(log_ratio, old, new), {
        "error/log_ratio_nan_count": jnp.sum(active & jnp.isnan(log_ratio)),
        "error/log_ratio_inf_count": jnp.sum(active & jnp.isinf(log_ratio)),
    }


def _weighted_sum(x: Array, weight: Array) -> Array:
    return jnp.sum(jnp.where(weight > 0, weight * x, 0.0))


def _largest(x: Array, weight: Array) -> Array:
    return jnp.max(jnp.where(weight > 0, x, -jnp.inf))
