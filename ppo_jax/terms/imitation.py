"""The term that learns from demonstrations of another agent or a human."""

import hashlib
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import ArrayLike

from ppo_jax.component import component, require
from ppo_jax.component.bounds import FiniteNonNegative
from ppo_jax.envs.env import ActionSpace, Box, Discrete
from ppo_jax.schedules import Constant, Schedule, factor
from ppo_jax.state import Batch
from ppo_jax.terms.term import Context, Forward, Loss, Prepared, RolloutTargets, Term
from ppo_jax.types import Array, PyTree


class Demonstrations:
    """Observations and actions of a demonstrator, step by step in any order.

    A program is compiled for each set of demonstrations; sets with the same content are
    equal. A policy with a memory learns from `Sequences` instead.

    Args:
        obs: Observations as the environment gives them, leaves `[N, ...]`.
        action: Actions as the environment takes them, `[N, ...]`.
        weight: Weights ≥ 0 of the steps relative to each other, `[N]`; None: all equal.
            `losses.advantage_weights` returns the weights of advantage-weighted
            regression.

    Raises:
        ValueError: For arrays of different lengths, for numbers that are not finite,
            and for weights that are negative or all 0.

    >>> Demonstrations(obs=np.zeros((3, 4)), action=np.array([0, 1, 1])).shape
    (3,)
    """

    axes = 1
    """Number of leading axes, before the axes of a single step."""

    def __init__(self, obs: PyTree, action: ArrayLike, weight: ArrayLike | None = None):
        self.obs, self.action = jax.tree.map(_typed, obs), _typed(action)
        self.shape = self.action.shape[: self.axes]
        self.weight = _typed(np.ones(self.shape) if weight is None else weight)
        self._require_arrays()
        digest = hashlib.sha256(repr(jax.tree.structure(self.obs)).encode())
        for leaf in jax.tree.leaves((self.obs, self.action, self.weight)):
            digest.update(f"{leaf.dtype}{leaf.shape}".encode() + leaf.tobytes())
        self._name = (
            f"{type(self).__name__}({list(self.shape)}, {digest.hexdigest()[:16]})"
        )

    def draw(self, index: Array) -> tuple[PyTree, Array, Array]:
        """Returns observations, actions and weights of mean 1 for indices `[L, b]`."""
        weight = self.weight / self.weight.mean()
        rows = index if self.axes == 1 else (slice(None), index[0])
        return jax.tree.map(
            lambda x: jnp.asarray(x)[rows], (self.obs, self.action, weight)
        )

    def require_fit(self, obs_spec: PyTree, space: ActionSpace, memory: bool) -> None:
        """Checks that the demonstrations fit an environment and a policy.

        Raises:
            ValueError: If they do not fit; the message gives the reason.
        """
        sequences = self.axes == 2
        kind = "Sequences, for the memory" if memory else "no Sequences without memory"
        require(sequences == memory, "Imitation.demonstrations", self, kind)
        name = type(self).__name__
        want = jax.tree.map(lambda x: x.shape, obs_spec)
        got = jax.tree.map(lambda x: x.shape[self.axes :], self.obs)
        require(want == got, f"{name}.obs", got, f"observations of shapes {want}")
        shape, low, high = _bounds(space)
        got = self.action.shape[self.axes :]
        require(got == shape, f"{name}.action", got, f"actions of {space}, {shape}")
        kind = np.floating if isinstance(space, Box) else np.integer
        got = (self.action.min().item(), self.action.max().item())
        ok = bool(np.all(self.action >= low) and np.all(self.action <= high))
        ok &= np.issubdtype(self.action.dtype, kind)
        require(ok, f"{name}.action", got, f"actions of {space}")

    def _require_arrays(self) -> None:
        name = type(self).__name__
        leaves = {"action": self.action, "weight": self.weight}
        for path, leaf in jax.tree.leaves_with_path(self.obs):
            leaves[f"obs{jax.tree_util.keystr(path)}"] = leaf
        for field, leaf in leaves.items():
            lengths = leaf.shape[: self.axes]
            expected = f"{self.axes} leading axes, those of the actions {self.shape}"
            fits = lengths == self.shape and len(lengths) == self.axes
            require(fits, f"{name}.{field}", lengths, expected)
            finite = bool(np.isfinite(leaf).all())
            require(finite, f"{name}.{field}", "NaN or infinity", "finite numbers")
        some = bool((self.weight >= 0).all() and (self.weight > 0).any())
        require(some, f"{name}.weight", self.weight, "numbers ≥ 0, not all of them 0")

    def __eq__(self, other: object) -> bool:
        return repr(self) == repr(other)

    def __hash__(self) -> int:
        return hash(self._name)

    def __repr__(self) -> str:
        return self._name


class Sequences(Demonstrations):
    """Observations and actions of a demonstrator, from the beginning of episodes on.

    Args:
        obs: Observations as the environment gives them, time-major `[S, N, ...]`; all
            sequences begin with an episode.
        action: Actions as the environment takes them, `[S, N, ...]`.
        weight: Weights ≥ 0 of the steps relative to each other, `[S, N]`; 0 behind the
            end of an episode that is shorter than S; None: all equal.

    Raises:
        ValueError: In the same cases as for `Demonstrations`.
    """

    axes = 2


@component
class Imitation(Term):
    """Behaviour cloning: −weight · ln π(a) of demonstrations (Pomerleau, 1991).

    A demonstration is drawn at random for every example of a rollout, or a sequence for
    every chunk. The policy is evaluated without an action mask.

    Attributes:
        demonstrations: Behaviour to imitate, `Demonstrations` or `Sequences`.
        coef: Coefficient ≥ 0.
        schedule: Factor of the coefficient as a function of progress.

    Raises:
        ValueError: At construction, for a number out of its range.
        TypeError: At construction, for anything but demonstrations.
    """

    demonstrations: Demonstrations
    coef: FiniteNonNegative[float] = 1.0
    schedule: Schedule = Constant()

    def check(self, config: Any) -> None:
        memory = config.network.memory is not None
        obs_spec, space = config.obs_spec(), config.env.action_space
        self.demonstrations.require_fit(obs_spec, space, memory)

    def prepare(self, memory: PyTree, rollout: RolloutTargets) -> Prepared:
        count = self.demonstrations.shape[-1]
        return jax.random.randint(rollout.key, rollout.weight.shape, 0, count), {}

    def __call__(self, out: Forward, batch: Batch, context: Context) -> Loss:
        obs, action, weight = self.demonstrations.draw(context.prepared)
        assert context.policy is not None
        policy = context.policy(obs)
        nll = -weight * policy.log_prob(policy.to_raw(action))
        coef = self.coef * factor(self.schedule, context.progress)
        loss = jnp.broadcast_to(coef * nll.mean(axis=0), batch.weight.shape)
        return loss, {"train/imitation_loss": loss}


def _typed(x: ArrayLike) -> np.ndarray:
    """Returns a copy with the types of environments: float32 or int32."""
    x = np.array(x)
    if np.issubdtype(x.dtype, np.floating):
        return x.astype(np.float32)
    return x.astype(np.int32) if np.issubdtype(x.dtype, np.integer) else x


def _bounds(space: ActionSpace) -> tuple[tuple[int, ...], np.ndarray, np.ndarray]:
    """Returns the shape of an action, its lowest and its highest values."""
    if isinstance(space, Box):  # In float32, as demonstrations are kept.
        low, high = (np.asarray(limit, np.float32) for limit in space)
        return low.shape, low, high
    count = np.asarray(space.n if isinstance(space, Discrete) else space.nvec)
    return count.shape, np.zeros_like(count), count - 1
