"""What a compiler is told of a program, by its platform and by what is in it."""

import functools
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
"""Of training, by platform. LLVM avoids the widest vectors of CPUs that have them, a
sum by a tree would be three kernels in place of one, and without a closer look XLA
copies parameters and moments in every optimiser step."""
SPLITTING = {"cpu": ("cpu-parallel-task-assigner", 1024)}
"""By platform: what splits loops over arrays among idle cores, and from how many steps
of a minibatch on that pays. With fewer, parameters go from cache to cache."""
WRAPPING = "fusion-wrapper"
"""What has XLA compile operations that stand alone as it does fused ones: for as long
and with as much memory, and to no use but for scatters, which it can compile in no
other way."""
QUICK: dict[str, Options] = {
    "cpu": {
        "xla_cpu_use_fusion_emitters": False,
        "xla_backend_optimization_level": 0,
        "xla_cpu_parallel_codegen_split_count": 1,
    }
}
"""Of what runs once, by platform: compiled in a third of the time, on one core."""


def training_options(platform: str, steps: float) -> Options | None:
    """What a compiler is told of a program that trains.

    Args:
        platform: Whose compiler it is.
        steps: Of a minibatch, on a device.
    """
    options = COMPILER_OPTIONS.get(platform)
    splitter, least = SPLITTING.get(platform, ("", 0))
    return options if options is None or steps >= least else without(splitter, options)


def without(unwanted: str, options: Options) -> Options:
    """Options by which one more pass of the compiler is left out.

    >>> without("b", {"xla_disable_hlo_passes": "a"})
    {'xla_disable_hlo_passes': 'a,b'}
    """
    name = "xla_disable_hlo_passes"
    return options | {name: f"{options[name]},{unwanted}"}


class Compilation(NamedTuple):
    """A program that is to be compiled, and what for."""

    name: str
    """Which of the programs of an experiment it is; empty where no words say that."""
    program: Any
    """As `jax.jit` makes it."""
    args: tuple
    """Arguments as it will be given, or their shapes."""

    def lower(self) -> jax.stages.Lowered:
        """The program for these arguments, ready for the compiler."""
        return self.program.lower(*self.args)

    def __call__(self) -> Any:
        """What the program makes of these arguments."""
        return self.program(*self.args)


def name_of(function: Callable[..., Any]) -> str:
    """The name by which every process finds a function; empty if there is none.

    >>> name_of(name_of), name_of(lambda: None)
    ('ppo_jax.host.programs.compiling.name_of', '')
    """
    module, name = function.__module__, getattr(function, "__qualname__", "")
    found = getattr(sys.modules.get(module), name, None)
    return f"{module}.{name}" if found is function else ""


def start(begin: Callable[..., Any], *given: Any) -> Any:
    """What a function makes of what it is given, in programs that have this name."""
    return begin(*given)


class TrainingProgram:
    """As `jax.jit` of a function; what it does decides what the compiler is told.

    Args:
        function: The function.
        options: What the compiler is told of whatever it does; None: nothing.
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
        """As that of `jax.jit`."""
        return self._of(args).trace(*args)

    def lower(self, *args: Any) -> jax.stages.Lowered:
        """As that of `jax.jit`."""
        return self._of(args).lower(*args)

    def _of(self, args: tuple) -> Any:
        """What has been made for arguments of this structure, the experiment's."""
        structure = jax.tree.structure(args)
        if structure not in self._fitting:
            program = self._made(compiler_options=self._options)
            if self._options and not scatters(program.trace(*args).jaxpr.jaxpr):
                options = without(WRAPPING, self._options)
                program = self._made(compiler_options=options)
            self._fitting[structure] = program
        return self._fitting[structure]


def scatters(program: Jaxpr) -> bool:
    """Whether anything in a program writes to places that numbers tell.

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
