"""Snapshots: copies of a learner, to keep while it goes on and to continue from."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np

from ppo_jax.state import Learner
from ppo_jax.transforms.statistics import is_statistics
from ppo_jax.types import PyTree


def take(learner: Learner, opt_state: bool = False) -> Learner:
    """Copies a learner, or a population's learners, to the host's memory.

    Parameters, statistics (also those of an optimiser, such as VGS), the memories of
    terms and controllers, and the experiment's numbers are always part of the copy.

    Args:
        learner: The learner to copy; it may be donated afterwards.
        opt_state: Whether to copy moments, utilities and steps of the optimiser too.

    >>> from ppo_jax import Config, snapshot
    >>> from ppo_jax.ppo import learner
    >>> run = learner.init(Config("CartPole-v1"), jax.random.key(0))
    >>> light, whole = (snapshot.take(run.learner, opt_state=x) for x in (False, True))
    >>> len(jax.tree.leaves(whole.opt_state)), len(jax.tree.leaves(light.opt_state))
    (25, 0)
    >>> run = dataclasses.replace(run, learner=snapshot.restore(light))
    """
    if not opt_state:
        statistics = jax.tree.map(
            lambda node: node if is_statistics(node) else None,
            learner.opt_state,
            is_leaf=is_statistics,
        )
        learner = dataclasses.replace(learner, opt_state=statistics)
    return jax.tree.map(np.array, learner)


def restore(snapshot: Learner) -> Learner:
    """Returns the learner that a snapshot was taken of.

    With the optimiser's state, the learner goes on as if nothing had happened; without
    it, the optimiser starts from scratch, but for its statistics. A run that goes on
    with another learner keeps its environments, memory, key and counters. Learners of a
    population are restored by `jax.vmap(restore)`.
    """
    fresh = snapshot.config.optimizer.init(snapshot.params)
    opt_state = _completed(snapshot.opt_state, fresh)
    return jax.tree.map(jnp.array, dataclasses.replace(snapshot, opt_state=opt_state))


def _completed(known: PyTree, fresh: PyTree) -> PyTree:
    """Returns the tree `known`, with leaves of `fresh` in place of None."""
    return jax.tree.map(
        lambda old, new: new if old is None else old,
        known,
        fresh,
        is_leaf=lambda node: node is None,
    )
