"""An experiment in words, compared between processes and versions."""

import dataclasses
import functools
from types import SimpleNamespace
from typing import Any

import jax
import jax.numpy as jnp
import optax
import pytest

from ppo_jax import Config, networks, opponents, optimizers, terms
from ppo_jax.component import component
from ppo_jax.host.run_dir.description import as_now, describe, differences, former_names

CARTPOLE = Config("CartPole-v1")


def test_every_field_has_a_kind_and_a_value():
    found = describe(CARTPOLE)
    assert found["type"] == {"kind": "structure", "value": "Config"}
    assert found["gamma"] == {"kind": "number", "value": "0.99"}
    assert found["num_envs"] == {"kind": "structure", "value": "4"}
    assert found["seed"] == {"kind": "host", "value": "0"}
    assert found["opponent"] == {"kind": "structure", "value": "None"}
    assert found["terms"]["value"] == "surrogate, value, entropy"
    assert found["terms.entropy.type"]["value"] == "Entropy"
    assert found["terms.entropy.coef"] == {"kind": "number", "value": "0.01"}
    assert {field["kind"] for field in found.values()} == {
        *("number", "host", "structure")
    }


@pytest.mark.parametrize(
    ("changes", "differing"),
    [
        ({}, {}),
        ({"gamma": 0.9}, {"gamma": "0.99 -> 0.9"}),
        ({"seed": 3}, {"seed": "0 -> 3"}),
        ({"obs_clip": 5.0}, {"obs_clip": "None -> 5.0"}),
        ({"stop_at": {"x": 5}}, {"stop_at": "None -> (('x', 5.0),)"}),
        (
            {"terms": (terms.Surrogate(), terms.Value())},
            {
                "terms": "surrogate, value, entropy -> surrogate, value",
                "terms.entropy.type": "Entropy -> None",
                "terms.entropy.coef": "0.01 -> None",
            },
        ),
    ],
)
def test_what_differs_is_named_and_nothing_else(changes, differing):
    other = dataclasses.replace(CARTPOLE, **changes)
    assert differences(describe(CARTPOLE), describe(other)) == differing


def test_functions_are_described_by_where_users_find_them():
    """Not by where they lie in memory, nor by their file."""
    for make, shown in (
        (optax.lion, "optax._src.alias.lion"),
        (functools.partial(optax.lion, b1=0.5), "{'b1': 0.5}"),
    ):
        config = dataclasses.replace(CARTPOLE, optimizer=optimizers.Optax(make=make))
        value = describe(config)["optimizer.make"]["value"]
        assert shown in value and " at 0x" not in value
    opponent = opponents.Opponent(harm=opponents.misled)
    config = dataclasses.replace(CARTPOLE, opponent=opponent, obs_clip=5.0)
    assert describe(config)["opponent.harm"]["value"] == "ppo_jax.opponents.misled"


@component
class Own(networks.Mlp):
    """A torso with parts that Python shows by where they lie."""

    part: Any = None


class Bare:
    """Shows itself as Python does."""


def parts():
    """Parts of an experiment, made anew."""

    def made(x, mask=None):
        return x

    return {
        "custom": jax.nn.relu,
        "jitted": jax.jit(made),
        "keyword": functools.partial(optax.adamw, mask=made),
        "argument": functools.partial(made, made),
        "nested": ({"x": (made,), "y": jnp.tanh}, (3, "a")),
        "bare": Bare(),
        "method": [].append,
        "shown": SimpleNamespace(of=made),
    }


def shown(part):
    """What a description says of a part."""
    network = networks.ActorCritic(torso=Own(part=part))
    config = dataclasses.replace(CARTPOLE, network=network)
    return describe(config)["network.torso.part"]["value"]


@pytest.mark.parametrize("name", parts())
def test_a_part_is_described_alike_wherever_it_lies(name):
    """As by another process, which is to go on with the run."""
    one, other = parts()[name], parts()[name]
    assert shown(one) == shown(other) and " at 0x" not in shown(one)


def test_parts_are_described_by_their_names():
    """And sets in an order that is not that of their hashes."""
    assert shown(jax.nn.relu) == "jax._src.nn.functions.relu"
    assert shown(jnp.tanh).endswith(".tanh")
    assert shown(frozenset([8, 0])) == shown(frozenset([0, 8])) == "frozenset({0, 8})"
    assert (
        shown(((), (1,), [2.5], {}, frozenset()))
        == "((), (1,), [2.5], {}, frozenset())"
    )
    assert shown(Bare) == repr(Bare)


def as_before(description):
    """As a version before gave it: items by index, no word on tuples, one type."""
    names = {"surrogate": "0", "value": "1", "entropy": "2"}
    found = {}
    for path, field in description.items():
        owner, _, rest = path.partition(".")
        if owner == "terms" and rest:
            name, _, field_name = rest.partition(".")
            path = f"terms.{names[name]}.{field_name}"
        found[path] = field
    del found["terms"], found["network.compute_dtype"]
    return found


def test_what_a_version_before_gave_is_read_as_now():
    now = describe(CARTPOLE)
    before = as_before(now)
    assert former_names(before) == {
        "terms.0": "terms.surrogate",
        "terms.1": "terms.value",
        "terms.2": "terms.entropy",
    }
    assert as_now(before) == now
    assert as_now(now) == now and former_names(now) == {}
