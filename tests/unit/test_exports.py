"""Every format of an export does what the policy does."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from agents import Sights, agent, seen

from ppo_jax import Policy, networks
from ppo_jax.envs.env import Box, Discrete, MultiDiscrete
from ppo_jax.exports import folder as folders
from ppo_jax.exports import program, runner

STEPS, COUNT = 200, 3
BOX = Box((-1.0, -2.0), (1.5, 2.0))
SEVERAL = MultiDiscrete((2, 4))
SHORT = (("short", (3,)),)
GRID = ((None, (5, 6, 2)),)
MIXED = (("grid", (5, 5, 2)), ("count", (3,)), ("other", (4, 4, 1)))
TRUTH = ("truth", (2,))
"""What critics alone read; an export does not want it."""


def made(torso, memory=None, head=None, obs_clip=None, reads=(), **env):
    head = head or networks.GaussianHead()
    network = networks.ActorCritic(torso, memory, head, actor_obs=reads)
    env = Sights(broken=0.1, **env)
    return env, Policy.of(agent(env, obs_clip=obs_clip, network=network))


def mlp(activation):
    return networks.Mlp(hidden=(8, 7), activation=activation)


def cnn(activation):
    return networks.Cnn(hidden=(8,), channels=(3, 4), activation=activation)


GRIDS = networks.Cnn(hidden=(8,), channels=(3,))
POLICIES = {
    "MLP, discrete, normalised": partial(made, mlp("tanh"), obs_clip=2.0),
    "MLP, LSTM, several choices, masks": partial(
        made, mlp("relu"), networks.Lstm(size=6, layers=2), space=SEVERAL, forbids=True
    ),
    "MLP, GRU, Gaussian, normalised": partial(
        made, mlp("leaky_relu"), networks.Gru(size=6), space=BOX, obs_clip=2.0
    ),
    "MLP of short sights, LSTM, sigmoid, normalised": partial(
        made,
        mlp("silu"),
        networks.Lstm(size=6),
        networks.SigmoidHead(),
        sights=SHORT,
        space=BOX,
        obs_clip=2.0,
    ),
    "MLP, LSTM, discrete, normalised, masks": partial(
        made,
        mlp("tanh"),
        networks.Lstm(size=6),
        space=Discrete(5),
        forbids=True,
        obs_clip=2.0,
    ),
    "MLP, squashed, normalised without a bound": partial(
        made, mlp("tanh"), head=networks.SquashedHead(), space=BOX, obs_clip=np.inf
    ),
    "CNN, several choices, normalised": partial(
        made, cnn("relu"), sights=GRID, space=SEVERAL, obs_clip=2.0
    ),
    "CNN, LSTM, tanh": partial(
        made,
        cnn("elu"),
        networks.Lstm(size=6),
        networks.TanhHead(),
        sights=GRID,
        space=BOX,
    ),
    "CNN, MinGru, discrete, normalised, masks": partial(
        made,
        cnn("gelu"),
        networks.MinGru(size=6, layers=2),
        sights=GRID,
        forbids=True,
        obs_clip=2.0,
    ),
    "CNN of several sights, GRU, several choices, normalised, masks": partial(
        made,
        GRIDS,
        networks.Gru(size=6, layers=2),
        reads=tuple(name for name, _ in MIXED),
        sights=(*MIXED, TRUTH),
        space=SEVERAL,
        forbids=True,
        obs_clip=2.0,
    ),
}


@pytest.fixture(scope="module", params=POLICIES)
def lived(request, tmp_path_factory):
    """A folder with an export, what was to be seen, and what its policy did."""
    pytest.importorskip("flatbuffers")
    env, policy = POLICIES[request.param]()
    folder = tmp_path_factory.mktemp("export")
    folders.write(folder, policy, "all", {"run": request.param})
    obs, *rest = seen(env, STEPS, COUNT)
    sights = policy.architecture.of_actor(obs), *rest

    def step(state, now):
        obs, reset, mask = now
        action, state = policy.act(state, obs, reset=reset, mask=mask)
        return state, (action, tuple(jax.tree.leaves(state.carry)))

    def live(*sights):
        return jax.lax.scan(step, policy.init(COUNT), sights)[1]

    return folder, sights, jax.device_get(jax.jit(live)(*sights))


def require_same(found, expected):
    """Actions and carries of all steps."""
    actions, carries = expected
    assert len(np.unique(actions)) > 1 and found[0].dtype == actions.dtype
    for got, wanted in zip(
        jax.tree.leaves(found), jax.tree.leaves(expected), strict=True
    ):
        np.testing.assert_allclose(got, wanted, rtol=0, atol=1e-5)
    assert all(np.ptp(carry) > 0.1 for carry in carries)


def test_the_runner_does_what_the_policy_does(lived):
    """With NumPy alone, over 200 steps with resets and broken observations."""
    folder, sights, expected = lived
    policy = runner.Policy(folder)
    state, found = policy.init(COUNT), []
    for t in range(STEPS):
        obs, reset, mask = jax.tree.map(lambda x, t=t: x[t], sights)
        action, state = policy.act(state, obs, reset=reset, mask=mask)
        found.append((action, state.carry))
    require_same(jax.tree.map(lambda *x: np.stack(x), *found), expected)


def test_the_program_does_what_the_policy_does(lived):
    """StableHLO from disk, whatever the number of episodes."""
    folder, (obs, reset, mask), expected = lived
    call = program.load(folder)
    said = runner.read(folder)
    masks = [] if mask is None else [mask]

    def step(carry, now):
        leaves, reset, *mask = now
        action, carry = call(carry, leaves, reset, *mask)
        return carry, (action, carry)

    def zeros(n):
        return tuple(jnp.zeros((n, *x["shape"])) for x in said["carry"])

    now = (tuple(jax.tree.leaves(obs)), reset, *masks)
    found = jax.jit(lambda *now: jax.lax.scan(step, zeros(COUNT), now)[1])(*now)
    require_same(jax.device_get(found), expected)
    one = jax.tree.map(lambda x: x[0, :1], now)
    action, _ = jax.eval_shape(call, zeros(1), *one)
    assert action.shape == (1, *said["action"]["shape"])
    assert str(action.dtype) == said["action"]["dtype"]
