"""`check` passes what is right and names what is wrong, one defect at a time."""

import ast
import dataclasses
import re
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from ppo_jax import envs
from ppo_jax.component import component
from ppo_jax.envs import probes
from ppo_jax.envs.check.traces import draws


class Place(NamedTuple):
    at: jax.Array
    time: jax.Array


@component
class Walk(envs.Env):
    """A healthy walk from a random place, over after four steps."""

    stride: float = 0.5

    @property
    def action_space(self):
        return envs.Discrete(3)

    @property
    def min_steps_to_truncation(self):
        return 4

    @property
    def max_episode_steps(self):
        return 4

    def reset(self, key):
        state = Place(jax.random.uniform(key), jnp.zeros((), jnp.int32))
        return state.at[None], state

    def transition(self, key, state, action):
        state = Place(state.at + self.stride, state.time + 1)
        timestep = envs.outcome(state.at[None], 1.0, truncated=state.time >= 4)
        return timestep, state


def changed(**fields):
    """A `Walk` whose transition returns some fields of the timestep otherwise."""

    @component
    class Changed(Walk):
        def transition(self, key, state, action):
            timestep, state = super().transition(key, state, action)
            new = {name: change(timestep) for name, change in fields.items()}
            return timestep._replace(**new), state

    return Changed()


def moved(change):
    """A `Walk` whose transition returns another state."""

    @component
    class Moved(Walk):
        def transition(self, key, state, action):
            timestep, state = super().transition(key, state, action)
            return timestep, change(state)

    return Moved()


def stepped(change):
    """A `Walk` whose step returns something else, given also what it was before.

    `change(env, key, before, (timestep, after))`, all of one step.
    """

    @component
    class Stepped(Walk):
        def step(self, key, state, action):
            return change(self, key, state, super().step(key, state, action))

    return Stepped()


def having(**members):
    """A `Walk` with other methods and properties."""
    return component(type("Having", (Walk,), {"__module__": __name__, **members}))()


def fact(value):
    return property(lambda self: value)


def findings(env, **kwargs):
    with pytest.raises(ValueError) as caught:
        envs.check(env, **{"steps": 32, **kwargs})
    return str(caught.value)


def test_a_healthy_environment_passes():
    assert envs.check(Walk()) is None
    assert envs.check(Walk(), steps=5, num_envs=1, seed=7) is None


def at_end(out, there, elsewhere):
    timestep, _ = out
    done = timestep.terminated | timestep.truncated
    return jax.tree.map(lambda a, b: jnp.where(done, a, b), there, elsewhere)


def keeps_time(env, key, before, out):
    """Resets the place and forgets the clock."""
    timestep, state = out
    return timestep, at_end(out, state._replace(time=before.time + 1), state)


def keeps_all(env, key, before, out):
    """Shows a new episode, and goes on with the old one."""
    return out[0], env.transition(key, before, jnp.array(0))[1]


def old_observation(env, key, before, out):
    timestep, state = out
    return timestep._replace(obs=timestep.final_obs), state


def late_final_observation(env, key, before, out):
    timestep, state = out
    return timestep._replace(final_obs=timestep.obs), state


def other_final_observation(env, key, before, out):
    timestep, state = out
    return timestep._replace(final_obs=timestep.final_obs + 1), state


def same_key_for_all(env, key, before, out):
    timestep, state = out
    obs, state = at_end(out, env.reset(jax.random.key(0)), (timestep.obs, state))
    return timestep._replace(obs=obs), state


@pytest.mark.parametrize(
    ("env", "finding"),
    [
        (stepped(keeps_time), r"state\.time: got 4 after an end, expected 0 to 0"),
        (stepped(keeps_all), r"state\.time: got 4 after an end"),
        (stepped(late_final_observation), "final_obs: got the next episode's first"),
        (stepped(other_final_observation), r"final_obs: got .* no episode ended there"),
        (stepped(same_key_for_all), "new episodes that begin alike"),
    ],
)
def test_a_wrong_reset_is_found(env, finding):
    """R-A23: an end, and nothing else, separates episodes."""
    with pytest.raises(ValueError, match=finding):
        envs.check(env, steps=32)


def test_an_observation_from_before_the_reset_is_found_if_it_lies_far_out():
    far = dataclasses.replace(stepped(old_observation), stride=5.0)
    assert "obs: got" in findings(far)


@pytest.mark.parametrize(
    ("env", "finding"),
    [
        (having(min_steps_to_truncation=fact(5)), "got a truncation after 4 steps"),
        (having(max_episode_steps=fact(3)), "max_episode_steps: got an episode of 4"),
        (changed(reward=lambda t: t.reward / 0), "reward: got inf at step 0 of"),
        (changed(weight=lambda t: t.weight * jnp.nan), "weight: got nan at step 0"),
        (changed(weight=lambda t: -t.weight), "weight: got -1, expected at least 0"),
        (changed(obs=lambda t: t.obs / 0), r"final_obs: got inf"),
        (
            having(action_mask=lambda self, state: jnp.arange(3) < 3 - state.time),
            "no allowed action before step 3",
        ),
    ],
)
def test_a_promise_that_play_breaks_is_found(env, finding):
    assert finding in findings(env)


def test_a_first_observation_that_is_not_finite_is_found():
    def reset(self, key):
        obs, state = Walk.reset(self, key)
        return obs * jnp.nan, state

    assert "reset: obs: got nan" in findings(having(reset=reset))


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


def test_weak_types_are_found():
    def reset(self, key):
        return jnp.zeros(1), Place(0.0, 0)

    found = findings(having(reset=reset))
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
        3,
    ],
)
def test_impossible_action_spaces_are_found(space):
    assert "action_space: got" in findings(having(action_space=fact(space)))


@pytest.mark.parametrize("limit", [0, 2.5, None])
def test_limits_are_positive_whole_numbers(limit):
    env = having(min_steps_to_truncation=fact(limit))
    assert "expected an int from 1 up" in findings(env)


def call_back(t):
    jax.debug.callback(lambda x: None, t.reward)
    return t.reward


def shout(t):
    jax.debug.print("{}", t.reward)
    return t.reward


def ask(t):
    return jax.pure_callback(lambda x: x, t.reward, t.reward, vmap_method="sequential")


@pytest.mark.parametrize("call", [call_back, shout, ask])
def test_calls_to_the_host_are_found_at_any_depth(call):
    def reward(t):
        return jax.lax.cond(t.terminated, lambda: t.reward, lambda: jax.jit(call)(t))

    assert "expected no calls to the host" in findings(changed(reward=reward))


def test_randomness_that_does_not_come_from_the_key_is_found():
    rng = np.random.default_rng(0)
    noise = changed(reward=lambda t: t.reward + rng.normal())
    assert "another program from tracing again" in findings(noise)
    table = changed(reward=lambda t: t.reward + jnp.asarray(rng.normal(size=99))[0])
    assert "another program from tracing again" in findings(table)


def test_results_that_differ_from_run_to_run_are_found():
    rng = np.random.default_rng(0)

    def reward(t):
        return jax.pure_callback(
            lambda _: np.float32(rng.normal()),
            t.reward,
            t.obs,
            vmap_method="sequential",
        )

    assert "other results from the same keys" in findings(changed(reward=reward))


def test_code_that_vmap_cannot_map_is_found():
    def reward(t):
        return jax.pure_callback(lambda x: x[0], t.reward, t.obs)

    assert "expected code that jax.vmap can map" in findings(changed(reward=reward))


def test_a_number_that_chooses_code_is_found():
    def transition(self, key, state, action):
        if self.stride > 1:
            state = state._replace(at=-state.at)
        return Walk.transition(self, key, state, action)

    found = findings(having(transition=transition))
    assert "transition: got TracerBoolConversionError" in found
    assert "jnp.where, not with if" in found


def test_facts_that_depend_on_numbers_are_found():
    bound = property(lambda self: envs.Box((-self.stride,), (self.stride,)))
    assert "got some that depend on a number" in findings(having(action_space=bound))


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


def test_it_plays_to_the_limit_that_the_environment_states():
    """R-A23: a clock that no reset restarts shows after 300 steps, not before."""

    @component
    class Long(Walk):
        @property
        def min_steps_to_truncation(self):
            return 300

        @property
        def max_episode_steps(self):
            return 300

        def step(self, key, state, action):
            before = state.time
            timestep, state = self.transition(key, state, action)
            over = before >= 299
            obs, new = self.reset(key)
            obs = jnp.where(over, obs, timestep.obs)
            at = jnp.where(over, new.at, state.at)
            timestep = timestep._replace(obs=obs, truncated=over)
            return timestep, Place(at, before + 1)

    with pytest.raises(ValueError, match=r"state\.time: got 300 after an end"):
        envs.check(Long())


@pytest.mark.parametrize(
    ("name", "random"),
    [
        ("SpaceInvaders-MinAtar", False),
        ("Asterix-MinAtar", True),  # Where steps lead.
        ("MountainCar-v0", True),  # Where episodes begin.
    ],
)
def test_what_chance_decides_is_known(name, random):
    env = envs.make(name)
    assert draws(env) == random
    keys = jax.random.split(jax.random.key(0), 16)

    def states(key):
        _, state = env.reset(key)
        action = jnp.zeros((), jnp.int32)
        keys = jax.random.split(key, 64)
        return jax.lax.scan(lambda s, k: (env.step(k, s, action)[1], None), state, keys)

    ends = jax.tree.leaves(jax.jit(jax.vmap(states))(keys))
    assert all((x == x[:1]).all() for x in ends) != random


def test_too_short_a_play_is_said_to_be_so():
    with pytest.warns(UserWarning, match="no episode ended within 3 steps"):
        envs.check(Walk(), steps=3)


@pytest.mark.parametrize("wrong", [{"steps": 0}, {"num_envs": 0}, {"num_envs": 9999}])
def test_there_is_something_to_play(wrong):
    with pytest.raises(ValueError, match=next(iter(wrong))):
        envs.check(Walk(), **wrong)


def test_typed_keys_and_empty_states_are_states_too():
    @component
    class Keyed(probes.OneStep):
        def draw(self, key):
            return key

        def pay(self, key, state, action):
            return jax.random.uniform(state)

    envs.check(Keyed(), steps=16)
    envs.check(probes.IdenticalRewards(), steps=16)


def test_only_environments_are_checked():
    with pytest.raises(TypeError, match="expected an Env"):
        envs.check(3)
