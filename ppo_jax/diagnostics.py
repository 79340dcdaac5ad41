"""Metrics of a rollout and of gradients; they never steer training."""

import jax
import jax.numpy as jnp
import optax

from ppo_jax import losses, returns
from ppo_jax.moments import TINY
from ppo_jax.return_scale import ReturnScale
from ppo_jax.state import Transition
from ppo_jax.types import Array, Metrics, PyTree

GROUPS = {
    "actor_mlp": ("actor", "torso"),
    "actor_lstm": ("actor", "memory"),
    "policy_head": ("actor", "head"),
    "log_std": ("actor", "log_std"),
    "critic_mlp": ("critic", "trunk", "torso"),
    "critic_lstm": ("critic", "memory"),
    "critic_heads": ("critic", "heads"),
}
"""Disjoint groups of parameters: the names that a path to them holds."""


def gradient_norms(grads: PyTree) -> Metrics:
    """Global norm of the gradients, and those of the groups that there are."""
    squares: dict[str, Array] = {}
    for path, leaf in jax.tree_util.tree_flatten_with_path(grads)[0]:
        group = group_of(path)
        squares[group] = squares.get(group, jnp.zeros(())) + jnp.sum(leaf**2)
    return {"train/grad_norm_pre_clip": optax.tree.norm(grads)} | {
        f"train/grad_norm/{group}": jnp.sqrt(square)
        for group, square in squares.items()
    }


def group_of(path: tuple) -> str:
    """The group of the parameter at a path.

    >>> keys = [jax.tree_util.DictKey(name) for name in ("actor", "head", "kernel")]
    >>> group_of(tuple(keys))
    'policy_head'
    """
    names = {key.key for key in path}
    return next(group for group, parts in GROUPS.items() if names.issuperset(parts))


def rollout_metrics(steps: Transition) -> Metrics:
    """Sums over episodes that ended, and over costs, for means on the host."""
    ended = steps.last & jnp.isfinite(steps.episode_return)
    total = jnp.where(ended, steps.episode_return, 0.0)
    costs = jnp.isfinite(steps.cost) & (steps.weight > 0)
    return {
        "episodes/count": ended.sum(),
        "episodes/return_sum": total.sum(),
        "episodes/return_square_sum": jnp.sum(total**2),
        "episodes/length_sum": jnp.sum(jnp.where(ended, steps.episode_length, 0)),
        "costs/count": costs.sum(),
        "costs/sum": jnp.sum(jnp.where(costs, steps.cost, 0.0)),
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
    """Statistics of the advantages before they were normalised, and of the critic.

    Args:
        value: Predictions `[T, B]`, in units of the return scale.
        advantage: Advantages `[T, B]`, in units of rewards.
        target: λ-returns `[T, B]`, in units of rewards.
        weight: Weights of what is learned from `[T, B]`.
        held_out: Weights of what is held out `[T, B]`, if anything is.
        scale: The return scale.
    """
    total = jnp.maximum(weight.sum(), TINY)
    mean = jnp.sum(weight * advantage) / total
    variance = jnp.sum(weight * (advantage - mean) ** 2) / total
    value = scale.decode(value)
    explained = {
        f"train/explained_variance{name}": returns.explained_variance(target, value, w)
        for name, w in (("", weight), ("_holdout", held_out))
        if w is not None
    }
    return explained | {
        "train/advantages_mean_raw": mean,
        "train/advantages_std_raw": jnp.sqrt(variance),
        "train/target_return_mean": jnp.sum(weight * target) / total,
        "train/value_pred_mean": jnp.sum(weight * value) / total,
        "train/return_scale_mean": scale.mean,
        "train/return_scale_std": scale.std,
    }


def shift_metrics(log_ratio: Array) -> Metrics:
    """How far the policy moved from the one that acted, per example."""
    limit = losses.LOG_RATIO_LIMIT
    extent = jnp.abs(log_ratio)
    return {
        "train/approx_kl": losses.approx_kl(log_ratio),
        "train/approx_kl_k1": losses.approx_kl_k1(log_ratio),
        "train/ratio_mean": jnp.exp(jnp.clip(log_ratio, -limit, limit)),
        "train/log_ratio_extreme_fraction": (extent > 10).astype(jnp.float32),
        "train/log_ratio_clamp_frac": (extent > limit).astype(jnp.float32),
    }
