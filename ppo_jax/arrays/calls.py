"""Functions that XLA compiles by themselves.

XLA repeats a value in each kernel that reads it if the value is made of cheap
operations, however many these are. If more than eight kernels are ready, a CPU gives
half of them to another thread, which takes longer to wake up than the kernels take. A
called function has kernels of its own, and is ready as a whole.
"""

import functools
from collections.abc import Callable
from typing import Any

import jax
from jax.extend.core import Primitive
from jax.extend.mlir import ir
from jax.interpreters import ad, batching, mlir

from ppo_jax.types import PyTree


def apart(function: Callable[..., Any]) -> Callable[..., Any]:
    """Returns a function that stays a call in programs compiled for a CPU.

    >>> apart(lambda x: x + x)(jax.numpy.ones(())).item()
    2.0
    """
    called = jax.jit(function)
    return functools.wraps(function)(lambda *args: kept(called(*args)))


def kept(results: PyTree) -> PyTree:
    """Returns the results of a call, which stays one in programs for a CPU."""
    return jax.tree.map(_kept.bind, results)


def _mark(ctx: mlir.LoweringRuleContext, result: ir.Value) -> list[ir.Value]:
    """Tells the compiler of a CPU to leave the call alone that has this result."""
    is_argument = isinstance(call := result.owner, ir.Block)
    if tuple(ctx.module_context.platforms) == ("cpu",) and not is_argument:
        told = ir.DictAttr.get({"inlineable": ir.StringAttr.get("false")})
        call.attributes["mhlo.frontend_attributes"] = told
    return [result]


_kept = Primitive("kept")
_kept.def_impl(lambda result: result)
_kept.def_abstract_eval(lambda result: result)
batching.defvectorized(_kept)
ad.deflinear2(_kept, lambda cotangent, _: [cotangent])
# A rule that is cached would see an argument instead of the call.
mlir.register_lowering(_kept, _mark, cacheable=False)
