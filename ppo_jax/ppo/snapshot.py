"""Snapshots: what a learner knows, to keep while it goes on and to go on from."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np

from ppo_jax.state import Learner
from ppo_jax.transforms.statistics import is_statistics
from ppo_jax.types import PyTree


def take(learner: Learner, opt_state: bool = False) -> Learner:
    """A copy of a learner in the host's memory, or of a population's learners.

    Parameters, statistics (also those of an optimiser, such as VGS), what terms and
    controllers remember and the experiment's numbers are always part of it.

    Args:
        learner: What to copy; it may be donated afterwards.
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
    """The learner that a snapshot was taken of.

    With the optimiser's state it goes on as if nothing had happened; without, the
    optimiser begins anew, but for its statistics. A run that goes on with another
    learner keeps its environments, memory, key and counters. Learners of a population
    are restored by `jax.vmap(restore)`.
    """
    fresh = snapshot.config.optimizer.init(snapshot.params)
    opt_state = _completed(snapshot.opt_state, fresh)
    return jax.tree.map(jnp.array, dataclasses.replace(snapshot, opt_state=opt_state))


def _completed(known: PyTree, fresh: PyTree) -> PyTree:
    """What is known, and what is fresh where nothing is."""
    return jax.tree.map(
        lambda old, new: new if old is None else old,
        known,
        fresh,
        is_leaf=lambda node: node is None,
    )
