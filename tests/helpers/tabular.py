"""Updates of lookup tables, and the same updates in float64 from their definitions.

Gradients are differences of the objective, so that nothing of JAX is used twice.
"""

import functools

import built
import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from ppo_jax import networks, optimizers
from ppo_jax.component import component, program
from ppo_jax.config import Config
from ppo_jax.critics import ValueDist
from ppo_jax.envs.env import Discrete
from ppo_jax.envs.probes import OneStep
from ppo_jax.networks.distributions import Categorical
from ppo_jax.ppo import learner
from ppo_jax.schedules import Progress

WEIGHTS = (1.0, 0.5, 0.0, 2.0)
PAID = ((1.0, -1.0, 0.5), (0.0, 2.0, -3.0), (9.0, 9.0, 9.0), (-2.0, 0.0, 1.0))


@component
class Cards(OneStep):
    """One of four cards is shown; the reward depends on it, the action and luck.

    Cards have the weights 1, ½, 0 and 2, and the first two are a group.
    """

    luck: float = 1.0
    stake: float = 1.0

    @property
    def action_space(self):
        return Discrete(3)

    def draw(self, key):
        return jax.random.randint(key, (), 0, 4)

    def observe(self, state):
        return jax.nn.one_hot(state, 4)

    def pay(self, key, state, action):
        paid = jnp.asarray(PAID)[state, action]
        return self.stake * (paid + self.luck * jax.random.normal(key))

    def transition(self, key, state, action):
        timestep, after = super().transition(key, state, action)
        weight, group = jnp.asarray(WEIGHTS)[state], state // 2
        return timestep._replace(weight=weight, group=group.astype(jnp.int32)), after


@component
class Tabular(Config):
    """A policy and critics that are linear in the card."""

    def build(self):
        size, num_critics = self.critic.num_outputs, self.num_critics

        def init(key):
            keys = jax.random.split(key, 3)
            value = {
                "kernel": jax.random.normal(keys[1], (num_critics, 4, size)),
                "bias": jax.random.normal(keys[2], (num_critics, size)),
            }
            policy = {"kernel": 0.3 * jax.random.normal(keys[0], (4, 3))}
            return {"actor": {"head": policy}, "critic": {"heads": {"head": value}}}

        def apply(params, carry, obs, reset, action_mask=None):
            del carry, reset, action_mask
            head = params["critic"]["heads"]["head"]
            value = jnp.einsum("tbk,ckn->tbcn", obs, head["kernel"])
            policy = Categorical(obs @ params["actor"]["head"]["kernel"])
            bias = head["bias"][None, None]
            return networks.Output(policy, ValueDist(value + bias, self.critic), ())

        return networks.Network(init, lambda num_envs: (), apply)


def experiment(**changes):
    """Returns an experiment of a few full-batch steps: only their order is random."""
    fields = {
        "env": Cards(),
        "num_envs": 8,
        "num_steps": 8,
        "num_epochs": 3,
        "num_minibatches": 1,
        "optimizer": optimizers.Sgd(learning_rate=0.5, max_grad_norm=None),
        "total_timesteps": 64_000,
    }
    return Tabular(**fields | changes)


def first(config, seed=0):
    """Returns the only member of a population, before its first update.

    Small programs make it, which other experiments use as well.
    """
    (key,) = jax.random.split(jax.random.key(seed), 1)
    return learner.init(program(config), key)


def drawn(config, seed=0, scale=1.0):
    """Returns such a member whose parameters NumPy draws; even less is compiled."""
    config = program(config)
    params = jax.tree.map(lambda x: scale * x, built.drawn(config.build(), seed))
    return _begun(config, params, jax.random.key(seed))


@jax.jit
def _begun(config, params, key):
    known = config.build()._replace(init=lambda key: params)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(type(config), "build", lambda config: known)
        return learner.init(config, key)


def with_numbers(run, config):
    """Returns the run with another experiment of the same structure."""
    numbers = jax.tree.map(jnp.float32, config)
    old = run.learner.config
    numbers = jax.tree.unflatten(jax.tree.structure(old), jax.tree.leaves(numbers))
    return run.replace(learner=run.learner.replace(config=numbers))


@jax.jit
def lived(run, progress):
    """Returns the run's next key, and what it learns from in an update.

    This is one program for all experiments that act alike, whatever they learn.
    """
    after, *experience = learner.lived(run, progress)
    return after.key, experience


learned = jax.jit(learner.learned)


def update(run, progress=0.0, learned=learned):
    """Returns the run after an update, its metrics, and the rollout it learned from."""
    progress = Progress.at(progress)
    key, experience = lived(run, progress)
    _, _, steps, _ = experience
    return (*learned(run.replace(key=key), progress, *experience), steps)


def telling(*names):
    """Returns an `update` with these metrics alone: nothing is compiled for others."""

    @jax.jit
    def learned(run, progress, *experience):
        run, metrics = learner.learned(run, progress, *experience)
        return run, {name: metrics[name] for name in names if name in metrics}

    return functools.partial(update, learned=learned)


class Examples:
    """A rollout of `Cards` in float64."""

    def __init__(self, run, steps):
        def flat(x):
            return np.asarray(x, np.float64).reshape(-1)

        self.shape = steps.reward.shape
        self.card = np.asarray(steps.obs).reshape(-1, 4).argmax(axis=-1)
        self.action = np.asarray(steps.action).reshape(-1)
        self.reward, self.weight = flat(steps.reward), flat(steps.weight)
        chex.assert_trees_all_equal(self.weight, np.array(WEIGHTS)[self.card])
        config = run.learner.config
        env = np.tile(np.arange(self.shape[1]), self.shape[0])
        self.env = env
        self.weight[env >= self.shape[1] - config.holdout_envs] = 0
        self.every_weight = flat(steps.weight)
        scale = run.learner.return_scale
        self.mu, self.sigma = float(scale.mean), float(scale.std)

    def outputs(self, params):
        """Returns the outputs of every critic for every example, `[examples, C, N]`."""
        head = params["critic"]["heads"]["head"]
        return np.moveaxis(head["kernel"][:, self.card], 0, 1) + head["bias"]

    def log_probs(self, params):
        """Returns log-probabilities of every action, `[examples, actions]`."""
        logits = params["actor"]["head"]["kernel"][self.card]
        return logits - np.log(np.exp(logits).sum(axis=-1, keepdims=True))

    def mean(self, x):
        return (self.weight * x).sum() / self.weight.sum()


def descend(objective, params, step_size, steps):
    """Returns parameters after steps against central differences of an objective."""
    leaves, structure = jax.tree.flatten(as_float64(params))
    shapes = [leaf.shape for leaf in leaves]
    ends = np.cumsum([leaf.size for leaf in leaves])

    def tree(flat):
        parts = np.split(flat, ends[:-1])
        parts = [part.reshape(shape) for part, shape in zip(parts, shapes, strict=True)]
        return jax.tree.unflatten(structure, parts)

    flat = np.concatenate([leaf.ravel() for leaf in leaves])
    trail = [tree(flat)]
    for _ in range(steps):
        nudges = 1e-6 * np.eye(flat.size)
        slopes = [
            (objective(tree(flat + nudge)) - objective(tree(flat - nudge))) / 2e-6
            for nudge in nudges
        ]
        flat = flat - step_size * np.array(slopes)
        trail.append(tree(flat))
    return trail


def as_float64(tree):
    return jax.tree.map(lambda x: np.asarray(x, np.float64), tree)


def changed(a, b):
    """Returns whether any number differs."""
    pairs = zip(*map(jax.tree.leaves, jax.device_get((a, b))), strict=True)
    return any(np.any(x != y) for x, y in pairs)
