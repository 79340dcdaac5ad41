"""Torsos, memories and heads of one's own, by what they are to compute."""

import chex
import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from built import drawn

from ppo_jax import critics, networks
from ppo_jax.component import as_arrays, component
from ppo_jax.envs.env import Box, Discrete, MultiDiscrete
from ppo_jax.networks.distributions import DiagGaussian, categorical

SPACE = Box((-1.0, -1.0), (1.0, 1.0))
OBS = {"seen": jax.ShapeDtypeStruct((3,), jnp.float32)}
T, B = 5, 2


@component
class Scaled(networks.Torso):
    factor: float = 2.0

    def __call__(self, obs):
        return self.factor * obs["seen"]


@component
class Sum(networks.Memory):
    def initial_carry(self, num_envs):
        return (jnp.zeros((num_envs, 3)),)

    def __call__(self, carry, x, reset):
        def step(total, now):
            x, reset = now
            total = jnp.where(reset[:, None], 0.0, total) + x
            return total, total

        total, totals = jax.lax.scan(step, *carry, (x, reset))
        return (total,), totals


@component
class Doubtful(networks.Head):
    least: float = 0.5

    def num_outputs(self, space):
        return 2 * len(space.low)

    def policy(self, outputs, free, space, mask):
        loc, rho = jnp.split(outputs, 2, axis=-1)
        return DiagGaussian(loc, self.least + nn.softplus(rho), space.low, space.high)


@component
class Habit(networks.Head):
    temperature: float = 2.0

    def free(self, space):
        return {"habit": self.num_outputs(space)}

    def policy(self, outputs, free, space, mask):
        logits = outputs / self.temperature + free["habit"][None, None]
        return categorical(logits, space, mask)


def summed(x, reset, before):
    """What `Sum` says of features `[T, B, 3]`, step by step."""
    totals = []
    for now, begins in zip(x, reset, strict=True):
        before = np.where(begins[:, None], 0.0, before) + now
        totals.append(before)
    return np.stack(totals)


SEEN = np.random.default_rng(1).normal(size=(T, B, 3)).astype(np.float32)


@jax.jit
def said(architecture):
    """A network's parameters, what it saw, and what it said of that."""
    network = networks.build(architecture, SPACE, OBS, critics.Scalar(), 2)
    params, reset = drawn(network), np.zeros((T, B), bool)
    reset[3, 0] = True
    carry = jax.tree.map(lambda x: x + 1.0, network.initial_carry(B))
    return params, SEEN, reset, network.apply(params, carry, {"seen": SEEN}, reset)


def played(architecture):
    """The same in float64, but for what was said."""
    params, seen, reset, out = said(architecture)
    params, seen = jax.tree.map(lambda x: np.asarray(x, np.float64), (params, seen))
    return params, seen, np.asarray(reset), out


def test_an_architecture_of_one_s_own_computes_what_its_parts_say():
    """The policy and both critics, of features with a memory, by hand in float64."""
    own = networks.ActorCritic(Scaled(), Sum(), Doubtful())
    params, seen, reset, out = played(own)
    features = summed(2.0 * seen, reset, np.ones((B, 3)))
    head = params["actor"]["head"]
    loc, rho = np.split(features @ head["kernel"] + head["bias"], 2, axis=-1)
    chex.assert_trees_all_close(out.policy.loc, loc, rtol=1e-5, atol=1e-6)
    scale = 0.5 + np.log1p(np.exp(rho))
    chex.assert_trees_all_close(out.policy.scale, scale, rtol=1e-5)
    heads = params["critic"]["heads"]["head"]
    value = np.einsum("tbf,cfn->tbcn", features, heads["kernel"]) + heads["bias"]
    chex.assert_trees_all_close(out.value.mean(), value[..., 0], rtol=1e-4, atol=1e-6)
    for owner in ("actor", "critic"):
        (carry,) = out.carry[owner]
        chex.assert_trees_all_close(carry, features[-1], rtol=1e-5)


def test_parts_of_one_s_own_have_the_parameters_that_they_make():
    """None for a torso or a memory that makes no layer, nor for a deviation."""
    params, *_ = played(networks.ActorCritic(Scaled(), Sum(), Doubtful()))
    assert {name: sorted(part) for name, part in params.items()} == {
        "actor": ["head"],
        "critic": ["heads"],
    }
    params, *_ = played(networks.ActorCritic(Scaled(), head=networks.TanhHead()))
    assert sorted(params["actor"]) == ["head", "log_std"]


@pytest.mark.parametrize(
    ("space", "action", "among"),
    [
        (Discrete(5), np.array(3), {3: [0, 1, 3, 4]}),
        (MultiDiscrete((2, 3)), np.array([1, 1]), {1: [0, 1], 3: [3, 4]}),
    ],
)
def test_a_head_of_one_s_own_chooses_from_what_is_legal(space, action, among):
    """What is chosen, among which logits: its log-probability by hand in float64."""
    own = networks.ActorCritic(Scaled(), head=Habit())
    network = networks.build(own, space, OBS, critics.Scalar(), 1)
    params = network.init(jax.random.key(0))
    actor = params["actor"]
    assert sorted(actor) == ["habit", "head"] and not actor["habit"].any()
    actor["habit"] = np.arange(5, dtype=np.float32)
    legal, reset = np.zeros((T, B, 5), bool), np.zeros((T, B), bool)
    legal[..., [0, 1, 3, 4]] = True

    @jax.jit
    def likely(params, action):
        policy = network.apply(params, (), {"seen": SEEN}, reset, legal).policy
        return policy.log_prob(action)

    head = jax.tree.map(np.float64, actor["head"])
    logits = 2.0 * np.float64(SEEN) @ head["kernel"] + head["bias"]
    logits = logits / 2.0 + np.arange(5.0)
    expected = sum(
        logits[..., chosen] - np.log(np.exp(logits[..., others]).sum(axis=-1))
        for chosen, others in among.items()
    )
    log_prob = likely(params, np.broadcast_to(action, (T, B, *action.shape)))
    chex.assert_trees_all_close(log_prob, expected, rtol=1e-5)


def test_members_have_a_torso_s_number_each():
    """A number of a torso is a number of the experiment: it may be traced."""
    architectures = [networks.ActorCritic(Scaled(factor)) for factor in (0.5, 3.0)]
    alone = jnp.stack([played(each)[-1].policy.loc for each in architectures])
    both = jax.tree.map(lambda *x: jnp.stack(x), *map(as_arrays, architectures))
    together = jax.vmap(lambda own: said(own)[-1].policy.loc)(both)
    chex.assert_trees_all_close(together, alone, rtol=1e-5, atol=1e-7)
