"""Architectures as pure functions: what is shared, and what is not."""

import chex
import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from built import TWO_ACTIONS, build, drawn

from ppo_jax import critics, networks
from ppo_jax.component import component


def reach(params, *losses):
    """Which parameters each loss moves."""

    @jax.jit
    def slopes(params):
        return [jax.grad(loss)(params) for loss in losses]

    return jax.tree.map(lambda x: x.any(), jax.device_get(slopes(params)))


@pytest.mark.parametrize("memory", [None, networks.Lstm(size=4)])
def test_nothing_is_shared_between_actor_and_critic(memory):
    """PROP-21.5: each loss reaches the parameters of its own side alone."""
    network = build(memory=memory)
    params = drawn(network)
    obs, reset = np.ones((2, 1, 3), np.float32), np.zeros((2, 1), bool)

    def out(params):
        return network.apply(params, network.initial_carry(1), obs, reset)

    def policy(params):
        return out(params).policy.log_prob(np.zeros((2, 1), int)).sum()

    def value(params):
        return out(params).value.mean().sum()

    by_policy, by_value = reach(params, policy, value)
    assert all(jax.tree.leaves((by_policy["actor"], by_value["critic"])))
    assert not any(jax.tree.leaves((by_policy["critic"], by_value["actor"])))


@pytest.mark.parametrize("memory", [None, networks.Lstm(size=4)])
def test_a_shared_trunk_is_moved_by_both_losses(memory):
    """The policy is that of an actor on its own; critics read what its head reads."""
    fields = {"memory": memory, "critic_hidden": (5,)}
    alone, network = build(**fields), build(**fields, shared=True)
    params = drawn(network)
    assert params["critic"]["heads"].keys() == {"layers", "head"}
    obs, reset = np.ones((2, 1, 3), np.float32), np.zeros((2, 1), bool)
    carry = network.initial_carry(1)
    policy = network.apply(params, carry, obs, reset).policy
    others = jax.eval_shape(alone.init, jax.random.key(1))
    zeros = jax.tree.map(lambda x: np.zeros(x.shape, x.dtype), others)
    separate = {**zeros, "actor": params["actor"]}
    expected = alone.apply(separate, alone.initial_carry(1), obs, reset).policy
    chex.assert_trees_all_equal(policy.logits, expected.logits)
    (reached,) = reach(
        params, lambda p: network.apply(p, carry, obs, reset).value.mean().sum()
    )
    moved = {**reached["actor"], "critic": reached["critic"]}
    assert not any(jax.tree.leaves(moved.pop("head")))
    assert all(jax.tree.leaves(moved))


SIGHTS = {
    name: jax.ShapeDtypeStruct((size,), jnp.float32)
    for name, size in {"near": 2, "far": 3, "truth": 4}.items()
}


@pytest.mark.parametrize("memory", [None, networks.Lstm(size=4)])
def test_actor_and_critics_read_what_they_are_told_to(memory):
    """What one does not read moves nothing of it, and has no parameters."""
    reads = {"actor_obs": ("far", "near"), "critic_obs": ("truth", "near")}
    network = build(obs=SIGHTS, memory=memory, **reads)
    params = drawn(network)
    critic = params["critic"]
    trunks = params["actor"]["trunk"], critic.get("trunk", critic["heads"])
    kernels = [x["torso"]["_Layers_0"]["Dense_0"]["kernel"] for x in trunks]
    assert [x.shape[-2:] for x in kernels] == [(5, 8), (6, 8)]

    @jax.jit
    def says(obs):
        carry, reset = network.initial_carry(1), jnp.zeros((2, 1), bool)
        out = network.apply(params, carry, obs, reset)
        return out.policy.logits, out.value.outputs

    obs = {name: np.ones((2, 1, *x.shape), np.float32) for name, x in SIGHTS.items()}
    before, moved = says(obs), {}
    for name in SIGHTS:
        after = says(obs | {name: 2 * obs[name]})
        moved[name] = [bool((a != b).any()) for a, b in zip(before, after, strict=True)]
    assert moved == {"near": [True, True], "far": [True, False], "truth": [False, True]}


def test_critics_are_two():
    """Twins begin apart, and each has parameters of its own."""
    network = build(critic=critics.Quantile(num_quantiles=5))
    params = jax.jit(network.init)(jax.random.key(0))
    obs, reset = np.ones((1, 1, 3), np.float32), np.zeros((1, 1), bool)
    value = jax.jit(network.apply)(params, (), obs, reset).value
    chex.assert_shape(value.outputs, (1, 1, 2, 5))
    assert not np.allclose(value.mean()[..., 0], value.mean()[..., 1])
    chex.assert_trees_all_equal(critics.pessimistic(value), value.mean().min(axis=-1))


@pytest.mark.parametrize("shared", [False, True])
def test_an_actor_by_itself_says_what_it_says_with_critics(shared):
    """Of one step, with what is legal and where episodes begin."""
    fields = {"memory": networks.Gru(size=4), "shared": shared}
    network = build(**fields)
    params = drawn(network)
    rng = np.random.default_rng(0)
    obs, carry = rng.normal(size=(2, 3)), rng.normal(size=(2, 4))
    obs, carry = np.float32(obs), np.float32(carry)
    before = network.initial_carry(2) | {"actor": ((carry,),)}
    reset, mask = np.array([True, False]), np.array([[True, False], [True, True]])
    expected = network.apply(params, before, obs[None], reset[None], mask[None])
    architecture = networks.ActorCritic(networks.Mlp(hidden=(8,)), **fields)
    policy, after = networks.act(
        *(architecture, TWO_ACTIONS, params["actor"], ((carry,),), obs, reset, mask)
    )
    chex.assert_trees_all_equal(policy.logits, expected.policy.logits[0])
    chex.assert_trees_all_equal(after, expected.carry["actor"])


def rounded(x):
    """The nearest bfloat16, as float64."""
    return np.asarray(x, jnp.bfloat16).astype(np.float64)


def test_hidden_layers_round_and_the_last_ones_do_not():
    """By hand: operands and results of hidden layers are bfloat16, sums are exact."""
    network = build(compute_dtype="bfloat16", num_critics=1)
    params = drawn(network)
    obs = np.float32(np.random.default_rng(1).normal(size=(4, 2, 3)))
    said = network.apply(params, (), obs, np.zeros((4, 2), bool))
    (layer,) = params["actor"]["trunk"]["torso"]["_Layers_0"].values()
    summed = rounded(rounded(obs) @ rounded(layer["kernel"])) + rounded(layer["bias"])
    features = rounded(np.tanh(rounded(summed)))
    head = jax.tree.map(np.float64, params["actor"]["head"])
    logits = features @ head["kernel"] + head["bias"]
    chex.assert_trees_all_close(said.policy.logits, logits, rtol=0, atol=1e-5)
    plain = build(num_critics=1).apply(params, (), obs, np.zeros((4, 2), bool))
    assert np.abs(plain.policy.logits - logits).max() > 1e-3


def test_a_layer_of_plain_flax_computes_in_the_same_type():
    """And the features of a torso that says nothing of types are short."""
    seen = []

    @component
    class Plain(networks.Torso):
        def __call__(self, obs):
            seen.append(nn.Dense(4)(obs))
            return seen[-1]

    network = build(torso=Plain(), compute_dtype="bfloat16")
    params = jax.eval_shape(network.init, jax.random.key(0))
    assert seen.pop().dtype == jnp.float32
    del seen[:]
    obs, reset = jnp.ones((1, 1, 3)), jnp.zeros((1, 1), bool)
    jax.eval_shape(network.apply, params, (), obs, reset)
    assert {x.dtype for x in seen} == {jnp.dtype("bfloat16")}
