"""Learning from one batch: epochs of minibatch steps."""

import dataclasses
import functools
from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import optax

from ppo_jax.arrays import counting, sharding, tree
from ppo_jax.arrays.calls import apart
from ppo_jax.arrays.devices import FEWEST_STEPS
from ppo_jax.arrays.packing import Packed, pack, pack_like, unpack
from ppo_jax.arrays.platforms import by_platform
from ppo_jax.arrays.sharding import Crew
from ppo_jax.attacks.metrics import COUNTS
from ppo_jax.config import Config
from ppo_jax.metrics.own import named
from ppo_jax.networks import Network
from ppo_jax.normalization import observations
from ppo_jax.ppo import acting, diagnostics
from ppo_jax.ppo.objective import AdversarialForward, forward, objective, peaks
from ppo_jax.ppo.permutation import permutation
from ppo_jax.schedules import Progress
from ppo_jax.state import Batch, Learner
from ppo_jax.terms import Context
from ppo_jax.types import Array, Key, Metrics, PyTree

ATTACK = 2**32 - 1
"""Number that sets the keys of attacks apart from those of the optimiser's noise."""

WEIGHT = "rollout/weight"
"""The weight of a minibatch, beside its metrics: a name that no part may give one."""
STEPS = (0, 1)
"""Axes of epochs and minibatches."""


class UpdateResult(NamedTuple):
    """The result of an update."""

    metrics: Metrics
    """Means over the steps that were taken, NaN without any, and counts of errors."""
    taken: Array
    """Steps that were taken, int32 `[]`."""
    failed: Array
    """Steps that were no-ops because something was not finite, int32 `[]`."""


class _Trainee(NamedTuple):
    """The state that minibatch steps change."""

    params: PyTree
    opt_state: PyTree
    stop: PyTree
    """The state of the early stop."""


def update(
    learner: Learner, batch: Batch, key: Key, progress: Progress
) -> tuple[Learner, UpdateResult]:
    """Learns from chunks `[K, L, ...]` in epochs of minibatch steps."""
    config = learner.config
    num_chunks = batch.weight.shape[0]

    def epoch(trainee, inputs):
        index, order, keys = inputs
        order = order.reshape(config.num_minibatches, -1)

        def step(trainee, inputs):
            order, key = inputs
            allowed = config.early_stop.allows(trainee.stop, index)
            return _minibatch_step(
                learner, batch, trainee, order, key, progress, allowed
            )

        trainee, flags = jax.lax.scan(step, trainee, (order, keys))
        stop = config.early_stop.end_epoch(trainee.stop)
        return trainee._replace(stop=stop), flags

    stop = config.early_stop.begin(learner.stop_memory, config.num_epochs)
    params, opt_state = _together(learner, (learner.params, learner.opt_state))
    trainee = _Trainee(params, opt_state, stop)
    keys = jax.vmap(lambda key: jax.random.split(key, 1 + config.num_minibatches))(
        jax.random.split(key, config.num_epochs)
    )
    orders = jax.vmap(lambda key: permutation(key, num_chunks))(keys[:, 0])
    inputs = (jnp.arange(config.num_epochs), orders, keys[:, 1:])
    trainee, (flags, metrics) = jax.lax.scan(epoch, trainee, inputs)
    result = _result(config, batch, flags, metrics)
    own = config.early_stop.metrics(learner.stop_memory, trainee.stop, result.metrics)
    result.metrics.update(named("Config.early_stop.metrics", own))
    params, opt_state = unpack((trainee.params, trainee.opt_state))
    learner = dataclasses.replace(learner, params=params, opt_state=opt_state)
    return learner, result


def contexts(learner: Learner, progress: Progress) -> tuple[Context, ...]:
    """Returns the context of each term of the objective in an update."""
    observe = functools.partial(acting.observe, learner)
    return tuple(
        Context(memory, (), progress.course, learner.return_scale, observe)
        for memory in learner.memories
    )


@apart
def gather(batch: Batch, order: Array) -> Batch:
    """Returns chunks by index, time-major `[L, b, ...]`."""
    carry, rows = tree.take((batch.carry, batch._replace(carry=())), order)
    return jax.tree.map(lambda x: x.swapaxes(0, 1), rows)._replace(carry=carry)


def _minibatch_step(
    learner: Learner,
    batch: Batch,
    trainee: _Trainee,
    order: Array,
    key: Key,
    progress: Progress,
    allowed: Array,
) -> tuple[_Trainee, tuple[Packed, Packed]]:
    """Takes one optimiser step, or none if anything about it is not finite."""
    config = learner.config
    grads, loss, metrics, weight = _gradients(
        learner, apart(unpack)(trainee.params), batch, order, key, progress
    )
    size, norms = diagnostics.gradient_norms(unpack(grads))
    nan = metrics.pop("error/log_ratio_nan_count")
    inf = metrics.pop("error/log_ratio_inf_count")
    updates, opt_state, norm = config.optimizer.update(
        grads, trainee.opt_state, trainee.params, key, progress, metrics
    )
    finite_loss = jnp.isfinite(loss)
    finite_grad = jnp.isfinite(size) & jnp.isfinite(norm)
    finite = finite_loss & finite_grad & (nan + inf == 0)
    # Apart, as XLA would compute it again in the kernel of every leaf.
    taken = apart(jnp.logical_and)(allowed & finite, weight > 0)
    norms["train/grad_norm_post_clip"] = norm
    stop = config.early_stop.observe(trainee.stop, metrics)
    stepped = _Trainee(optax.apply_updates(trainee.params, updates), opt_state, stop)
    flags = {
        "taken": taken,
        "failed": allowed & ~finite,
        "error/log_ratio_nan_count": jnp.where(allowed, nan, 0),
        "error/log_ratio_inf_count": jnp.where(allowed, inf, 0),
        "error/nonfinite_loss": allowed & ~finite_loss,
        "error/nonfinite_grad": allowed & ~finite_grad,
        "error/skipped_steps": allowed & ~finite,
    }
    metrics |= norms | {"train/loss": loss, WEIGHT: weight}
    return tree.where(taken, stepped, trainee), (pack(flags), pack(metrics))


def _together(learner: Learner, tree: PyTree) -> PyTree:
    """Packs the parts of a tree that are like the parameters.

    If the optimiser is not elementwise, the tree is returned unchanged.
    """
    if not learner.config.optimizer.elementwise:
        return tree
    return pack_like(tree, learner.params)


def _gradients(
    learner: Learner,
    params: PyTree,
    batch: Batch,
    order: Array,
    key: Key,
    progress: Progress,
) -> tuple[PyTree, Array, Metrics, Array]:
    """Returns the means of gradients, loss and metrics of a minibatch, and its weight.

    Means are weighted; some metrics are maxima instead.

    Devices that share the agent take a share of the minibatch each.
    """
    config = learner.config
    network = config.build()
    crew = sharding.crew(order.size)
    weights = tree.take(batch.weight, order)
    weight = weights.sum()

    def part(order):
        rows = gather(batch, order)
        share = rows.weight / jnp.maximum(weight, observations.TINY)
        rows = rows._replace(weight=share)
        look = _shown(learner, network, params, rows, order, key, progress, attacked)
        (loss, metrics), grads = jax.value_and_grad(objective, has_aux=True)(
            params, network, config, contexts(learner, progress), rows, look
        )
        largest = {name: metrics.pop(name) for name in peaks(config, metrics)}
        return (_together(learner, grads), loss, pack(metrics)), largest

    order = crew.own(order)
    least, on_cpu = _num_microbatches(config, crew, order.size)
    attacked = _attacked(config, weights, least * crew.size, progress)
    as_asked = functools.partial(_added_up, part, least)
    if on_cpu == least:
        sums, largest = as_asked(order)
    else:
        sums, largest = by_platform(
            order, cpu=functools.partial(_added_up, part, on_cpu), default=as_asked
        )
    (grads, loss, packed), largest = crew.combined(sums, largest)
    metrics: Metrics = packed.unpack()
    return grads, loss, metrics | largest, weight


def _added_up(
    part: Callable[[Array], tuple[PyTree, Metrics]], num_parts: int, order: Array
) -> tuple[PyTree, Metrics]:
    """Evaluates the parts of a minibatch in turn; returns their sums and maxima."""
    if num_parts == 1:
        return part(order)
    sums, largest = jax.lax.map(part, order.reshape(num_parts, -1))
    sums = jax.tree.map(lambda x: x.sum(axis=0), sums)
    return sums, jax.tree.map(lambda x: x.max(axis=0), largest)


def _num_microbatches(config: Config, crew: Crew, num_chunks: int) -> tuple[int, int]:
    """Returns the numbers of parts of a device's share: as configured, and on a CPU.

    Activations of some thousand steps stay in a CPU's caches. A memory works through
    all sequences at once, and an adversary picks a share of each part.
    """
    least = -(-config.num_microbatches // crew.size)
    divisors = counting.divisors(num_chunks, least)
    whole = config.network.memory is not None or config.adversary is not None
    most = 0 if whole else num_chunks * config.chunk // FEWEST_STEPS
    return divisors[0], max([n for n in divisors if n <= most], default=divisors[0])


def _shown(
    learner: Learner,
    network: Network,
    params: PyTree,
    rows: Batch,
    order: Array,
    key: Key,
    progress: Progress,
    attacked: Array,
) -> AdversarialForward | None:
    """Attacks a part of a minibatch before it is learned from.

    Returns:
        A function from a replay to the adversary's forward pass; None without one.
    """
    adversary, architecture = learner.config.adversary, learner.config.network
    if adversary is None:
        return None
    # Microbatches share a key, but no chunk.
    key = jax.random.fold_in(jax.random.fold_in(key, ATTACK), order[0])
    replay = functools.partial(forward, network, params)
    here = progress.course, architecture, attacked
    perturbed = adversary.perturb(replay, rows, key, *here)
    return lambda replay: adversary.forward(replay, rows, perturbed)


def _attacked(
    config: Config, weights: Array, num_parts: int, progress: Progress
) -> Array:
    """Returns the share of attacked rows in a minibatch's weights `[b, L]`.

    Each of its parts is attacked by itself, and may have none.
    """
    if config.adversary is None:
        return jnp.zeros(())
    parts = weights.reshape(num_parts, -1, weights.shape[1]).swapaxes(1, 2)
    chosen = config.adversary.chosen(parts, progress.course)
    attacked = jnp.sum(jnp.where(chosen, parts, 0.0))
    return attacked / jnp.maximum(weights.sum(), observations.TINY)


def _result(
    config: Config, batch: Batch, flags: Packed, metrics: Packed
) -> UpdateResult:
    """Sums flags and averages metrics, which are `[epochs, minibatches]`."""
    taken = flags["taken"]
    sums = jax.tree.map(lambda x: x.sum(axis=STEPS), flags).unpack()
    weight = jnp.where(taken, metrics[WEIGHT], 0.0)[..., None]
    means = jax.tree.map(
        lambda x: diagnostics.average(x, weight, axis=STEPS), metrics
    ).unpack()
    del means[WEIGHT]
    for name in peaks(config, means):
        largest = jnp.max(metrics[name], initial=-jnp.inf, where=taken)
        means[name] = jnp.where(taken.any(), largest, jnp.nan)
    for name in COUNTS if config.adversary else ():
        means[name] = diagnostics.average(metrics[name], taken.astype(jnp.float32))
    errors = {name: value for name, value in sums.items() if name.startswith("error/")}
    counts = {
        "train/n_minibatches_done": sums["taken"],
        "train/n_epochs_completed": taken.any(axis=1).sum(),
        "warn/empty_epoch": (~(batch.weight > 0).any()).astype(jnp.float32),
    }
    return UpdateResult(means | errors | counts, sums["taken"], sums["failed"])
