"""Options of the compiler for a program, by its platform and its operations."""

import functools
import re
import sys
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
from jax.extend.core import ClosedJaxpr, Jaxpr

Options = dict[str, Any]

COMPILER_OPTIONS: dict[str, Options] = {
    "cpu": {
        "xla_cpu_prefer_vector_width": 512,
        "xla_disable_hlo_passes": "tree_reduction_rewriter",
        "xla_cpu_copy_insertion_use_region_analysis": True,
    }
}
"""Options for programs that train, by platform. Each replaces a default: LLVM avoids
the widest vectors of CPUs that have them; a sum by a tree takes three kernels in place
of one; and without region analysis XLA copies parameters and moments in every optimiser
step."""
SPLITTING = {"cpu": ("cpu-parallel-task-assigner", 1024)}
"""Compiler pass that splits loops over arrays among idle cores, and the least steps of
a minibatch for which it pays, by platform. With fewer steps, parameters go from cache
to cache."""
WRAPPING = "fusion-wrapper"
"""Pass that makes XLA compile operations that stand alone as it compiles fused ones.
They then take as long and as much memory as fused ones, for no gain. Only scatters need
the pass, as XLA can compile them in no other way."""
QUICK: dict[str, Options] = {
    "cpu": {
        "xla_cpu_use_fusion_emitters": False,
        "xla_backend_optimization_level": 0,
        "xla_cpu_parallel_codegen_split_count": 1,
    }
}
"""Options for programs that run once, by platform. Compiling takes a third of the time,
on one core."""
NO_OPTION = re.compile("No such compile option: '(.+)'")
"""What a compiler says of an option that its version does not have."""


def training_options(platform: str, steps: float) -> Options | None:
    """Returns the compiler's options for a program that trains, or None for none.

    Args:
        platform: Platform of the compiler.
        steps: Steps of a minibatch on one device.
    """
    options = understood(platform, COMPILER_OPTIONS)
    splitter, least = SPLITTING.get(platform, ("", 0))
    return options if options is None or steps >= least else without(splitter, options)


def quick_options(platform: str) -> Options | None:
    """Returns the compiler's options for a program that runs once, or None for none."""
    return understood(platform, QUICK)


def understood(platform: str, options: dict[str, Options]) -> Options | None:
    """Returns those options for a platform that the installed compiler has."""
    if platform not in options:
        return None
    dropped = _dropped(platform)
    return {k: v for k, v in options[platform].items() if k not in dropped}


@functools.cache
def _dropped(platform: str) -> frozenset[str]:
    """Returns the names of options that the installed compiler does not have.

    It refuses a program for them, and only it knows: releases of XLA drop some.
    """
    wanted = COMPILER_OPTIONS.get(platform, {}) | QUICK.get(platform, {})
    with jax.default_device(jax.local_devices(backend=platform)[0]):
        nothing = jax.jit(lambda: 0).lower()
    dropped: set[str] = set()
    while True:
        try:
            nothing.compile({k: v for k, v in wanted.items() if k not in dropped})
            return frozenset(dropped)
        except jax.errors.JaxRuntimeError as error:
            if not (named := NO_OPTION.search(str(error))):
                raise
            dropped.add(named[1])


def without(unwanted: str, options: Options) -> Options:
    """Returns options that leave out one more pass of the compiler.

    >>> without("b", {"xla_disable_hlo_passes": "a"})
    {'xla_disable_hlo_passes': 'a,b'}
    """
    name = "xla_disable_hlo_passes"
    return options | {name: f"{options[name]},{unwanted}"}


class Compilation(NamedTuple):
    """A program that is to be compiled, and the arguments that it is compiled for."""

    name: str
    """Name among the programs of an experiment; empty if no name identifies it."""
    program: Any
    """The program as `jax.jit` returns it, or a `TrainingProgram`."""
    args: tuple
    """Arguments of its calls, or their shapes."""

    def lower(self) -> jax.stages.Lowered:
        """Returns the program for these arguments, ready for the compiler."""
        return self.program.lower(*self.args)

    def __call__(self) -> Any:
        """Runs the program with these arguments, and returns its result."""
        return self.program(*self.args)


def name_of(function: Callable[..., Any]) -> str:
    """Returns the name by which every process finds a function; empty if none does.

    >>> name_of(name_of), name_of(lambda: None)
    ('ppo_jax.host.programs.compiling.name_of', '')
    """
    module, name = function.__module__, getattr(function, "__qualname__", "")
    found = getattr(sys.modules.get(module), name, None)
    return f"{module}.{name}" if found is function else ""


def start(begin: Callable[..., Any], *given: Any) -> Any:
    """Calls a function; programs made from this have one name, whatever they call."""
    return begin(*given)


class TrainingProgram:
    """A function as by `jax.jit`; the compiler's options depend on its operations.

    Args:
        function: The function.
        options: Options of the compiler; None: none. The pass `WRAPPING` is left out
            too, unless the function scatters.
        how: Other arguments of `jax.jit`.
    """

    def __init__(
        self, function: Callable[..., Any], options: Options | None, **how: Any
    ):
        self._made = functools.partial(jax.jit, function, **how)
        self._options = options
        self._fitting: dict[Any, Any] = {}

    def __call__(self, *args: Any) -> Any:
        return self._of(args)(*args)

    def trace(self, *args: Any) -> jax.stages.Traced:
        """Traces the function, as the method of a jitted function does."""
        return self._of(args).trace(*args)

    def lower(self, *args: Any) -> jax.stages.Lowered:
        """Lowers the function, as the method of a jitted function does."""
        return self._of(args).lower(*args)

    def _of(self, args: tuple) -> Any:
        """Returns the program for arguments of this structure, the experiment's."""
        structure = jax.tree.structure(args)
        if structure not in self._fitting:
            program = self._made(compiler_options=self._options)
            if self._options and not scatters(program.trace(*args).jaxpr.jaxpr):
                options = without(WRAPPING, self._options)
                program = self._made(compiler_options=options)
            self._fitting[structure] = program
        return self._fitting[structure]


def scatters(program: Jaxpr) -> bool:
    """Returns whether anything in a program writes to places given by indices.

    >>> put = jax.jit(lambda x, i: x.at[i].set(0))
    >>> scatters(jax.make_jaxpr(put)(jax.numpy.ones(2), 1).jaxpr)
    True
    """
    seen: set[int] = set()

    def inside(part: Any) -> bool:
        if isinstance(part, tuple | list):
            return any(map(inside, part))
        if isinstance(part, ClosedJaxpr):
            part = part.jaxpr
        if not isinstance(part, Jaxpr) or id(part) in seen:
            return False
        seen.add(id(part))
        return any(
            "scatter" in each.primitive.name or inside(tuple(each.params.values()))
            for each in part.eqns
        )

    return inside(program)
