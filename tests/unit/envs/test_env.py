"""The protocol, and gymnax behind it."""

import subprocess
import sys
import warnings

import chex
import gymnax
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from gymnax.environments import environment, spaces
from gymnax.wrappers.purerl import GymnaxWrapper

from ppo_jax import envs
from ppo_jax.component import component
from ppo_jax.envs import gymnax as behind
from ppo_jax.envs import probes
from ppo_jax.envs.env import strong
from ppo_jax.errors import Misfit

HANDFUL = (
    "CartPole-v1",
    "Pendulum-v1",
    "MountainCarContinuous-v0",
    "FrozenLake-misc",
    "BernoulliBandit-misc",
    "MemoryChain-bsuite",
)
DOWNLOADS = "MNISTBandit-bsuite"
OTHERS = sorted({*gymnax.registered_envs} - {*HANDFUL, DOWNLOADS})
CARRIED = {"DeepSea-bsuite": ("state.total_bad_episodes", "state.denoised_return")}


def record(env, action, steps, key):
    """A run of one environment under a constant action, leaves `[T, ...]`."""

    def step(state, key):
        timestep, state = env.step(key, state, action)
        return state, timestep

    @jax.jit
    def run(key):
        key_reset, key_steps = jax.random.split(key)
        _, state = env.reset(key_reset)
        return jax.lax.scan(step, state, jax.random.split(key_steps, steps))[1]

    return jax.device_get(run(key))


def forget():
    """Drops the environments that were made."""
    behind._make.cache_clear()
    behind._load.cache_clear()


@pytest.mark.parametrize("env_id", HANDFUL)
def test_an_environment_of_gymnax_keeps_the_protocol(env_id):
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "no episode ended")
        envs.check(env_id)


@pytest.mark.slow
@pytest.mark.parametrize("env_id", OTHERS)
def test_every_other_environment_of_gymnax_keeps_the_protocol(env_id):
    steps = min(envs.make(env_id).max_episode_steps + 1, 1001)
    with warnings.catch_warnings(), jax.numpy_rank_promotion("allow"):
        warnings.filterwarnings("ignore", "no episode ended")
        envs.check(env_id, steps, carried=CARRIED.get(env_id, ()))


@pytest.mark.parametrize(
    ("env_id", "space"),
    [
        ("CartPole-v1", envs.Discrete(2)),
        ("Pendulum-v1", envs.Box((-2.0,), (2.0,))),
        ("Reacher-misc", envs.Box((-1.0, -1.0), (1.0, 1.0))),
    ],
)
def test_action_spaces_are_static_even_inside_a_program(env_id, space):
    env = envs.make(env_id)
    forget()  # So that it is made in the middle of a trace.
    seen = []
    jax.eval_shape(lambda: seen.append(env.action_space))
    assert seen == [space] == [env.action_space]
    assert hash(env.action_space)


def test_rewards_are_floats_and_observations_keep_their_type(key):
    """Integer rewards become float32; a scalar integer observation stays one."""
    env = envs.make("FrozenLake-misc")
    obs, state = jax.eval_shape(env.reset, key)
    chex.assert_shape(obs, ())
    chex.assert_type(obs, jnp.int32)
    bandit = envs.make("BernoulliBandit-misc")
    obs, state = jax.eval_shape(bandit.reset, key)
    timestep, _ = jax.eval_shape(bandit.step, key, state, jnp.array(0))
    chex.assert_shape(timestep.reward, ())
    chex.assert_type(timestep.reward, jnp.float32)


def test_pendulum_is_truncated_and_never_terminated(key):
    env = envs.make("Pendulum-v1")
    assert env.min_steps_to_truncation == env.max_episode_steps == 200
    run = record(env, np.zeros(1, np.float32), 400, key)
    assert np.flatnonzero(run.truncated).tolist() == [199, 399]
    assert not run.terminated.any()
    differ = (run.obs != run.final_obs).any(axis=1)
    assert np.flatnonzero(differ).tolist() == [199, 399]


def test_cartpole_shows_both_sides_of_an_end(key):
    """R-A23: boundaries come from the step's flags."""
    run = record(envs.make("CartPole-v1"), np.array(1), 64, key)
    done = run.terminated
    assert done.any() and not run.truncated.any()
    assert (np.abs(run.obs[done]) <= 0.05).all()  # CartPole starts near 0.
    assert (np.abs(run.final_obs[done]).max(axis=1) > 0.2).all()
    assert (run.obs == run.final_obs).all(axis=1)[~done].all()


def test_deep_sea_terminates_and_truncates_at_once(key):
    run = record(envs.make("DeepSea-bsuite"), np.array(0), 17, key)
    assert np.flatnonzero(run.terminated).tolist() == [7, 15]
    assert np.flatnonzero(run.truncated).tolist() == [7, 15]


def test_an_environment_made_inside_a_program_can_be_used_outside(key):
    env = envs.make("DeepSea-bsuite")
    forget()
    inside, _ = jax.jit(env.reset)(key)
    outside, _ = env.reset(key)
    assert (inside == outside).all()


def test_an_unknown_id_names_the_closest():
    with pytest.raises(ValueError, match="closest is 'CartPole-v1'"):
        envs.make("CartPol-v1")


def test_make_takes_environments_and_ids_only():
    env = probes.RecallCue()
    assert envs.make(env) is env
    assert envs.make("CartPole-v1") == envs.Gymnax("CartPole-v1")
    with pytest.raises(TypeError, match=r"gymnax\.register"):
        envs.make(gymnax.make("CartPole-v1")[0])


class Talkative(environment.Environment):
    """Says everything that `info` can say, in the wrong types and shapes."""

    @property
    def default_params(self):
        return environment.EnvParams(max_steps_in_episode=2.5)

    def action_space(self, params=None):
        return spaces.Discrete(3)

    def action_mask(self, state, params):
        return jnp.array([1, 0, 1])

    def reset_env(self, key, params):
        return jnp.zeros(2), environment.EnvState(time=0)

    def step_env(self, key, state, action, params):
        state = environment.EnvState(time=state.time + 1)
        info = {"weight": 0, "cost": jnp.array([2]), "group": 7.0, "other": 1}
        return jnp.ones(2), state, jnp.array([1]), jnp.array(False), info

    def is_truncated(self, state, params):
        return state.time >= 2


class Quiet(Talkative):
    is_truncated = environment.Environment.is_truncated


class Several(Talkative):
    def action_space(self, params=None):
        return spaces.Tuple([spaces.Discrete(2)])


FACTORIES = {
    "Talkative-v0": Talkative,
    "Quiet-v0": Quiet,
    "Several-v0": Several,
    "Wrapped-v0": lambda: GymnaxWrapper(Quiet()),
}
for name, factory in FACTORIES.items():
    if name not in gymnax.registered_envs:
        gymnax.register(name, factory)


def test_info_can_weigh_group_and_price_a_step(key):
    env = envs.make("Talkative-v0")
    _, state = env.reset(key)
    timestep, state = env.step(key, state, jnp.array(0))
    said = [timestep.weight, timestep.cost, timestep.group]
    assert [x.item() for x in said] == [0, 2, 7]
    chex.assert_shape(said, ())
    chex.assert_type(said, [jnp.float32, jnp.float32, jnp.int32])
    chex.assert_shape([timestep.reward, timestep.terminated], ())
    assert env.action_mask(state).tolist() == [True, False, True]


def test_limits_are_known_only_where_gymnax_counts_steps():
    limits = {
        env_id: (env.min_steps_to_truncation, env.max_episode_steps)
        for env_id in ("Talkative-v0", "Quiet-v0", "Wrapped-v0")
        for env in [envs.make(env_id)]
    }
    assert limits == {
        "Talkative-v0": (1, None),  # It truncates by a rule of its own.
        "Quiet-v0": (3, 3),  # After 2.5 steps.
        "Wrapped-v0": (1, None),  # A wrapper may do anything.
    }


def test_an_action_space_of_several_parts_is_refused():
    with pytest.raises(ValueError, match="Several-v0: expected one space"):
        _ = envs.make("Several-v0").action_space


@component
class Count(envs.Env):
    """Counts, and ends on command: by action 1 terminated, by action 2 truncated."""

    start: float = 0.0

    @property
    def action_space(self):
        return envs.Discrete(3)

    def reset(self, key):
        state = jnp.asarray(self.start, jnp.float32)
        return state[None], state

    def transition(self, key, state, action):
        state = state + 1
        return envs.outcome(state[None], state, action == 1, action == 2), state


@pytest.mark.parametrize("action", [0, 1, 2])
def test_a_step_resets_when_an_episode_ends(key, action):
    env = Count(start=5.0)
    timestep, state = env.step(key, env.reset(key)[1], jnp.array(action))
    assert timestep.final_obs.tolist() == [6.0]
    assert timestep.obs.tolist() == [5.0 if action else 6.0]
    assert state.item() == timestep.obs.item()
    assert (timestep.terminated, timestep.truncated) == (action == 1, action == 2)


def test_a_population_is_spread_over_the_numbers_of_an_environment(key):
    members = Count(start=jnp.array([1.0, 2.0]))
    obs, _ = jax.vmap(lambda env: env.reset(key))(members)
    assert obs.tolist() == [[1.0], [2.0]]


def test_a_new_episode_is_drawn_from_the_step_s_key(key):
    env = probes.Target()
    _, state = env.reset(key)

    @jax.vmap
    def begun(key):
        return env.step(key, state, jnp.zeros(1))[0].obs

    obs = jax.jit(begun)(jax.random.split(key, 8))
    assert len(np.unique(obs)) == 8


def test_an_outcome_has_strong_types():
    timestep = envs.outcome({"a": 0, "b": 0.0}, reward=1, terminated=1, group=True)
    assert not any(x.weak_type for x in jax.tree.leaves(timestep))
    types = [jnp.float32, bool, bool, jnp.float32, jnp.float32, jnp.int32]
    chex.assert_type(timestep[2:], types)


@pytest.mark.parametrize("flag", ["terminated", "truncated"])
@pytest.mark.parametrize(
    "given", [float("nan"), 0.0, np.float32(1), jnp.zeros(()), None]
)
def test_a_float_is_no_flag(flag, given):
    """A NaN would end an episode."""
    said = rf"^outcome: {flag}: expected a truth value, such as x > 0, got "
    with pytest.raises(Misfit, match=said):
        envs.outcome(0.0, reward=1, **{flag: given})


def test_strong_keeps_values_and_keys(key):
    tree = strong({"key": key, "time": 3, "x": jnp.arange(2)})
    assert (tree["key"] == key) and tree["time"] == 3 and tree["x"].tolist() == [0, 1]


def test_gymnax_is_imported_at_first_use():
    code = "import sys, ppo_jax.envs; sys.exit('gymnax' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], timeout=120).returncode == 0
