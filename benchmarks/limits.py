"""The fastest that the machine multiplies matrices: what no program can surpass.

With `--rows` a recurrence: rows of 128 numbers by a kernel of three gates, step by
step, none of which can begin before the one before has ended.
"""

import argparse
import time

import jax
import jax.numpy as jnp
from measure import say

UNITS, GATES, STEPS = 128, 3, 2048


def square(size):
    """A product of two square matrices, its arguments, and how many FLOP it is."""
    a, b = jax.random.normal(jax.random.key(0), (2, size, size))
    return jax.jit(lambda a, b: a @ b), (a, b), 2 * size**3


def recurrence(rows):
    """Products one after the other, likewise."""
    kernel = 0.01 * jax.random.normal(jax.random.key(0), (UNITS, GATES * UNITS))

    def run(state, kernel):
        def step(state, _):
            return sum(jnp.split(state @ kernel, GATES, axis=1)), None

        return jax.lax.scan(step, state, length=STEPS)[0]

    flop = 2 * rows * kernel.size * STEPS
    return jax.jit(run), (jnp.ones((rows, UNITS)), kernel), flop


def main():
    """Prints GFLOP/s of the best of many products."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", type=int, nargs="+", default=[512, 1024, 2048])
    parser.add_argument("--rows", type=int, help="of a recurrence instead")
    parser.add_argument("--repeats", type=int, default=30)
    options = parser.parse_args()
    sizes = options.size if options.rows is None else [options.rows]
    make = square if options.rows is None else recurrence
    best = 0.0
    for size in sizes:
        program, arguments, flop = make(size)
        jax.block_until_ready(program(*arguments))
        for _ in range(options.repeats):
            began = time.perf_counter()
            jax.block_until_ready(program(*arguments))
            best = max(best, flop / (time.perf_counter() - began))
    say({"gflops": round(best / 1e9, 1)})


if __name__ == "__main__":
    main()
