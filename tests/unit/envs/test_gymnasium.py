"""Environments of gymnasium, as experiments have them."""

import pickle

import gymnasium
import gyms
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from ppo_jax import Config, envs
from ppo_jax.component import numbers, replace_at
from ppo_jax.errors import Misfit

WALK = envs.Gymnasium("Walk-v0", params={"fault": 1, "name": "stroll"})


def test_an_id_of_the_suite_is_an_environment():
    env = envs.make("gymnasium/CartPole-v1")
    assert env == envs.Gymnasium("CartPole-v1") == pickle.loads(pickle.dumps(env))
    assert env.action_space == envs.Discrete(2) and env.simulated
    assert (env.max_episode_steps, env.min_steps_to_truncation) == (500, 500)
    shapes = jax.eval_shape(env.reset, jax.random.key(0))[0]
    assert shapes == jax.ShapeDtypeStruct((4,), "float32")


def test_floats_are_numbers_and_the_rest_is_structure():
    assert numbers(WALK) == {"params.fault": 1.0}
    structure = jax.tree.structure
    assert structure(WALK) == structure(replace_at(WALK, "params.fault", 2.0))
    for other in ({"name": "stroll"}, {"fault": 1.0, "name": "hike"}):
        assert structure(WALK) != structure(envs.Gymnasium("Walk-v0", params=other))


def test_an_episode_is_as_long_as_it_is_told():
    assert WALK.max_episode_steps == gyms.LIMIT
    env = envs.Gymnasium("CartPole-v1", params={"max_episode_steps": 7})
    assert env.max_episode_steps == 7
    assert envs.make("gymnasium/Blackjack-v1").max_episode_steps is None
    assert envs.make("gymnasium/Blackjack-v1").min_steps_to_truncation == 1


def test_what_the_first_reset_says_of_actions_is_known():
    """Whether some can be forbidden, and in which form."""
    for name, expected in ((gyms.TAXI, [True] * 6), ("gymnasium/Walk-v0", None)):
        env = envs.make(name)
        _, state = env.reset(jax.random.key(0))
        mask = env.action_mask(state)
        assert (None if mask is None else mask.tolist()) == expected
        assert Config(env).outline.env.action_mask(jnp.int32(0)) is None or expected


class Several(gymnasium.Env):
    observation_space = gymnasium.spaces.Box(-1.0, 1.0, (1,))
    action_space = gymnasium.spaces.Dict({"a": gymnasium.spaces.Discrete(2)})


class Text(Several):
    observation_space = gymnasium.spaces.Text(4)
    action_space = gymnasium.spaces.Discrete(2)


class Unmade(Several):
    def __init__(self):
        raise OSError("no such licence")


class Old(Text):
    observation_space = gymnasium.spaces.Box(-1.0, 1.0, (1,))

    def reset(self, seed=None, options=None):
        return np.zeros(1, np.float32)


class Ill(Old):
    def reset(self, seed=None, options=None):
        raise OSError("no such map")


class Longer(Old):
    def reset(self, seed=None, options=None):
        return np.zeros(1), {"action_mask": np.ones(3)}


class Real(Longer):
    action_space = gymnasium.spaces.Box(-1.0, 1.0, (3,))


class Four(Old):
    def reset(self, seed=None, options=None):
        return np.zeros(1), {}

    def step(self, action):
        return np.zeros(1), 0.0, False, {}


class Wet(Four):
    def step(self, action):
        raise OSError("the floor is wet")


for kind in (Several, Text, Unmade, Old, Ill, Longer, Real, Four, Wet):
    gymnasium.register(f"{kind.__name__}-v0", entry_point=kind)
gymnasium.register("Limited-v0", entry_point=Four, max_episode_steps=5)
FOUR = "step: expected an observation, a reward, terminated, truncated and an info; not"

MISTAKES = {
    "CartPol-v1": "'CartPol-v1'; the closest is 'CartPole-v1'",
    "CartPole-v9": "'CartPole-v9'; the closest is 'CartPole-v1'",
    "absent:Mine-v0": "'absent:Mine-v0': ModuleNotFoundError: No module named 'absent'",
    "Several-v0": "'Several-v0': expected one space for actions, got Dict",
    "Text-v0": "'Text-v0': expected observations of a shape, got Text",
    "Unmade-v0": "'Unmade-v0': OSError: no such licence",
    "Old-v0": "'Old-v0': expected an observation and a dictionary, as resets of gymnas",
    "Ill-v0": "'Ill-v0': OSError: no such map\n  File ",
    "Longer-v0": "'Longer-v0': info['action_mask']: expected 2 zeros and ones, got arr",
    "Real-v0": "'Real-v0': info['action_mask']: got a mask, expected none for real act",
    "Four-v0": f"'Four-v0': ValueError: {FOUR} enough values",
    "Limited-v0": f"'Limited-v0': ValueError: {FOUR} enough values",
    "Wet-v0": "'Wet-v0': OSError: the floor is wet\n  File ",
    "HalfCheetah-v3": "'HalfCheetah-v3': ImportError",
}


@pytest.mark.parametrize("name", MISTAKES)
def test_what_cannot_be_made_is_named(name):
    with pytest.raises(ValueError) as error:
        envs.make(f"gymnasium/{name}")
    assert str(error.value).startswith("Gymnasium.id: ")
    assert MISTAKES[name] in str(error.value)


def test_an_extra_that_is_missing_is_named(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "mujoco", None)
    with pytest.raises(ValueError, match=r"needs mujoco.*pip install 'ppo_jax\[mujoc"):
        envs.make("gymnasium/HalfCheetah-v5")


def test_parameters_are_those_that_there_are():
    with pytest.raises(TypeError, match="the closest is 'fault'"):
        envs.Gymnasium("Walk-v0", params={"faults": 1.0})
    with pytest.raises(TypeError, match="fault: expected float"):
        envs.Gymnasium("Walk-v0", params={"fault": "much"})


def test_what_is_registered_again_is_looked_at_again(monkeypatch):
    """Also if the same class makes it."""
    limits = []
    for limit in (5, 7):
        spec = gymnasium.envs.registration.EnvSpec(
            "Again-v0", entry_point="gyms:Walk", max_episode_steps=limit
        )
        monkeypatch.setitem(gymnasium.registry, "Again-v0", spec)
        limits.append(envs.Gymnasium("Again-v0").max_episode_steps)
    assert limits == [5, 7]


def test_no_program_steps_one():
    """Wrappers say so as they are made; all else when it is traced."""
    with pytest.raises(Misfit, match="simulators on the host take its steps"):
        jax.eval_shape(WALK.step, jax.random.key(0), (), np.int32(0))
    for wrapped in (
        lambda: envs.TimeLimit(WALK, 3),
        lambda: envs.ResetPool("gymnasium/CartPole-v1", 2),
        lambda: envs.MaskObservation(WALK, (0,)),
        lambda: envs.Faulty(WALK),
        lambda: envs.check(WALK),
    ):
        with pytest.raises(ValueError, match=r"env: expected .* programs step"):
            wrapped()


def test_an_outline_has_the_same_shapes():
    """So what is said of types, metrics and memory needs no simulator."""
    envs.check_types(WALK)
    outline = Config(WALK, num_envs=2).outline
    assert outline.env != WALK and outline.obs_spec() == Config(WALK).obs_spec()
    plain = Config("CartPole-v1")
    assert plain.outline is plain
