"""Torsos and what they see."""

from contextlib import nullcontext
from types import SimpleNamespace

import chex
import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from built import build, drawn
from tabular import as_float64

from ppo_jax import networks


class Alone(nn.Module):
    """A torso and nothing else."""

    torso: networks.Torso

    @nn.compact
    def __call__(self, obs):
        return self.torso(obs)


def test_grids_and_vectors_go_through_one_torso():
    """Nested observations: grids are convolved, the rest is flat."""
    obs = {
        "grid": jax.ShapeDtypeStruct((5, 5, 2), jnp.bool_),
        "extra": jax.ShapeDtypeStruct((), jnp.int32),
    }
    network = build(obs=obs, torso=networks.Cnn(channels=(4,), hidden=(8,)))
    batch = jax.tree.map(lambda x: np.ones((3, 2, *x.shape), x.dtype), obs)
    apply = jax.jit(network.apply)
    out = apply(drawn(network), (), batch, np.zeros((3, 2), bool))
    chex.assert_shape(out.value.outputs, (3, 2, 2, 1))


def test_an_observation_is_flattened_and_read_as_floats():
    """All leaves side by side, in the order of their names, by hand in float64."""
    obs = {"b": jnp.arange(12).reshape(2, 3, 2), "a": jnp.ones((2, 3, 2, 2), bool)}
    torso = Alone(networks.Mlp(hidden=(4,), activation="tanh"))
    params = torso.init(jax.random.key(0), obs)["params"]
    params = jax.tree.map(lambda leaf: leaf + 0.1, params)
    (layer,) = jax.tree.leaves(params, is_leaf=lambda node: "kernel" in node)
    layer = as_float64(layer)
    flat = np.concatenate([np.ones((2, 3, 4)), np.arange(12).reshape(2, 3, 2)], axis=-1)
    want = np.tanh(flat @ layer["kernel"] + layer["bias"])
    got = torso.apply({"params": params}, obs)
    chex.assert_type(got, jnp.float32)
    chex.assert_trees_all_close(got, want, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: networks.Mlp(hidden=(8, 0)), r"Mlp\.hidden: expected at least 1 each"),
        (lambda: networks.Cnn(hidden=(0,)), r"Cnn\.hidden: expected at least 1 each"),
        (
            lambda: networks.Cnn(channels=(0,)),
            r"Cnn\.channels: expected at least 1",
        ),
    ],
)
def test_a_layer_without_units_is_an_error(make, said):
    with pytest.raises(ValueError, match=said):
        make()


@pytest.mark.parametrize(
    ("shape", "layers", "said"),
    [
        ((3,), 1, r"expected observations with grids \[H, W, features\]"),
        ((5, 4, 1), 2, "expected at most 1 layers for grids of 5×4"),
        ((2, 9, 1), 1, "expected at most 0 layers for grids of 2×9"),
    ],
)
def test_a_grid_of_which_nothing_would_be_left_is_an_error(shape, layers, said):
    torso = networks.Cnn(channels=(4,) * layers)

    def showing(shape):
        return SimpleNamespace(
            network=networks.ActorCritic(torso),
            obs_spec=lambda: jax.ShapeDtypeStruct(shape, bool),
        )

    with pytest.raises(ValueError, match=said):
        torso.check(showing(shape))
    torso.check(showing((2 * layers + 1, 2 * layers + 1, 1)))


GRIDS = {"far": (9, 9, 1), "near": (2, 2, 1), "speed": (3,)}


@pytest.mark.parametrize(
    ("reads", "said"),
    [
        ({"actor_obs": ("far",), "critic_obs": ("far", "speed")}, None),
        ({"actor_obs": ("far",), "shared": True}, None),
        ({"actor_obs": ("speed",), "critic_obs": ("far",)}, None),
        ({"actor_obs": ("far",)}, "at most 0 layers for grids of 2×2"),
        ({"actor_obs": ("speed",), "critic_obs": ("speed",)}, r"got \[\(3,\)\]"),
    ],
)
def test_only_grids_that_are_read_have_to_fit(reads, said):
    """By the actor, or by critics that do not share its features."""
    spec = {name: jax.ShapeDtypeStruct(x, "float32") for name, x in GRIDS.items()}
    network = networks.ActorCritic(networks.Cnn(channels=(4,)), **reads)
    config = SimpleNamespace(network=network, obs_spec=lambda: spec)
    with pytest.raises(ValueError, match=said) if said else nullcontext():
        network.torso.check(config)


def test_a_torso_has_to_say_what_it_does():
    with pytest.raises(NotImplementedError, match=r"Torso\.__call__: missing"):
        networks.Torso()(jnp.ones(3))
