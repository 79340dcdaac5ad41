"""Architectures through their public functions."""

import re

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from ppo_jax import critics, networks
from ppo_jax.envs.env import Box, Discrete, MultiDiscrete

SCALAR = critics.Scalar()
TWO_ACTIONS = Discrete(2)
OBS = jax.ShapeDtypeStruct((3,), jnp.float32)


def build(space=TWO_ACTIONS, num_critics=2, critic=SCALAR, obs=OBS, **fields):
    torso = fields.pop("torso", networks.Mlp(hidden=(8,)))
    architecture = networks.ActorCritic(torso=torso, **fields)
    return networks.build(architecture, space, obs, critic, num_critics)


def test_members_never_share_a_batched_factorisation():
    """On a CPU, jax 0.10's batched LAPACK calls wait for threads that they hold."""
    network = build(memory=networks.Gru(4), critic_hidden=(8,))
    keys = jax.random.split(jax.random.key(0), 3)
    text = jax.jit(jax.vmap(network.init)).lower(keys).as_text()
    calls = re.findall(r"@lapack_sgeqrf_ffi.*: \(tensor<([0-9x]+)xf32>", text)
    assert calls and all(shape.count("x") == 1 for shape in calls), calls
    together = jax.jit(jax.vmap(network.init))(keys)
    alone = jax.jit(network.init)(keys[1])
    chex.assert_trees_all_equal(jax.tree.map(lambda x: x[1], together), alone)


@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize("memory", [networks.Lstm(size=4, layers=2), networks.Gru(4)])
def test_a_sequence_equals_its_steps(memory, shared):
    """PROP-21.4: over time at once, or step by step; a reset clears the carry."""
    network = build(memory=memory, shared=shared)
    params = jax.jit(network.init)(jax.random.key(0))
    obs = jax.random.normal(jax.random.key(1), (6, 2, 3))
    reset = jnp.zeros((6, 2), bool).at[3, 0].set(True)
    whole = network.apply(params, network.initial_carry(2), obs, reset)
    carry, values = network.initial_carry(2), []
    for t in range(6):
        out = network.apply(params, carry, obs[t : t + 1], reset[t : t + 1])
        carry, values = out.carry, [*values, out.value.mean()[0]]
    chex.assert_trees_all_close(
        whole.value.mean(), jnp.stack(values), rtol=0, atol=1e-6
    )
    fresh = network.apply(params, network.initial_carry(2), obs[3:], reset[3:])
    got, expected = whole.value.mean()[3:, 0], fresh.value.mean()[:, 0]
    chex.assert_trees_all_close(got, expected, rtol=0, atol=1e-6)


@pytest.mark.parametrize("memory", [None, networks.Lstm(size=4)])
def test_nothing_is_shared_between_actor_and_critic(memory):
    """PROP-21.5: each loss reaches the parameters of its own side alone."""
    network = build(memory=memory)
    params = jax.jit(network.init)(jax.random.key(0))
    obs, reset = jnp.ones((2, 1, 3)), jnp.zeros((2, 1), bool)

    def out(params):
        return network.apply(params, network.initial_carry(1), obs, reset)

    policy = jax.grad(lambda p: out(p).policy.log_prob(jnp.zeros((2, 1), int)).sum())
    value = jax.grad(lambda p: out(p).value.mean().sum())
    for grads, mine, other in (
        (policy(params), "actor", "critic"),
        (value(params), "critic", "actor"),
    ):
        assert all(jnp.any(leaf != 0) for leaf in jax.tree.leaves(grads[mine]))
        assert not any(jnp.any(leaf != 0) for leaf in jax.tree.leaves(grads[other]))


@pytest.mark.parametrize("memory", [None, networks.Lstm(size=4)])
def test_a_shared_trunk_is_moved_by_both_losses(memory):
    """The policy is that of an actor on its own; critics read what its head reads."""
    fields = {"memory": memory, "critic_hidden": (5,)}
    alone, network = build(**fields), build(**fields, shared=True)
    params = jax.jit(network.init)(jax.random.key(0))
    assert params["critic"]["heads"].keys() == {"layers", "head"}
    obs, reset = jnp.ones((2, 1, 3)), jnp.zeros((2, 1), bool)
    carry = network.initial_carry(1)
    policy = network.apply(params, carry, obs, reset).policy
    separate = {**jax.jit(alone.init)(jax.random.key(1)), "actor": params["actor"]}
    expected = alone.apply(separate, alone.initial_carry(1), obs, reset).policy
    chex.assert_trees_all_equal(policy.logits, expected.logits)
    value = jax.grad(lambda p: network.apply(p, carry, obs, reset).value.mean().sum())(
        params
    )
    moved = {**value["actor"], "critic": value["critic"]}
    assert not any(jnp.any(leaf != 0) for leaf in jax.tree.leaves(moved.pop("head")))
    assert all(jnp.any(leaf != 0) for leaf in jax.tree.leaves(moved))


def test_critics_are_two():
    """Twins begin apart, and each has parameters of its own."""
    network = build(critic=critics.Quantile(num_quantiles=5))
    params = jax.jit(network.init)(jax.random.key(0))
    obs, reset = jnp.ones((1, 1, 3)), jnp.zeros((1, 1), bool)
    value = network.apply(params, (), obs, reset).value
    chex.assert_shape(value.outputs, (1, 1, 2, 5))
    assert not np.allclose(value.mean()[..., 0], value.mean()[..., 1])
    chex.assert_trees_all_equal(critics.pessimistic(value), value.mean().min(axis=-1))


@pytest.mark.parametrize(
    ("space", "head", "shape"),
    [
        (Discrete(3), networks.GaussianHead(), (2, 4)),
        (MultiDiscrete((2, 3)), networks.GaussianHead(), (2, 4, 2)),
        (Box((-1.0, 0.0), (1.0, 2.0)), networks.GaussianHead(), (2, 4, 2)),
        (Box((-1.0, 0.0), (1.0, 2.0)), networks.TanhHead(), (2, 4, 2)),
        (Box((-1.0, 0.0), (1.0, 2.0)), networks.SigmoidHead(), (2, 4, 2)),
    ],
)
def test_heads_fit_their_actions(space, head, shape):
    network = build(space, head=head)
    params = jax.jit(network.init)(jax.random.key(0))
    obs, reset = jnp.ones((2, 4, 3)), jnp.zeros((2, 4), bool)
    policy = network.apply(params, (), obs, reset).policy
    action = policy.sample(jax.random.key(1))
    chex.assert_shape(action, shape)
    chex.assert_shape(policy.log_prob(action), (2, 4))
    if isinstance(space, Box):
        fitted = policy.to_action(action)
        assert jnp.all(fitted >= jnp.array(space.low)[None, None])
        assert jnp.all(fitted <= jnp.array(space.high)[None, None])


def test_grids_and_vectors_go_through_one_torso():
    """Nested observations: grids are convolved, the rest is flat."""
    obs = {
        "grid": jax.ShapeDtypeStruct((5, 5, 2), jnp.bool_),
        "extra": jax.ShapeDtypeStruct((), jnp.int32),
    }
    network = build(obs=obs, torso=networks.Cnn(channels=(4,), hidden=(8,)))
    params = jax.jit(network.init)(jax.random.key(0))
    batch = jax.tree.map(lambda x: jnp.ones((3, 2, *x.shape), x.dtype), obs)
    out = network.apply(params, (), batch, jnp.zeros((3, 2), bool))
    chex.assert_shape(out.value.outputs, (3, 2, 2, 1))


@pytest.mark.parametrize("head", [networks.TanhHead(), networks.SigmoidHead()])
def test_deviations_of_squashed_heads_stay_in_range(head):
    """PROP-21.3: .85 at first, within (.2, 1.5) wherever training takes it."""
    network = build(Box((-1.0,), (1.0,)), head=head)
    params = jax.jit(network.init)(jax.random.key(0))
    obs, reset = jnp.ones((1, 1, 3)), jnp.zeros((1, 1), bool)

    def deviation(rho):
        actor = params["actor"] | {"log_std": jnp.full(1, rho)}
        policy = network.apply(params | {"actor": actor}, (), obs, reset).policy
        return float(policy.scale[0, 0, 0])

    assert params["actor"]["log_std"] == 0
    chex.assert_trees_all_close(deviation(0.0), 0.85, rtol=1e-6)
    deviations = [deviation(rho) for rho in (-1e4, -5.0, 5.0, 1e4)]
    assert deviations == sorted(deviations)
    chex.assert_trees_all_close(deviations[::3], [0.2, 1.5], rtol=1e-6)
