"""Policy heads and the actions that they fit."""

from typing import Any

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from built import build, drawn

from ppo_jax import Config, networks
from ppo_jax.component import component
from ppo_jax.envs.env import Box, Discrete, MultiDiscrete
from ppo_jax.envs.probes import IdenticalRewards


@component
class Unbounded(IdenticalRewards):
    """Any number may be done, up to a limit."""

    limit: Any = np.inf

    @property
    def action_space(self):
        return Box((-self.limit,), (self.limit,))


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

    @jax.jit
    def act(params):
        obs, reset = jnp.ones((2, 4, 3)), jnp.zeros((2, 4), bool)
        policy = network.apply(params, (), obs, reset).policy
        action = policy.sample(jax.random.key(1))
        return action, policy.log_prob(action), policy.to_action(action)

    action, log_prob, fitted = jax.device_get(act(drawn(network)))
    chex.assert_shape(action, shape)
    chex.assert_shape(log_prob, (2, 4))
    if isinstance(space, Box):
        assert (fitted >= np.float32(space.low)).all()
        assert (fitted <= np.float32(space.high)).all()


@pytest.mark.parametrize("head", [networks.TanhHead(), networks.SigmoidHead()])
def test_deviations_of_squashed_heads_stay_in_range(head):
    """PROP-21.3: .85 at first, within (.2, 1.5) wherever training takes it."""
    network = build(Box((-1.0,), (1.0,)), head=head)
    params = jax.jit(network.init)(jax.random.key(0))

    @jax.jit
    def deviation(rho):
        actor = params["actor"] | {"log_std": jnp.full(1, rho)}
        obs, reset = jnp.ones((1, 1, 3)), jnp.zeros((1, 1), bool)
        policy = network.apply(params | {"actor": actor}, (), obs, reset).policy
        return policy.scale[0, 0, 0]

    assert params["actor"]["log_std"] == 0
    chex.assert_trees_all_close(deviation(0.0), 0.85, rtol=1e-6)
    deviations = [deviation(rho) for rho in (-1e4, -5.0, 5.0, 1e4)]
    assert deviations == sorted(deviations)
    chex.assert_trees_all_close(deviations[::3], [0.2, 1.5], rtol=1e-6)


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (
            lambda: networks.GaussianHead(init_std=0.0),
            "init_std: expected a number > 0",
        ),
        (lambda: networks.TanhHead(min_std=0.0), "min_std: expected a number > 0"),
        (lambda: networks.TanhHead(max_std=0.2), "max_std: expected more than min_std"),
        (
            lambda: networks.SigmoidHead(2.0),
            "max_std: expected more than min_std = 2.0",
        ),
    ],
)
def test_deviations_that_cannot_be_are_errors(make, said):
    with pytest.raises(ValueError, match=rf"^\w+Head\.{said}"):
        make()


@pytest.mark.parametrize("limit", [np.inf, float(np.finfo(np.float32).max)])
@pytest.mark.parametrize("head", [networks.TanhHead(), networks.SigmoidHead()])
def test_what_is_squashed_has_bounds(head, limit):
    env = Unbounded(limit=limit)
    expected = rf"Config\.network\.head: expected a {type(head).__name__} for finite"
    with pytest.raises(ValueError, match=expected):
        Config(env, network=networks.ActorCritic(head=head))
    Config(env)


def test_bounds_of_deviations_may_be_traced():
    """They are numbers: which of two is larger is not known then."""
    made = jax.jit(lambda low: networks.TanhHead(low).deviation(jnp.zeros(())))
    chex.assert_trees_all_close(made(0.5), 1.0, rtol=1e-6)
