"""Adversaries of training: they perturb a share of the data to learn from (SA-PPO).

Perturbations are in the units of the network's input: normalised observations, if there
is an `obs_clip`. Chunks are attacked as a whole. Without a memory, a chunk has one
step; with a memory, its carry is computed again from the stored carry at its start. A
minibatch is a random set of chunks in random order, so its first chunks are a random
share of it.
"""

import dataclasses
from collections.abc import Callable, Iterator
from typing import Annotated, Any, NamedTuple

import jax
import jax.numpy as jnp

from ppo_jax.arrays import counting, tree
from ppo_jax.attacks.perturbations import FLAT, Attack, Pgd, first_share
from ppo_jax.attacks.targets import Divergence, PolicyLoss, Target
from ppo_jax.attacks.targets import LowValue as LowValue
from ppo_jax.attacks.targets import ValueLoss as ValueLoss
from ppo_jax.component import component, require, require_number, require_range
from ppo_jax.component.bounds import Bound
from ppo_jax.errors import missing, require_shape
from ppo_jax.networks import ActorCritic
from ppo_jax.state import Batch
from ppo_jax.terms.term import Attacked, Forward
from ppo_jax.types import Array, Key, Metrics, PyTree

Percent = Annotated[int, Bound("1 to 100", lambda x: 1 <= x <= 100)]
Replay = Callable[[Batch], Forward]
"""A function from rows to the outputs of the network for them."""
Passes = tuple[Forward, Forward, Forward]
"""Outputs of the network: for the rows that all terms see, for the true observations of
the first chunks, and for the perturbed observations of the first chunks."""


class Perturbed(NamedTuple):
    """The first k chunks of a minibatch as an adversary shows them."""

    obs: PyTree
    """Observations, leaves `[L, k, ...]`; rows that are not attacked have true ones."""
    mask: Array
    """True for the rows that were attacked, bool `[L, k]`."""
    eps: Array
    """The radius ε in force."""
    sizes: Metrics
    """Metrics of the perturbations' sizes, `[L, k]`."""
    share: Array
    """Share of attacked rows in the weight of the whole minibatch, `[]`."""


@component
class Adversary:
    """A perturbation of the data that the agent learns from.

    Attributes:
        attack: The way observations are perturbed; its schedule is the warm-up.
        ratio: Share in [0, 1] of a minibatch's chunks that are attacked, rounded down.
        max_percent: Largest percentage of chunks that can be attacked. The cost of the
            attack depends on it and not on the ratio, which is at most
            `max_percent` / 100. Structure.
        target: The harm that the attack raises.

    Raises:
        ValueError: At construction, for a ratio that is not possible.

    Warns:
        UserWarning: At construction, for a target without a gradient where the attack
            begins.
    """

    attack: Attack = Pgd()
    ratio: float = 0.5
    max_percent: Percent = 50
    target: Target = PolicyLoss()

    def validate(self) -> None:
        """Raises a `ValueError` for a ratio that is not possible."""
        percent = self.max_percent
        expected = f"a number in [0, {percent / 100}], because max_percent = {percent}"
        require_range(self, "ratio", expected, lambda x: 0 <= x <= percent / 100)

    def advise(self) -> Iterator[str]:
        """Yields a warning if the target has no gradient where the attack begins."""
        if isinstance(self.target, Divergence) and self.attack.begins_true:
            kind, attack = type(self).__name__, type(self.attack).__name__
            yield f"{kind}.attack: a divergence {FLAT.format(attack=attack)}"

    def check(self, config: Any) -> None:
        """Checks that the adversary fits an experiment, when that is constructed.

        Raises:
            ValueError: If it does not fit; the message names a field of the experiment.
        """
        chunks = config.steps_per_update // config.chunk // config.num_minibatches
        devices = config.devices_per_member or 1
        shares = 1 if chunks % devices else devices
        chunks //= shares
        chunks //= counting.divisors(chunks, -(-config.num_microbatches // shares))[0]
        expected = f"at least 1 of the {chunks} chunks of a minibatch"
        name, most = "Config.adversary", self.most(chunks)
        require(most >= 1, f"{name}.max_percent", self.max_percent, expected)

        def attacks(ratio: float) -> bool:
            return ratio == 0 or counting.share_of(chunks, ratio) >= 1

        require_number(f"{name}.ratio", self.ratio, f"0, or {expected}", attacks)

    def most(self, num_chunks: int) -> int:
        """Returns how many of a minibatch's chunks can be attacked."""
        return num_chunks * self.max_percent // 100

    def chosen(self, weight: Array, progress: Array) -> Array:
        """Returns which rows of these weights are attacked, bool `[..., L, b]`."""
        few = jnp.broadcast_to(first_share(self.ratio, weight.shape[-1]), weight.shape)
        return few & (weight > 0) & (self.attack.at(progress).eps > 0)

    def perturb(
        self,
        replay: Replay,
        batch: Batch,
        key: Key,
        progress: Array,
        architecture: ActorCritic,
        share: Array,
    ) -> Perturbed:
        """Attacks what the actor reads of the first chunks of a minibatch.

        Args:
            replay: The present network; no gradient of its parameters is kept.
            batch: The minibatch, in random order; rows without weight stay the same.
            key: Key of the attack's random numbers.
            progress: Progress of training, from 0 in the first update to 1 in the last.
            architecture: That of the network.
            share: Share of attacked rows in the weight of the whole minibatch, of which
                the batch may be a part.
        """
        rows = first(batch, self.most(batch.weight.shape[1]))
        attack, clean = self.attack.at(progress), replay(rows)
        mask = self.chosen(batch.weight, progress)[:, : rows.weight.shape[1]]

        def shown(part: PyTree) -> PyTree:
            obs = architecture.with_actor(rows.obs, part)
            return tree.where(mask, obs, rows.obs)

        def harm(part: PyTree) -> Array:
            seen = replay(rows._replace(obs=shown(part)))
            each = jnp.where(mask, self._harm(seen, clean, rows), 0.0)
            if jax.tree.leaves(rows.carry):  # What it sees harms its later steps too.
                each = jnp.broadcast_to(each.sum(axis=0), each.shape)
            return each

        true = architecture.of_actor(rows.obs)
        obs = shown(attack(harm, true, key))
        sizes = _sizes(attack, true, architecture.of_actor(obs))
        return Perturbed(obs, mask, jnp.asarray(attack.eps), sizes, share)

    def forward(self, replay: Replay, batch: Batch, perturbed: Perturbed) -> Forward:
        """Returns the forward pass of a minibatch that the objective uses.

        Args:
            replay: The network, differentiable.
            batch: The minibatch, or a part of it.
            perturbed: The first chunks of the minibatch, as `perturb` returned them.
        """
        out, clean, seen = self.passes(replay, batch, perturbed)
        rows = first(batch, perturbed.mask.shape[1])
        nowhere = jnp.zeros_like(batch.weight)
        calm, misled = (_front(x.policy, out.policy) for x in (clean, seen))
        mask = _front(perturbed.mask, nowhere > 0)
        attacked = Attacked(calm, misled, mask, perturbed.share, metrics={})
        harm = self._harm(seen, clean, rows) - self._harm(clean, clean, rows)
        sizes = perturbed.sizes | {"sa_ppo/attack_success": harm}
        metrics = {
            name: attacked.alone(_front(x, nowhere)) for name, x in sizes.items()
        }
        metrics["sa_ppo/adversarial_ratio"] = attacked.mask.astype(jnp.float32)
        metrics["sa_ppo/current_epsilon"] = jnp.full_like(nowhere, perturbed.eps)
        return out._replace(attacked=attacked._replace(metrics=metrics))

    def _harm(self, seen: Forward, clean: Forward, batch: Batch) -> Array:
        """Returns the target's harm; raises a `Misfit` unless it is one per example."""
        harm, name = self.target(seen, clean, batch), type(self.target).__name__
        require_shape(name, harm, batch.weight.shape, "a number per example")
        return harm

    def passes(self, replay: Replay, batch: Batch, perturbed: Perturbed) -> Passes:
        """Runs the network's passes over a minibatch; arguments as of `forward`."""
        raise missing(self, "passes")


@component
class Mixed(Adversary):
    """Attacked rows take the place of the true ones, with the same weight.

    All terms learn from the attacked rows, and metrics of log-ratios include them: a
    `KlStop` or `KlAdaptive` needs a target that allows for that.
    """

    def passes(self, replay: Replay, batch: Batch, perturbed: Perturbed) -> Passes:
        out = replay(batch._replace(obs=_front(perturbed.obs, batch.obs)))
        size = perturbed.mask.shape[1]
        return out, replay(first(batch, size)), _first_of(out, size)


@component
class Regularizer(Adversary):
    """Only `terms.RobustKL` sees the attacked rows; all other terms see the true ones.

    References:
        Zhang et al., `Robust Deep Reinforcement Learning against Adversarial
        Perturbations on State Observations <https://arxiv.org/abs/2003.08938>`_, 2020.
    """

    ratio: float = 1.0
    max_percent: Percent = 100
    target: Target = Divergence()

    def check(self, config: Any) -> None:
        expected = "a RobustKL, without which nothing sees what a Regularizer does"
        compares = any(term.compares for term in config.terms)
        require(compares, "Config.terms", config.terms, expected)
        super().check(config)

    def passes(self, replay: Replay, batch: Batch, perturbed: Perturbed) -> Passes:
        out, size = replay(batch), perturbed.mask.shape[1]
        seen = replay(first(batch, size)._replace(obs=perturbed.obs))
        return out, _first_of(out, size), seen


def first(batch: Batch, count: int) -> Batch:
    """Returns the first `count` chunks of a minibatch."""
    rows = jax.tree.map(lambda x: x[:, :count], batch._replace(carry=()))
    return rows._replace(carry=jax.tree.map(lambda x: x[:count], batch.carry))


def _sizes(attack: Attack, true: PyTree, perturbed: PyTree) -> Metrics:
    """Returns metrics of the sizes of perturbations by an attack, `[L, k]` each."""
    pairs = zip(jax.tree.leaves(perturbed), jax.tree.leaves(true), strict=True)
    delta = [new - old for new, old in pairs if jnp.issubdtype(old.dtype, jnp.floating)]
    parts = jnp.concatenate([x.reshape(*x.shape[:2], -1) for x in delta], axis=-1)
    at_border = jnp.abs(parts) > 0.999 * attack.eps  # A sum is rounded.
    return {
        "sa_ppo/avg_perturbation_norm": attack.norm.size(delta, axes=2),
        "sa_ppo/boundary_fraction": at_border.astype(jnp.float32).mean(axis=-1),
    }


def _first_of(out: Forward, count: int) -> Forward:
    """Returns the part of a forward pass that belongs to the first chunks."""
    policy, outputs, log_ratio = jax.tree.map(
        lambda x: x[:, :count], (out.policy, out.value.outputs, out.log_ratio)
    )
    return Forward(policy, dataclasses.replace(out.value, outputs=outputs), log_ratio)


def _front(new: PyTree, whole: PyTree) -> PyTree:
    """Returns the tree `whole` with its first chunks replaced by `new`."""
    return jax.tree.map(
        lambda a, b: jnp.concatenate([a, b[:, a.shape[1] :]], axis=1), new, whole
    )
