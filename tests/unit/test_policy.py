"""What a policy does by itself is what evaluations do with the whole agent."""

import dataclasses
import json

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from agents import LONGEST, Sights, agent

from ppo_jax import Policy, networks
from ppo_jax.envs.env import Box, Discrete, MultiDiscrete
from ppo_jax.errors import Misfit
from ppo_jax.ppo import acting, episodes
from ppo_jax.ppo.acting import Agent, Keys

COUNT, STEPS = 5, 60
ROUNDING = 0.0 if jax.__version_info__ < (0, 11) else 1e-6
SMALL = networks.Mlp(hidden=(8,))
BOX = Box((-1.0, -2.0), (1.5, 2.0))


def made(env, memory=None, seed=0, obs_clip=None, **network):
    architecture = networks.ActorCritic(SMALL, memory, **network)
    return agent(env, seed, obs_clip, network=architecture)


AGENTS = {
    "an LSTM in a box": made(
        Sights(space=BOX, broken=0.2), networks.Lstm(size=6, layers=2), obs_clip=2.0
    ),
    "a GRU in bfloat16, with masks": made(
        Sights(space=MultiDiscrete((2, 4)), forbids=True),
        networks.Gru(size=6),
        shared=True,
        compute_dtype="bfloat16",
    ),
    "no memory, several sights": made(
        Sights(sights=(("x", (2, 2)), ("count", (3,)), ("truth", (2,))), space=BOX),
        head=networks.TanhHead(),
        obs_clip=2.0,
        actor_obs=("x", "count"),
    ),
    "no memory, of all sights the one that breaks is not read": made(
        Sights(sights=(("count", (3,)), ("truth", (2,))), space=BOX, broken=0.2),
        obs_clip=2.0,
        actor_obs=("count",),
    ),
}
RECURRENT = AGENTS["an LSTM in a box"]


@jax.jit
def lived(learner, sampled):
    """What was seen and done in every step of an evaluation, `[STEPS, COUNT, ...]`."""

    def choice(policy, key):
        choices = acting.sampled(policy, key), acting.most_likely(policy, key)
        return jnp.where(sampled, *choices)

    network = learner.config.build()
    agent = Agent(learner, network, choice)

    def step(actor, key):
        keys = Keys(*(jax.random.split(k, COUNT) for k in jax.random.split(key)))
        deed = acting.act(agent, learner.config.env.step, actor, actor.carry, keys)
        done = deed.decision.move
        after = dataclasses.replace(
            actor,
            env_state=deed.env_state,
            obs=deed.timestep.obs,
            reset=deed.timestep.terminated | deed.timestep.truncated,
            carry=deed.decision.carry,
        )
        return after, ((actor.obs, actor.reset, deed.decision.mask), done)

    starts = jax.random.split(jax.random.key(1), COUNT)
    actor = acting.start(learner.config.env, network, starts)
    return jax.lax.scan(step, actor, keys_of_steps())[1]


def keys_of_steps():
    return jax.random.split(jax.random.key(2), STEPS)


@pytest.mark.parametrize("sampled", [False, True])
@pytest.mark.parametrize("name", AGENTS)
def test_a_policy_does_what_evaluations_do(name, sampled):
    """Over episodes that end and begin, with the same keys: to the bit, unless the
    compiler fuses the operations of the two programs in ways of their own."""
    (obs, reset, mask), done = jax.device_get(lived(AGENTS[name], sampled))
    assert reset[1:].any() and not reset[1:].all()

    @jax.jit
    def act(policy, *seen):
        def step(state, now):
            obs, reset, mask, key = now
            key = jax.random.split(key)[0] if sampled else None
            action, state = policy.act(state, obs, key, reset=reset, mask=mask)
            return state, action

        return jax.lax.scan(step, policy.init(COUNT), (*seen, keys_of_steps()))[1]

    acted = act(Policy.of(AGENTS[name]), obs, reset, mask)
    chex.assert_trees_all_close(acted, done, rtol=0.0, atol=ROUNDING)
    assert len(np.unique(done)) > 3  # It does one thing and another.


evaluate = jax.jit(episodes.run_episodes, static_argnums=(2, 3))
begin = jax.jit(jax.vmap(RECURRENT.config.env.reset))
move = jax.jit(jax.vmap(RECURRENT.config.env.step))


@pytest.mark.parametrize("sample", [False, True])
def test_returns_are_those_of_an_evaluation(sample):
    """With its keys, in environments of one's own."""
    policy = Policy.of(RECURRENT)
    returns, ended = evaluate(RECURRENT, jax.random.key(3), COUNT, not sample)
    key, key_start = jax.random.split(jax.random.key(3))
    act = jax.jit(policy.act)
    obs, env_state = begin(jax.random.split(key_start, COUNT))
    state, over, total = policy.init(COUNT), np.zeros(COUNT, bool), np.zeros(COUNT)
    reset = np.zeros(COUNT, bool)
    for time in range(LONGEST):
        key_action, key_env = jax.random.split(jax.random.fold_in(key, time))
        action, state = act(state, obs, key_action if sample else None, reset=reset)
        keys = jax.random.split(key_env, COUNT)
        timestep, env_state = move(keys, env_state, action)
        timestep = jax.device_get(timestep)
        total += np.where(over, 0.0, timestep.reward)
        obs, reset = timestep.obs, timestep.terminated | timestep.truncated
        over |= reset
    assert ended.all() and over.all() and np.ptp(returns) > 0.1
    np.testing.assert_allclose(total, returns, rtol=1e-6, atol=1e-6)


def test_it_knows_nothing_of_the_environment():
    policy = Policy.of(RECURRENT)
    assert "Sights" not in repr(jax.tree.structure(policy))
    params = jax.tree.leaves(RECURRENT.params["actor"])
    moments = jax.tree.leaves(RECURRENT.obs_moments)
    bound, deviation = policy.obs_clip, policy.architecture.head.init_std
    expected = [*params, *moments, bound, deviation]
    assert len(jax.tree.leaves(policy)) == len(expected)


def test_the_number_of_choices_may_be_one_of_numpy():
    """As a product is; an export writes it down."""
    policy = Policy.of(made(Sights(space=Discrete(np.prod((2, 3))))))
    assert json.dumps(policy.action_space.n) == "6"


def test_bounds_may_be_arrays():
    """Or lists, as an environment has them; programs take the policy all the same."""
    bounds = (np.float32([-1, -2]), [1.5, 2.0])
    policy = Policy.of(made(Sights(space=Box(*bounds))))
    act = jax.jit(lambda policy, state, obs: policy.act(state, obs)[0])
    action = act(policy, policy.init(2), OBS + 100)
    assert policy.action_space == BOX and (np.abs(action) <= 2).all()


def test_the_first_observation_after_init_is_the_first_of_an_episode():
    """Whatever is in the memory then; without `reset` the episode goes on."""
    policy = Policy.of(RECURRENT)
    act = jax.jit(policy.act)
    fresh, obs = policy.init(2), np.ones((2, 3), np.float32)
    first, after = act(fresh, obs)
    full = fresh.replace(carry=jax.tree.map(np.ones_like, fresh.carry))
    chex.assert_trees_all_equal(act(full, obs), (first, after))
    assert not after.reset.any()
    second, _ = act(after, obs)
    some, _ = act(after, obs, reset=np.array([True, False]))
    first, second = map(np.asarray, (first, second))
    chex.assert_trees_all_equal(some, np.stack([first[0], second[1]]))
    assert (first != second).all()


def test_policies_of_members_act_in_one_program():
    """Stacked, as an argument, with a state that is donated."""
    others = [
        made(RECURRENT.config.env, networks.Lstm(size=6), seed=seed, obs_clip=clip)
        for seed, clip in ((1, 1.0), (2, 3.0))
    ]
    learners = jax.tree.map(lambda *x: np.stack(x), *others)
    together = jax.jit(
        jax.vmap(lambda policy, state, obs: policy.act(state, obs)), donate_argnums=1
    )
    policies = jax.vmap(Policy.of)(learners)
    states = jax.vmap(lambda policy: policy.init(2))(policies)
    obs = np.ones((2, 2, 3), np.float32)
    action, after = together(policies, states, obs)
    again, _ = together(policies, after, obs)
    action, again = jax.device_get((action, again))
    assert after.carry[0][0].is_deleted()
    alone = jax.jit(lambda policy, state, obs: policy.act(state, obs))
    for member, learner in enumerate(others):
        policy = Policy.of(learner)
        expected, state = alone(policy, policy.init(2), obs[member])
        chex.assert_trees_all_close(action[member], expected, rtol=1e-6)
        expected, _ = alone(policy, state, obs[member])
        chex.assert_trees_all_close(again[member], expected, rtol=1e-6)
    assert np.abs(np.subtract(*action)).min() > 1e-3


OBS = np.zeros((2, 3), np.float32)
GIVEN = {
    "a row too few": (dict(obs=OBS[:1]), "obs: expected float32[2, 3], got float32[1"),
    "no row": (dict(obs=OBS[0]), "obs: expected float32[2, 3], got float32[3]"),
    "another size": (dict(obs=OBS[:, :2]), "obs: expected float32[2, 3], got float3"),
    "another type": (
        dict(obs=OBS.astype(np.float64)),
        "obs: expected float32[2, 3], got float64[2, 3]",
    ),
    "a structure": (
        dict(obs={"x": OBS}),
        "obs: expected float32[2, 3], got {'x': 'float32[2, 3]'}",
    ),
    "a number": (dict(obs=3.0), "obs: expected float32[2, 3], got a float"),
    "one reset": (
        dict(obs=OBS, reset=True),
        "reset: expected bool[2], got a bool",
    ),
    "whole numbers": (
        dict(obs=OBS, reset=np.zeros(2, int)),
        "reset: expected bool[2], got int64[2]",
    ),
    "no mask where actions are forbidden": (
        dict(obs=OBS),
        "mask: expected bool[2, 6], got None",
    ),
    "a seed": (dict(obs=OBS, key=0), "key: expected one key, such as jax.random.key(0"),
    "keys": (
        dict(obs=OBS, key=np.zeros((2, 2), np.uint32)),
        "key: expected one key, such as jax.random.key(0), got uint32[2, 2]",
    ),
    "no state": (dict(obs=OBS, state=OBS), "state: expected that of `init`, got float"),
    "a state of another policy": (
        dict(obs=OBS, state=Policy.of(AGENTS["no memory, several sights"]).init(2)),
        "state.carry: expected (('float32[2, 6]',),), got ()",
    ),
    "one mask": (
        dict(obs=OBS, mask=np.ones(6, bool)),
        "mask: expected bool[2, 6], got bool[6]",
    ),
}


@pytest.mark.parametrize("name", GIVEN)
def test_what_does_not_fit_is_shown_beside_what_would(name):
    given, said = GIVEN[name]
    policy = Policy.of(AGENTS["a GRU in bfloat16, with masks"])
    with pytest.raises(Misfit) as error:
        policy.act(**{"state": policy.init(2)} | given)
    assert str(error.value).startswith(said)


@pytest.mark.parametrize("n", [0, -1, 1.5, "2"])
def test_without_an_episode_nothing_begins(n):
    with pytest.raises(Misfit, match=f"n: expected at least 1, got {n!r}"):
        Policy.of(RECURRENT).init(n)


def test_real_actions_have_no_mask_and_trees_are_shown_whole():
    policy = Policy.of(AGENTS["no memory, several sights"])
    obs = {"x": np.zeros((2, 2, 2), np.float32), "count": np.zeros((2, 3), np.int32)}
    expected = r"mask: expected None, got bool\[2, 2\]"
    with pytest.raises(Misfit, match=expected):
        policy.act(policy.init(2), obs, mask=np.ones((2, 2), bool))
    expected = r"'x': 'float32\[2, 2, 2\]'}, got {'x': 'float32\[2, 2, 2\]'}"
    with pytest.raises(Misfit, match=expected):
        policy.act(policy.init(2), {"x": obs["x"]})


def test_actions_are_as_likely_as_the_policy_says():
    """Of one state, drawn often: shares of three choices against their logits."""
    learner = made(Sights(space=Discrete(3)))
    policy, obs = Policy.of(learner), np.ones((20_000, 3), np.float32)
    action, _ = jax.jit(policy.act)(policy.init(len(obs)), obs, jax.random.key(5))
    apply = jax.jit(learner.config.build().apply)
    out = apply(learner.params, (), obs[None, :1], np.ones((1, 1), bool))
    shares = np.bincount(np.asarray(action), minlength=3) / len(obs)
    odds = np.exp(np.squeeze(out.policy.logits))
    expected = odds / odds.sum()
    np.testing.assert_allclose(shares, expected, atol=5 * 0.5 / len(obs) ** 0.5)
