"""`check` passes what is right and names what is wrong, one defect at a time."""

import ast
import re
from typing import Any

import jax.numpy as jnp
import pytest
from gymnasium import spaces
from walks import Place, Walk, changed, fact, findings, having, moved

from ppo_jax import envs
from ppo_jax.component import component
from ppo_jax.envs import probes


def test_a_healthy_environment_passes():
    assert envs.check(Walk()) is None
    assert envs.check(Walk(), steps=5, num_envs=1, seed=7) is None


@pytest.mark.parametrize(
    ("env", "finding"),
    [
        (changed(reward=lambda t: t.reward[None]), "reward: got float32[1], expected"),
        (changed(reward=lambda t: jnp.int32(1)), "reward: got int32[], expected float"),
        (changed(terminated=lambda t: jnp.float32(0)), "terminated: got float32[]"),
        (changed(truncated=lambda t: t.truncated[None]), "truncated: got bool[1]"),
        (changed(weight=lambda t: jnp.ones(2)), "weight: got float32[2]"),
        (changed(group=lambda t: 1.5), "group: got float32[], expected int32[]"),
        (changed(obs=lambda t: t.obs[0]), "obs: got float32[], expected float32[1]"),
        (changed(final_obs=lambda t: {"x": t.obs}), "final_obs: got the structure"),
        (moved(lambda s: s._replace(time=1.0 * s.time)), "state.time: got float32[]"),
        (moved(tuple), "state: got the structure"),
        (
            having(step=lambda *_: None),
            "step: got None, expected (Timestep, state)",
        ),
        (having(reset=lambda *_: jnp.ones(1)), "expected (obs, state)"),
        (
            having(renew=lambda self, key, state: state._replace(time=1.0)),
            "renew: state.time: got float32[], expected int32[]",
        ),
        (
            having(action_mask=lambda self, state: jnp.ones(2, bool)),
            "action_mask: got bool[2], expected bool[3]",
        ),
        (
            having(action_mask=lambda self, state: jnp.ones(3)),
            "action_mask: got float32[3], expected bool[3]",
        ),
        (
            having(
                action_mask=lambda self, state: jnp.ones(3, bool),
                action_space=fact(envs.Box((0.0,), (1.0,))),
            ),
            "action_mask: got a mask, expected None",
        ),
    ],
)
def test_types_that_do_not_fit_are_found(env, finding):
    assert finding in findings(env)


def test_types_that_do_not_fit_are_found_within_a_wrapper():
    """By the name of the leaf, not where its two types meet."""
    env = moved(lambda s: s._replace(time=1.0 * s.time))
    found = findings(envs.TimeLimit(env=env, limit=3))
    assert "state.env.time: got float32[], expected int32[]" in found


def test_weak_types_are_found():
    def reset(self, key):
        return jnp.zeros(1), Place(0.0, 0)

    def renew(self, key, state):
        return state._replace(time=2)

    found = findings(having(reset=reset))
    assert "renew: state.time: got a weak int32" in findings(having(renew=renew))
    assert "reset: state.at: got a weak float32" in found
    assert "reset: state.time: got a weak int32" in found
    assert "jnp.asarray(x, jnp.int32)" in found


def test_an_empty_environment_is_told_what_it_lacks():
    @component
    class Empty(envs.Env):
        pass

    said = "Empty.action_space: missing; every Env needs one of its own"
    assert said in findings(Empty())
    still = component(
        type(
            "Still",
            (envs.Env,),
            {
                "__module__": __name__,
                "action_space": fact(envs.Discrete(1)),
                "reset": lambda self, key: (jnp.ones(1), ()),
            },
        )
    )()
    assert "transition: got none" in findings(still)


@pytest.mark.parametrize(
    "space",
    [
        envs.Discrete(0),
        envs.MultiDiscrete(()),
        envs.MultiDiscrete((2, 0)),
        envs.Box((0.0,), (0.0,)),
        envs.Box((0.0,), (1.0, 2.0)),
        envs.Box((), ()),
        envs.Discrete(2.0),
        envs.Discrete((2,)),
        envs.MultiDiscrete(2),
        envs.Box(-1.0, 1.0),
        envs.Box(((0.0, 0.0),), ((1.0, 1.0),)),
        3,
    ],
)
def test_impossible_action_spaces_are_found(space):
    found = findings(having(action_space=fact(space)))
    assert f"action_space: got {space!r}, expected" in found
    assert "as Box((-1.0,), (1.0,))" in found


def test_a_space_of_another_package_is_told_by_its_package():
    found = findings(having(action_space=fact(spaces.Discrete(2))))
    assert "action_space: got Discrete(2) of gymnasium, expected Discrete(n)" in found
    assert found.endswith("all of ppo_jax.envs")


@pytest.mark.parametrize("limit", [0, 2.5, None])
def test_limits_are_positive_whole_numbers(limit):
    env = having(min_steps_to_truncation=fact(limit))
    assert "expected an int from 1 up" in findings(env)


def test_facts_that_depend_on_numbers_are_found():
    bound = property(lambda self: envs.Box((-self.stride,), (self.stride,)))
    arrays = property(lambda self: envs.Box(jnp.array([-1.0, 0]), jnp.array([1.0, 1])))
    for space in (bound, arrays):
        found = findings(having(action_space=space))
        assert "got some that depend on a number, or are arrays of jax" in found


def test_unhashable_fields_are_found_at_any_depth():
    @component
    class Table(Walk):
        rows: Any = None

    env = envs.TimeLimit(Table(rows=[1, 2]), 4)
    assert "TimeLimit.env.rows: got an unhashable list" in findings(env)


def test_all_findings_are_listed_at_once():
    env = changed(reward=lambda t: t.reward / 0, weight=lambda t: -t.weight)
    found = findings(env).splitlines()
    assert "2 problems" in found[0] and len(found) == 3


def test_what_is_carried_on_purpose_may_be_named():
    @component
    class Endless(probes.OneStep):
        """Counts its episodes."""

        def pay(self, key, state, action):
            return jnp.ones(())

        def step(self, key, state, action):
            timestep, _ = super().step(key, state, action)
            return timestep, state + 1

    assert "state: got 1 after an end, expected 0 to 0" in findings(Endless())
    envs.check(Endless(), steps=32, carried=("state",))


def test_deep_sea_passes_as_the_message_shows():
    """It carries statistics on purpose."""
    found = findings("DeepSea-bsuite", steps=None)
    (shown,) = re.findall(r"check\(env, carried=(\(.*\))\)", found)
    names = ast.literal_eval(shown)
    envs.check("DeepSea-bsuite", carried=names)
    assert all(name in str(envs.check.__doc__) for name in names)


@pytest.mark.parametrize("name", ["reset", "transition"])
def test_an_exception_is_shown_with_its_line(name):
    def fails(self, *_):
        return 1 / 0

    assert findings(having(**{name: fails})).endswith(
        f"- {name}: got ZeroDivisionError: division by zero, expected no error\n"
        f'  File "{__file__}", line {fails.__code__.co_firstlineno + 1}, in '
        f"{fails.__qualname__}\n    return 1 / 0"
    )


@pytest.mark.parametrize("wrong", [{"steps": 0}, {"num_envs": 0}, {"num_envs": 9999}])
def test_there_is_something_to_play(wrong):
    with pytest.raises(ValueError, match=next(iter(wrong))):
        envs.check(Walk(), **wrong)


def test_only_environments_are_checked():
    with pytest.raises(TypeError, match="expected an Env"):
        envs.check(3)
