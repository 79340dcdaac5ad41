"""Step sizes that follow the policy: shorter after it moved too far, else longer."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import optax
from jax.typing import ArrayLike

from ppo_jax.component import require_number
from ppo_jax.component.bounds import (
    FINITE_AT_LEAST_ONE,
    FINITE_POSITIVE,
    POSITIVE_SHARE,
)
from ppo_jax.types import Array


class ScaleByKlState(NamedTuple):
    """The factor of the last update."""

    scale: Array  # shape=(), dtype=float32.

    VERSION = 1  # Version of the factor's meaning, see `statistics`.


def scale_by_kl(
    target: ArrayLike,
    band: ArrayLike = 2.0,
    step: ArrayLike = 1.5,
    floor: ArrayLike = 0.01,
    cap: ArrayLike = 10.0,
) -> optax.GradientTransformationExtraArgs:
    """Scales updates by a factor that keeps the divergence of policies in a band.

    The factor k begins at 1. Given the divergence `kl` of the policy so far from the
    one that acted, before the update,

        k ← k / step   if kl > target · band,
        k ← k · step   if kl < target / band,

    and the update is scaled by the new k, which is kept within its bounds. A divergence
    that is not finite changes nothing. Put the transformation behind those that
    normalise updates. Before the first step on a batch the divergence is 0, and the
    factor grows.

    Args:
        target: Divergence > 0 in nats that the policy should move by.
        band: Ratio ≥ 1 to the target up to which a divergence is near enough.
        step: Ratio ≥ 1 of a factor to the next one.
        floor: Least factor, in (0, 1].
        cap: Largest factor ≥ 1.

    Returns:
        A `optax.GradientTransformationExtraArgs`, whose update takes the divergence
        `[]` as `kl`. All numbers may be traced.

    Raises:
        ValueError: For a known number out of its range; at an update without a `kl`.

    References:
        Makoviychuk et al., `Isaac Gym <https://arxiv.org/abs/2108.10470>`_, 2021 (the
        rule, as `AdaptiveScheduler` of rl_games); Rudin et al., `Learning to Walk in
        Minutes <https://arxiv.org/abs/2109.11978>`_, 2022 (the numbers, of learning
        rates from 10⁻⁵ to 10⁻² that begin at 10⁻³).

    >>> tx = scale_by_kl(target=0.01)
    >>> one, factors = jnp.ones(()), []
    >>> state = tx.init(one)
    >>> for kl in (0.001, 0.03, 0.03, 0.01):
    ...     update, state = tx.update(one, state, kl=kl)
    ...     factors.append(round(float(update), 3))
    >>> factors
    [1.5, 1.0, 0.667, 0.667]
    """
    require_number("target", target, *FINITE_POSITIVE)
    require_number("band", band, *FINITE_AT_LEAST_ONE)
    require_number("step", step, *FINITE_AT_LEAST_ONE)
    require_number("floor", floor, *POSITIVE_SHARE)
    require_number("cap", cap, *FINITE_AT_LEAST_ONE)

    def init_fn(params):
        return ScaleByKlState(jnp.ones((), jnp.float32))

    def update_fn(updates, state, params=None, kl=None, **extra_args):
        if kl is None:
            raise ValueError("update: expected `kl`, the divergence so far")
        far = jnp.isfinite(kl) & (kl > target * band)
        near = jnp.isfinite(kl) & (kl < target / band)
        scale = jnp.where(far, state.scale / step, state.scale)
        scale = jnp.where(near, scale * step, scale)
        scale = jnp.clip(scale, floor, cap)  # Which may be others by now.
        scale = scale.astype(jnp.float32)
        scaled = jax.tree.map(lambda u: (u * scale).astype(u.dtype), updates)
        return scaled, ScaleByKlState(scale)

    return optax.GradientTransformationExtraArgs(init_fn, update_fn)
