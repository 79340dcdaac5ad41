"""Findings of `check` by tracing: types that differ, and harmful habits."""

import re
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, TypeVar

import jax
import jax.numpy as jnp
from jax.interpreters import partial_eval

from ppo_jax.component import as_arrays, numbers
from ppo_jax.envs.env import Box, Discrete, Env, MultiDiscrete, Timestep
from ppo_jax.errors import UserError, brief, is_of_jax, kind, own_lines
from ppo_jax.types import Array, PyTree

T = TypeVar("T")

NUMBERS = jnp.floating, jnp.integer, jnp.bool_
"""What a network can learn from, once it is a float."""
SCALARS = {
    "reward": jnp.float32,
    "terminated": bool,
    "truncated": bool,
    "weight": jnp.float32,
    "cost": jnp.float32,
    "group": jnp.int32,
}


class Trace(NamedTuple):
    """Result of tracing a method."""

    name: str
    out: PyTree
    """Abstract values of the method's results."""
    programs: tuple[Any, Any]
    """The method's jaxprs, from tracing it twice."""


class Untraceable(Exception):
    """An error of a method or property, or in tracing it; the message is a finding."""


def trace_methods(env: Env) -> tuple[list[Trace], list[str]]:
    """Traces all methods twice; returns the traces, and results that do not fit."""
    traces = []

    def trace(name, *args):
        traces.append(_trace(env, name, *args))
        return traces[-1].out

    return traces, list(_listed(env, trace))


def misfits(env: Env) -> Iterator[str]:
    """Yields results of methods that do not fit together, by tracing only once."""
    numbers, rebuild = opened(env)

    def shapes(name, *args):
        def call(numbers, *args):
            return getattr(rebuild(numbers), name)(*args)

        return attempted(name, lambda: jax.eval_shape(call, numbers, *args))

    return _listed(env, shapes)


def attempted(name: str, attempt: Callable[[], T]) -> T:
    """Calls `attempt`, a question to an environment, and returns its result.

    Raises:
        Untraceable: If the call fails; the message shows the lines that led there.
    """
    try:
        return attempt()
    except UserError as error:
        raise Untraceable(f"{error}{own_lines(error)}") from error
    except Exception as error:
        expected = "no error"
        if is_of_jax(error):
            expected = (
                "code that JAX can trace; numbers are arrays here: choose with "
                "jnp.where, not with if"
            )
        message = f"{name}: got {brief(error)}, expected {expected}{own_lines(error)}"
        raise Untraceable(message) from error


def draws(env: Env) -> bool:
    """Returns whether resets or steps depend on the key."""
    key = jax.random.key(0)
    _, state = jax.eval_shape(env.reset, key)
    programs = (
        jax.make_jaxpr(env.reset)(key),
        jax.make_jaxpr(env.step)(key, state, _action(env)),
    )
    return any(_used(program.jaxpr)[0] for program in programs)


def unread(env: Env) -> list[str]:
    """Returns paths of numbers that neither a reset nor a transition depends on."""
    values, rebuild = opened(env)

    def call(values, key, action):
        env = rebuild(values)
        obs, state = env.reset(key)
        return obs, env.transition(key, state, action)

    program = jax.make_jaxpr(call)(values, jax.random.key(0), _action(env))
    used = _used(program.jaxpr)[: len(values)]
    return [path for path, use in zip(numbers(env), used, strict=True) if not use]


def _used(jaxpr: Any) -> list[bool]:
    """Returns, for each argument, whether a result depends on it."""
    _, used = partial_eval.dce_jaxpr(jaxpr, [True] * len(jaxpr.outvars))
    return used


def _listed(env: Env, trace: Callable[..., PyTree]) -> Iterator[str]:
    """Yields all mismatches, up to the first method that cannot be traced."""
    try:
        yield from _mismatches(env, trace)
    except Untraceable as error:
        yield str(error)


def _mismatches(env: Env, trace: Callable[..., PyTree]) -> Iterator[str]:
    key = jax.eval_shape(lambda: jax.random.key(0))
    first = trace("reset", key)
    if not (isinstance(first, tuple) and len(first) == 2):
        yield f"reset: got {kind(first)}, expected (obs, state)"
        return
    obs, state = jax.tree.map(_strong_shape, first)
    wrong = list(_unlearnable("reset: obs", obs))
    yield from wrong
    if wrong:
        return
    own = ["transition"] * env.has_transition
    own += ["step"] * (type(env).step is not Env.step)
    if not own:
        yield "transition: got none, expected one, or a step that resets by itself"
    for name in own:  # An inherited step needs no check: it is transition and reset.
        wrong = list(_wrong(name, trace(name, key, state, _action(env)), obs, state))
        yield from wrong
        if wrong:
            return
    yield from _unlike("renew: state", trace("renew", key, state), state)
    mask, space = trace("action_mask", state), env.action_space
    if mask is None:
        return
    if isinstance(space, Box):
        yield "action_mask: got a mask, expected None for the actions of a Box"
    else:
        expected = jax.ShapeDtypeStruct((sum(space.nvec),), bool)
        yield from _unlike("action_mask", mask, expected)


def _unlearnable(name: str, obs: PyTree) -> Iterator[str]:
    """Yields what no network can take of an observation."""
    leaves = jax.tree_util.tree_flatten_with_path(obs)[0]
    if not leaves:
        nothing = "jnp.zeros(1) where there is nothing to see"
        yield f"{name}: got {kind(obs)}, expected arrays; return {nothing}"
    for path, leaf in leaves:
        known = any(jnp.issubdtype(leaf.dtype, each) for each in NUMBERS)
        if not known or leaf.size == 0:
            expected = "one number or more: floats, whole ones or booleans"
            where = f"{name}{jax.tree_util.keystr(path)}"
            yield f"{where}: got {kind(leaf)}, expected {expected}"


def _wrong(name: str, out: PyTree, obs: PyTree, state: PyTree) -> Iterator[str]:
    """Yields results of a step that differ from those of `reset`, or of `Timestep`."""
    pair = isinstance(out, tuple) and len(out) == 2
    if not (pair and isinstance(out[0], Timestep)):
        yield f"{name}: got {kind(out)}, expected (Timestep, state)"
        return
    timestep, after = out
    yield from _unlike(f"{name}: obs", timestep.obs, obs)
    yield from _unlike(f"{name}: final_obs", timestep.final_obs, obs)
    yield from _unlike(f"{name}: state", after, state)
    for field, dtype in SCALARS.items():
        expected = jax.ShapeDtypeStruct((), dtype)
        yield from _unlike(f"{name}: {field}", getattr(timestep, field), expected)


def _unlike(name: str, given: PyTree, expected: PyTree) -> Iterator[str]:
    """Yields differences in structure, shape and type."""
    if jax.tree.structure(given) != jax.tree.structure(expected):
        yield (
            f"{name}: got the structure {jax.tree.structure(given)}, expected "
            f"{jax.tree.structure(expected)}; always return the same containers"
        )
        return
    leaves = jax.tree_util.tree_flatten_with_path(given)[0]
    for (path, leaf), like in zip(leaves, jax.tree.leaves(expected), strict=True):
        if (leaf.shape, leaf.dtype) != (like.shape, like.dtype):
            yield (
                f"{name}{jax.tree_util.keystr(path)}: got {kind(leaf)}, expected "
                f"{kind(like)}; convert it with jnp.asarray(x, dtype), reshape it"
            )


def weak_types(trace: Trace) -> Iterator[str]:
    """Checks that observations and states, which loops carry, have strong types."""
    for name, part in _carried(trace).items():
        for path, leaf in jax.tree_util.tree_flatten_with_path(part)[0]:
            if leaf.weak_type:
                yield (
                    f"{trace.name}: {name}{jax.tree_util.keystr(path)}: got a weak "
                    f"{leaf.dtype}, expected a strong one; make it with "
                    f"jnp.asarray(x, jnp.{leaf.dtype})"
                )


def _carried(trace: Trace) -> dict[str, PyTree]:
    """Returns the results of a method that go into the next step, by name."""
    match trace.name, trace.out:
        case "reset", (obs, state):
            return {"obs": obs, "state": state}
        case "renew", state:
            return {"state": state}
        case "transition" | "step", (timestep, state):
            return {"obs": timestep.obs, "state": state}
    return {}


def habits(trace: Trace) -> Iterator[str]:
    """Checks that a method does not call the host, and is the same each time."""
    first, second = trace.programs
    calls = sorted(set(_host_calls(first.jaxpr)))
    if calls:
        yield (
            f"{trace.name}: got {', '.join(calls)}, expected no calls to the host: "
            "each stops the device; compute it in JAX, or before training"
        )
    same = _text(first) == _text(second) and all(
        _alike(a, b) for a, b in zip(first.consts, second.consts, strict=True)
    )
    if not same:
        yield (
            f"{trace.name}: got another program from tracing again, expected the same; "
            "draw randomness from the key, not from numpy.random"
        )


def _trace(env: Env, name: str, *args: PyTree) -> Trace:
    numbers, rebuild = opened(env)

    def program():
        def call(numbers, *args):
            return getattr(rebuild(numbers), name)(*args)

        return jax.make_jaxpr(call, return_shape=True)(numbers, *args)

    (first, shapes), (second, _) = (attempted(name, program) for _ in range(2))
    out = jax.tree.unflatten(jax.tree.structure(shapes), first.out_avals)
    return Trace(name, out, (first, second))


def _host_calls(jaxpr: Any) -> Iterator[str]:
    """Yields the names of primitives that call Python, at any depth."""
    for equation in jaxpr.eqns:
        if re.search("callback|debug_print", equation.primitive.name):
            yield equation.primitive.name
        for value in equation.params.values():
            for inner in value if isinstance(value, tuple | list) else (value,):
                if hasattr(inner, "eqns"):
                    yield from _host_calls(inner)


def _action(env: Env) -> jax.ShapeDtypeStruct:
    match env.action_space:
        case Discrete():
            return jax.ShapeDtypeStruct((), jnp.int32)
        case MultiDiscrete(nvec):
            return jax.ShapeDtypeStruct((len(nvec),), jnp.int32)
        case Box(low):
            return jax.ShapeDtypeStruct((len(low),), jnp.float32)


def _strong_shape(aval: Any) -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct(aval.shape, aval.dtype)


def _alike(a: Array, b: Array) -> bool:
    """Returns whether arrays, or keys, are equal; NaN equals itself."""
    return bool(jnp.all((a == b) | ((a != a) & (b != b))))


def _text(program: Any) -> str:
    """Returns a program as text without addresses of functions."""
    return re.sub("0x[0-9a-f]+", "", str(program))


def opened(env: Env) -> tuple[list[Array], Callable[[list[Array]], Env]]:
    """Returns numbers as in training, and the way back; jit never hashes the rest."""
    numbers, structure = jax.tree.flatten(as_arrays(env))
    return numbers, structure.unflatten
