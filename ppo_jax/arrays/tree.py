"""Operations on every leaf of a pytree."""

import functools
import math
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax.core import Tracer
from jax.typing import ArrayLike

from ppo_jax.errors import Misfit, kind
from ppo_jax.types import Array, PyTree


def where(mask: Array, on_true: PyTree, on_false: PyTree) -> PyTree:
    """Selects between two trees; `mask` `[B...]` covers each leaf's leading axes.

    >>> mask, h = jnp.array([True, False]), jnp.ones((2, 3))
    >>> where(mask, {"h": h}, {"h": jnp.zeros_like(h)})["h"].sum(axis=1).tolist()
    [3.0, 0.0]
    """

    def select(a, b):
        a, b = jnp.asarray(a), jnp.asarray(b)
        spread = mask.reshape(mask.shape + (1,) * (max(a.ndim, b.ndim) - mask.ndim))
        if jnp.issubdtype(a.dtype, jax.dtypes.prng_key):
            data = jnp.where(
                spread[..., None], jax.random.key_data(a), jax.random.key_data(b)
            )
            return jax.random.wrap_key_data(data, impl=jax.random.key_impl(a))
        return jnp.where(spread, a, b)

    return jax.tree.map(select, on_true, on_false)


def take(tree: PyTree, indices: ArrayLike) -> PyTree:
    """Gathers along the leading axis of every leaf; indices must be within bounds.

    >>> take({"a": jnp.array([10, 20, 30])}, jnp.array([2, 0]))["a"].tolist()
    [30, 10]
    """
    return jax.tree.map(lambda x: x.at[indices].get(mode="promise_in_bounds"), tree)


def each(function: Callable[..., Any], in_axes: tuple[int | None, ...]) -> Any:
    """Maps a function like `jax.vmap`, with `in_axes` of 0 (mapped) or None (shared).

    An axis of length 1 is not mapped: there is less to trace and less to compile.

    >>> each(lambda x, y: x + y, (0, None))(jnp.array([1]), jnp.array([2, 3])).tolist()
    [[3, 4]]
    """

    def call(*args: PyTree) -> PyTree:
        given = list(zip(args, in_axes, strict=True))
        batched = [arg for arg, axis in given if axis is not None]
        if any(len(x) != 1 for x in jax.tree.leaves(batched)):
            return jax.vmap(function, in_axes)(*args)
        first = functools.partial(jax.tree.map, lambda x: x[0])
        alone = [arg if axis is None else first(arg) for arg, axis in given]
        return jax.tree.map(lambda x: x[None], function(*alone))

    return call


def merge_leading(tree: PyTree, count: int = 2) -> PyTree:
    """Merges the first `count` axes of every leaf into one.

    >>> merge_leading(jnp.zeros((2, 3, 4))).shape
    (6, 4)
    """

    def merge(x):
        return x.reshape((math.prod(x.shape[:count]), *x.shape[count:]))

    return jax.tree.map(merge, tree)


def by_path(tree: PyTree) -> dict[str, Any]:
    """Returns the leaves by their paths.

    >>> by_path({"a": (1, 2)})
    {'a.0': 1, 'a.1': 2}
    """
    return {
        jax.tree_util.keystr(path, simple=True, separator="."): leaf
        for path, leaf in jax.tree.leaves_with_path(tree)
    }


def all_finite(tree: PyTree, batch_axes: int = 0) -> Array:
    """Returns whether all floats are finite, per index of the first `batch_axes` axes.

    Integer leaves and keys count as finite; a tree without floats gives `True`.

    >>> batch = {"a": jnp.array([[1.0, jnp.nan], [1.0, 2.0]])}
    >>> all_finite(batch, batch_axes=1).tolist()
    [False, True]
    """
    finite = [
        jnp.isfinite(x).all(axis=tuple(range(batch_axes, jnp.ndim(x))))
        for x in jax.tree.leaves(tree)
        if jnp.issubdtype(jnp.asarray(x).dtype, jnp.inexact)
    ]
    return functools.reduce(jnp.logical_and, finite, jnp.array(True))


def require_same(name: str, new: PyTree, old: PyTree) -> None:
    """Checks that a tree can take the place of another one in a program.

    Raises:
        Misfit: If it has another structure, or a leaf of another shape or type; the
            message has the path of the leaf.

    >>> require_same("Mine.update", {"a": jnp.ones(2)}, {"a": jnp.ones(())})
    Traceback (most recent call last):
    ppo_jax.errors.Misfit: Mine.update: a: expected float32[] as before, got float32[2]
    """
    if jax.tree.structure(new) != jax.tree.structure(old):
        before, now = (f"{jax.tree.map(kind, each)!s:.200}" for each in (old, new))
        raise Misfit(f"{name}: expected {before} as before, got {now}")
    for (path, b), a in zip(by_path(old).items(), jax.tree.leaves(new), strict=True):
        alike = jnp.shape(a) == jnp.shape(b)
        if not (alike and jnp.result_type(a, b) == jnp.result_type(b)):
            where = f"{name}: {path}" if path else name
            raise Misfit(f"{where}: expected {kind(b)} as before, got {kind(a)}")


def require_finite(**trees: PyTree) -> None:
    """Checks that arguments are finite; traced arguments pass unchecked.

    Raises:
        ValueError: If a float is NaN or infinite; the message names the argument.

    >>> require_finite(r_t=jnp.ones(3), v_t=jnp.array([0.0, jnp.nan]))
    Traceback (most recent call last):
    ValueError: v_t: expected finite numbers
    """
    for name, tree in trees.items():
        traced = any(isinstance(x, Tracer) for x in jax.tree.leaves(tree))
        with jax.ensure_compile_time_eval():
            if not traced and not all_finite(tree):
                raise ValueError(f"{name}: expected finite numbers")
