"""Metrics of a rollout and of gradients.

The rows in `ppo.metrics` say what each of them means.
"""

import jax
import jax.numpy as jnp

from ppo_jax import losses, returns
from ppo_jax.arrays.packing import pack
from ppo_jax.controllers.divergence import K1, K3, ClosedForm, Divergence
from ppo_jax.networks.distributions import Distribution
from ppo_jax.normalization import order
from ppo_jax.normalization.observations import TINY
from ppo_jax.normalization.return_scale import ReturnScale
from ppo_jax.state import Trajectory
from ppo_jax.types import Array, Carry, Metrics, PyTree

GROUPS = {
    "actor_mlp": ("actor", "torso"),
    "actor_lstm": ("actor", "memory"),
    "policy_head": ("actor", "head"),
    "log_std": ("actor", "log_std"),
    "critic_mlp": ("critic", "torso"),
    "critic_lstm": ("critic", "memory"),
    "head": ("critic", "heads"),
    "other": (),
}
"""Groups of parameters, by the names that a path to them contains.

A parameter belongs to the first group that fits.
"""


def gradient_norms(grads: PyTree) -> tuple[Array, Metrics]:
    """Returns the global norm of gradients `[]`, and norms as metrics.

    The metrics are the global norm, those of disjoint groups, and those of critics.
    """
    groups: dict[tuple[str, bool], list[Array]] = {}
    for path, leaf in jax.tree_util.tree_flatten_with_path(grads)[0]:
        own = _is_each_critic_s_own(path)
        rows = leaf.reshape(leaf.shape[0] if own and leaf.ndim else 1, -1)
        groups.setdefault((group_of(path), own), []).append(rows)
    squares, critics = {}, jnp.zeros(0)
    for (group, own), rows in groups.items():
        # Leaves that are packed side by side are one slice, and one sum.
        each = (jnp.concatenate(rows, axis=1) ** 2).sum(axis=1)
        parts = {group: each.sum()}
        if own:
            critics = critics + each if critics.size else each
            if group == "head":
                parts = {f"head{i}": x for i, x in enumerate(each, start=1)}
        for name, part in parts.items():
            squares[name] = squares.get(name, 0.0) + part
    norms = {f"train/grad_norm/{group}": square for group, square in squares.items()}
    for i, square in enumerate(critics, start=1):
        norms[f"train/critic{i}_grad_norm"] = square
    whole = "train/grad_norm_pre_clip"
    norms[whole] = sum(squares.values())
    sizes = jax.tree.map(jnp.sqrt, pack(norms)).unpack()
    return sizes[whole], sizes


def group_of(path: tuple) -> str:
    """Returns the group of the parameter at a path.

    >>> keys = [jax.tree_util.DictKey(name) for name in ("actor", "head", "kernel")]
    >>> group_of(tuple(keys))
    'policy_head'
    """
    names = {key.key for key in path}
    return next(group for group, parts in GROUPS.items() if names.issuperset(parts))


def _is_each_critic_s_own(path: tuple) -> bool:
    """Returns whether a parameter has a leading axis of critics."""
    return {"critic", "heads"} <= {key.key for key in path}


def rollout_metrics(steps: Trajectory) -> Metrics:
    """Returns sums over ended episodes and over costs, for means on the host."""
    ended = steps.last & jnp.isfinite(steps.episode_return)
    count = ended.sum()
    total = jnp.where(ended, steps.episode_return, 0.0).sum()
    around = steps.episode_return - total / jnp.maximum(count, 1)
    weighs, finite = steps.weight > 0, jnp.isfinite(steps.cost)
    costs = weighs & finite
    return {
        "episodes/count": count,
        "episodes/return_sum": total,
        "episodes/return_square_sum": jnp.sum(jnp.where(ended, around**2, 0.0)),
        "episodes/length_sum": jnp.sum(jnp.where(ended, steps.episode_length, 0.0)),
        "costs/count": costs.sum(),
        "costs/sum": jnp.sum(jnp.where(costs, steps.cost, 0.0)),
        "costs/median": order.median(steps.cost, costs),
        "costs/invalid": jnp.sum(weighs & ~finite),
        "error/quarantined_steps": jnp.sum(~steps.valid),
    }


def target_metrics(
    value: Array,
    advantage: Array,
    target: Array,
    weight: Array,
    held_out: Array | None,
    scale: ReturnScale,
) -> Metrics:
    """Returns statistics of advantages before normalisation, and of the critic.

    Args:
        value: Predictions `[T, B]`, in units of the return scale.
        advantage: Advantages `[T, B]`, in units of rewards.
        target: λ-returns `[T, B]`, in units of rewards.
        weight: Weights of the steps that are learned from, `[T, B]`.
        held_out: Weights of the steps that are held out, `[T, B]`, if any are.
        scale: The return scale.
    """
    value, target_mean = scale.decode(value), average(target, weight)
    size = jnp.maximum(jnp.abs(target_mean), TINY)
    return explained(target, value, weight, held_out) | {
        "train/advantages_mean_raw": average(advantage, weight),
        "train/advantages_std_raw": deviation(advantage, weight),
        "train/target_return_mean": target_mean,
        "train/target_return_variation": deviation(target, weight) / size,
        "train/value_pred_mean": average(value, weight),
        "train/return_scale_mean": scale.mean,
        "train/return_scale_std": scale.std,
    }


def explained(
    target: Array, value: Array, weight: Array, held_out: Array | None, when: str = ""
) -> Metrics:
    """Returns the explained variance of steps learned from and, if any, held out."""
    return {
        f"train/explained_variance{name}{when}": returns.explained_variance(
            target, value, w
        )
        for name, w in (("", weight), ("_holdout", held_out))
        if w is not None
    }


def average(x: Array, weight: Array, axis: tuple[int, ...] | None = None) -> Array:
    """Returns the weighted mean over axes, NaN without any weight.

    Where the weight is 0, `x` may be anything.
    """
    total = weight.sum(axis)
    mean = jnp.sum(jnp.where(weight > 0, weight * x, 0.0), axis)
    mean /= jnp.maximum(total, TINY)
    return jnp.where(total > 0, mean, jnp.nan)


def deviation(x: Array, weight: Array) -> Array:
    """Returns the unbiased weighted deviation `[]`; NaN without weight."""
    # Squares of shares neither overflow nor vanish.
    weight = weight / jnp.maximum(weight.max(), TINY)
    total = jnp.maximum(weight.sum(), TINY)
    freedom = jnp.maximum(total - jnp.sum(weight**2) / total, TINY)
    return jnp.sqrt(jnp.sum(weight * (x - average(x, weight)) ** 2) / freedom)


def scaled_metrics(advantage: Array, flat: Array, weight: Array) -> Metrics:
    """Returns statistics of the advantages that are learned from, `[T, B]`.

    Args:
        advantage: Scaled advantages.
        flat: Whether an advantage was set to 0 because advantages do not vary.
        weight: Weights of the advantages.
    """
    mean = average(advantage, weight)
    largest = jnp.max(jnp.where(weight > 0, jnp.abs(advantage), 0.0))
    return {
        "train/advantages_norm_mean": mean,
        "train/advantages_norm_std": jnp.sqrt(average((advantage - mean) ** 2, weight)),
        "train/advantages_norm_max_abs": jnp.where(weight.any(), largest, jnp.nan),
        "train/advantages_zero_std": average(flat, weight),
    }


def carry_metrics(carry: Carry) -> Metrics:
    """Returns size and spread of a memory's state `[B, ...]`, per layer.

    Without a memory there are no metrics.
    """
    metrics = {}
    for owner, layers in dict(carry).items():
        for i, layer in enumerate(layers):
            state = jnp.concatenate(jax.tree.leaves(layer), axis=-1)
            name = f"lstm/{owner}_layer{i}"
            metrics |= {
                f"{name}_norm": jnp.linalg.norm(state, axis=-1).mean(),
                f"{name}_mean": state.mean(),
                f"{name}_std": state.std(),
            }
    return metrics


def shift_metrics(log_ratio: Array, old: PyTree, new: Distribution) -> Metrics:
    """Returns metrics of the policy's distance from the one that acted, per example.

    Args:
        log_ratio: ln π_new(a) − ln π_old(a) `[...]`.
        old: The policy that acted; `()` if it was not stored.
        new: The policy that learns.
    """
    limit = losses.LOG_RATIO_LIMIT
    extent = jnp.abs(log_ratio)
    ratio = jnp.exp(jnp.clip(log_ratio, -limit, limit))
    ways: tuple[Divergence, ...] = (K1(), K3())
    if jax.tree.leaves(old):
        ways += (ClosedForm(),)
    return {way.metric: way(log_ratio, old, new) for way in ways} | {
        "train/ratio_mean": ratio,
        "train/ratio_var": (ratio - 1.0) ** 2,
        "train/log_ratio_max_abs": extent,
        "train/log_ratio_extreme_fraction": (extent > 10).astype(jnp.float32),
        "train/log_ratio_clamp_frac": (extent > limit).astype(jnp.float32),
    }
