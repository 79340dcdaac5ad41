"""What compilers are told, and what they make of it."""

import json
from unittest.mock import Mock

import jax
import jax.numpy as jnp
import pytest
from runs import ENVIRONMENT, python

from ppo_jax.arrays.devices import cores
from ppo_jax.host.devices import mesh
from ppo_jax.host.programs import compiling
from ppo_jax.host.programs.compiling import COMPILER_OPTIONS, scatters, training_options


@pytest.mark.parametrize("platform", ["cpu", "gpu", "tpu"])
def test_a_compiler_is_given_options_of_its_own_platform(platform, monkeypatch):
    """Another one would refuse them."""
    monkeypatch.setattr(
        mesh.compiling, "TrainingProgram", lambda _, options, **how: options
    )
    options = mesh.Layout([Mock(platform=platform, process_index=0)]).advance
    assert options == COMPILER_OPTIONS.get(platform)
    assert bool(options) == (platform == "cpu")


@pytest.fixture
def newer(monkeypatch):
    """A compiler of which one option, and one of a hurry, are gone."""
    for options in compiling.COMPILER_OPTIONS, compiling.QUICK:
        gone = {"xla_cpu_gone": 1, **options["cpu"], "xla_cpu_gone_too": 2}
        monkeypatch.setitem(options, "cpu", gone)
    compiling._dropped.cache_clear()
    yield
    compiling._dropped.cache_clear()


def test_options_that_a_compiler_no_longer_has_are_left_out(newer):
    """It would refuse every program: jaxlib 0.11.1 dropped one of ours."""
    for told in training_options("cpu", 4096), compiling.quick_options("cpu"):
        assert len(told) >= 2
        assert not [name for name in told if "gone" in name]
        doubled = jax.jit(lambda x: 2 * x, compiler_options=told)
        assert doubled(jnp.float32(2.0)) == 4.0


@pytest.mark.parametrize(("steps", "split"), [(128, False), (2048, True)])
def test_loops_over_arrays_are_split_among_cores_where_minibatches_are_large(
    steps, split
):
    """By what the compiler says of a loop over a million numbers."""
    loop = jax.jit(jnp.tanh, compiler_options=training_options("cpu", steps))
    text = loop.lower(jnp.ones(1 << 20)).compile().as_text()
    assert ("outer_dimension_partitions" in text) == (split and cores() > 1)


def put(x, i):
    return x.at[i].set(0.0)


def summed(x, i):
    return jax.lax.scan(lambda total, each: (total + each.sum(), None), 0.0, x)[0]


def within(x, i):
    def step(_, x):
        return jax.lax.cond(x.sum() > 0, put, put, x, i)

    return jax.lax.fori_loop(0, 3, step, x)


gradient = jax.grad(lambda x, i: x[i].sum())


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (put, True),
        (lambda x, i: x[i], False),
        (gradient, True),  # What was read is written to.
        (summed, False),
        (within, True),
        (jax.jit(jax.vmap(within, (0, None))), True),
    ],
)
def test_what_writes_where_numbers_say_is_found(function, expected):
    shape = (5,) if function is gradient else (2, 5)
    program = jax.make_jaxpr(function)(jnp.ones(shape), jnp.array([1, 1]))
    assert scatters(program.jaxpr) == expected


TOLD = """
import json, jax, jax.numpy as jnp
from ppo_jax.host.programs.compiling import TrainingProgram, training_options

def adds(x, i):
    return x.at[i].add(1.0)

def turns(x, i):
    return jnp.sort(-x)

told = []
for function in adds, turns:
    program = TrainingProgram(function, training_options("cpu", 1.0))
    x, i = jnp.arange(4.0), jnp.array([3, 1, 3])
    text = program.lower(x, i).compile().as_text()
    told.append([program(x, i).tolist(), "wrapped_" in text])
print(json.dumps(told))
"""


def test_operations_alone_are_compiled_as_such_unless_something_scatters():
    """XLA can compile a scatter in no other way, and refuses the program."""
    as_users_have_it = {"XLA_FLAGS": "", "JAX_DISABLE_MOST_OPTIMIZATIONS": "0"}
    adds, turns = json.loads(python(TOLD, ENVIRONMENT | as_users_have_it))
    assert adds == [[0.0, 2.0, 2.0, 5.0], True]
    assert turns == [[-3.0, -2.0, -1.0, 0.0], False]
