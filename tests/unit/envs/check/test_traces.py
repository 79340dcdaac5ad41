"""What the traced program of an environment shows, one defect at a time."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from walks import Walk, changed, findings, having

from ppo_jax import envs
from ppo_jax.envs.check.traces import draws


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

    ends = jax.tree.leaves(jax.jit(lambda keys: jax.lax.map(states, keys))(keys))
    assert all((x == x[:1]).all() for x in ends) != random


UNLEARNABLE = {
    "obs: got a dict, expected arrays": {},
    "obs: got None, expected arrays": None,
    "obs: got float32[0], expected one number or more": jnp.zeros(0),
    "obs: got complex64[2], expected one number": jnp.zeros(2, jnp.complex64),
    "obs['x']: got key<fry>[], expected one number": {"x": jax.random.key(0)},
}


@pytest.mark.parametrize("said", UNLEARNABLE)
def test_what_no_network_can_learn_from_is_found(said):
    def reset(self, key):
        return UNLEARNABLE[said], Walk.reset(self, key)[1]

    assert f"reset: {said}" in findings(having(reset=reset))
