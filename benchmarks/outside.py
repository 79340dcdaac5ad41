"""Microseconds of a step of policy.onnx; needs onnxruntime, and nothing of ppo_jax.

python benchmarks/outside.py policy.onnx EPISODES STEPS
"""

import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np


def main(path: str, episodes: str, steps: str) -> None:
    """Prints what a step takes."""
    import onnxruntime

    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    n, carried = int(episodes), len(session.get_outputs()) - 1
    kinds = {"tensor(float)": np.float32, "tensor(int32)": np.int32}
    given = {
        x.name: np.zeros((n, *x.shape[1:]), kinds.get(x.type, bool))
        for x in session.get_inputs()
    }
    names = [*given][:carried]

    def step():
        action, *carry = session.run(None, given)
        given.update(zip(names, carry, strict=True))
        return action

    print(timed(step, int(steps)))


def timed(step: Callable[[], Any], steps: int) -> float:
    """Microseconds of a step: the median of so many, after some that do not count."""
    for _ in range(10):
        step()
    ends = [time.perf_counter()]
    for _ in range(steps):
        step()
        ends.append(time.perf_counter())
    return 1e6 * float(np.median(np.diff(ends)))


if __name__ == "__main__":
    main(*sys.argv[1:])
