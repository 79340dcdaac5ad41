"""The fastest that the machine multiplies matrices: what no program can surpass."""

import argparse
import time

import jax
from measure import say


def main():
    """Prints GFLOP/s of the best of many products."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", type=int, nargs="+", default=[512, 1024, 2048])
    parser.add_argument("--repeats", type=int, default=30)
    options = parser.parse_args()
    product = jax.jit(lambda a, b: a @ b)
    best = 0.0
    for size in options.size:
        a, b = jax.random.normal(jax.random.key(0), (2, size, size))
        jax.block_until_ready(product(a, b))
        for _ in range(options.repeats):
            began = time.perf_counter()
            jax.block_until_ready(product(a, b))
            best = max(best, 2 * size**3 / (time.perf_counter() - began))
    say({"gflops": round(best / 1e9, 1)})


if __name__ == "__main__":
    main()
