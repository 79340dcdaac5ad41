"""Losses of a critic that predicts probabilities of fixed returns, the atoms (C51).

Atoms are evenly spaced and ascend, `[N]` with N ≥ 2. An outcome between two atoms is
split: each gets a share proportional to the outcome's distance from the other. An
outcome outside the atoms' range counts as the outermost atom.
"""

import jax
import jax.numpy as jnp
from jax.typing import ArrayLike

from ppo_jax.arrays.weights import weighted
from ppo_jax.component import require
from ppo_jax.errors import require_shape
from ppo_jax.losses.discrete import Law
from ppo_jax.types import Array

MIN_PROB = 1e-8
"""Least probability of a projected law before the logarithm; lower ones are raised."""


def evenly_spaced_atoms(num_atoms: int, v_min: ArrayLike, v_max: ArrayLike) -> Array:
    """Returns atoms from `v_min` to `v_max`, float32 `[N]`; the ends may be traced.

    Raises:
        ValueError: If there are fewer than two.

    >>> evenly_spaced_atoms(5, -1.0, 1.0).tolist()
    [-1.0, -0.5, 0.0, 0.5, 1.0]
    """
    require(num_atoms >= 2, "num_atoms", num_atoms, "at least 2")
    return jnp.linspace(v_min, v_max, num_atoms, dtype=jnp.float32)


def two_hot(target: Array, atoms: Array) -> Array:
    """Returns the law on the two atoms around the target whose mean is the target.

    Args:
        target: Returns `[...]`; NaN and ±∞ give NaN.
        atoms: Atoms `[N]`.

    Returns:
        Probabilities, float32 `[..., N]`, at most two of them above 0.

    >>> atoms = evenly_spaced_atoms(5, -1.0, 1.0)
    >>> print(two_hot(jnp.array([0.125, -3.0]), atoms))
    [[0.   0.   0.75 0.25 0.  ]
     [1.   0.   0.   0.   0.  ]]
    """
    return _kernel(_position(target, atoms)[..., None], atoms)


def project(law: Law, atoms: Array) -> Array:
    """Projects a law with any outcomes onto the atoms.

    mⱼ = Σᵢ pᵢ max(0, 1 − |clip(zᵢ) − z̄ⱼ| / Δz), which keeps the mean of outcomes
    within the support. It computes N weights per outcome: a loss against one return
    needs `shifted_cross_entropy` only.

    Args:
        law: Outcomes z and probabilities p `[..., M]`.
        atoms: Atoms z̄ `[N]`.

    Returns:
        Probabilities m, float32 `[..., N]`.

    References:
        Bellemare et al., `A Distributional Perspective on Reinforcement Learning
        <https://arxiv.org/abs/1707.06887>`_, 2017, equation 7.

    >>> atoms = evenly_spaced_atoms(5, -1.0, 1.0)
    >>> law = Law(atoms + 0.25, jnp.array([0.0, 0.25, 0.5, 0.25, 0.0]))
    >>> print(project(law, atoms))
    [0.    0.125 0.375 0.375 0.125]
    """
    weights = _kernel(_position(law.outcomes, atoms)[..., None], atoms)
    probs = jnp.asarray(law.probs, jnp.float32)
    return jnp.einsum("...i,...ij->...j", probs, weights, precision="highest")


def cross_entropy_loss(logits: Array, target: Array, atoms: Array) -> Array:
    """Returns the cross-entropy of a categorical prediction against a two-hot target.

    −Σⱼ mⱼ ln softmax(logits)ⱼ, whose gradient is softmax(logits) − m. A uniform
    prediction costs ln N.

    Args:
        logits: Predictions `[..., N]`, −∞ where the probability is 0.
        target: Sampled returns `[...]`; no gradient flows into them.
        atoms: Atoms `[N]`.

    Returns:
        Loss per example, float32 `[...]`; NaN where the target is not finite.

    Raises:
        ValueError: If the target has another shape.

    References:
        Bellemare et al., `A Distributional Perspective on Reinforcement Learning
        <https://arxiv.org/abs/1707.06887>`_, 2017, algorithm 1.

    >>> atoms = evenly_spaced_atoms(5, -1.0, 1.0)
    >>> f"{cross_entropy_loss(jnp.zeros(5), jnp.array(0.3), atoms):.6f}"
    '1.609438'
    """
    require_shape("target", target, logits.shape[:-1], "one per row of `logits`")
    log_probs = jax.nn.log_softmax(jnp.asarray(logits, jnp.float32))
    probs = two_hot(jax.lax.stop_gradient(target), atoms)
    return -jnp.sum(weighted(probs, log_probs), axis=-1)


def shifted_cross_entropy(law: Law, target: Array, atoms: Array) -> Array:
    """Returns the cross-entropy of a law whose outcomes were moved off the atoms.

    It equals −Σⱼ two_hot(target)ⱼ ln max(project(law)ⱼ, 10⁻⁸), but the projection is
    evaluated only at the two atoms beside the target, in 2 N operations instead of N².
    The gradient reaches probabilities and outcomes.

    Args:
        law: Predicted outcomes and probabilities `[..., M]`.
        target: Sampled returns `[...]`; no gradient flows into them.
        atoms: Atoms `[N]`.

    Returns:
        Loss per example, float32 `[...]`; NaN where the target is not finite.

    Raises:
        ValueError: If the target has another shape.

    >>> atoms = evenly_spaced_atoms(5, -1.0, 1.0)
    >>> law = Law(atoms + 0.25, jnp.array([0.1, 0.2, 0.4, 0.2, 0.1]))
    >>> f"{shifted_cross_entropy(law, jnp.array(1.0), atoms):.6f}"  # −ln 0.2
    '1.609438'
    """
    require_shape("target", target, law.outcomes.shape[:-1], "one per row of `law`")
    position = _position(jax.lax.stop_gradient(target), atoms)
    below = jnp.clip(jnp.floor(position), 0, atoms.shape[0] - 2)
    above_share = position - below
    places = _position(law.outcomes, atoms)

    def log_prob(atom):
        weights = jnp.maximum(0.0, 1 - jnp.abs(places - atom[..., None]))
        return jnp.log(jnp.maximum(jnp.sum(law.probs * weights, axis=-1), MIN_PROB))

    return -((1 - above_share) * log_prob(below) + above_share * log_prob(below + 1))


def _position(x: Array, atoms: Array) -> Array:
    """Returns outcomes in units of the atoms' indices, in [0, N − 1].

    Atoms have whole numbers; an outcome that is not finite gives NaN. Distances are
    measured in these units and not between values, since atoms of large magnitude
    would not be exactly Δz apart.
    """
    x = jnp.where(jnp.isfinite(x), x, jnp.nan).astype(jnp.float32)
    share = (x - atoms[0]) / (atoms[-1] - atoms[0])
    return jnp.clip(share, 0.0, 1.0) * (atoms.shape[0] - 1)


def _kernel(position: Array, atoms: Array) -> Array:
    """Returns triangular weights of the atoms, `[..., N]`, for positions `[..., 1]`."""
    index = jnp.arange(atoms.shape[0], dtype=jnp.float32)
    index = jnp.expand_dims(index, range(position.ndim - 1))
    return jnp.maximum(0.0, 1 - jnp.abs(position - index))
