"""Turns an export into ONNX, and plays both side by side.

    python docs/to_onnx.py FOLDER

reads a folder of `python -m ppo_jax.export` and writes FOLDER.onnx: one step of any
number of episodes, with the inputs and outputs of policy.stablehlo, one array after the
other. What onnxruntime does with it is then compared with policy.stablehlo, which is
the policy itself, over steps in which episodes begin now and then. It needs numpy, jax,
flatbuffers, jax2onnx and onnxruntime, and nothing of ppo_jax.
"""

import logging
import runpy
import sys
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

STEPS, COUNT = 200, 3
Step = Callable[[list[Any]], list[Any]]
"""From all inputs to all outputs."""


def main(folder: Path) -> None:
    """Converts, and says how far both are apart."""
    runner = runpy.run_path(str(folder / "policy.py"))
    said = runner["read"](folder)
    model = Path(f"{folder}.onnx")  # A version in its name is no suffix.
    convert(runner["Policy"](folder, xp=jnp), said, model)
    mine = live(by_onnxruntime(model), said)
    theirs = live(by_stablehlo(folder, said), said)
    print(f"{model}: {model.stat().st_size:,} bytes, of jax2onnx {version('jax2onnx')}")
    print(
        f"{STEPS} steps of {COUNT} episodes: onnxruntime {version('onnxruntime')} "
        f"against StableHLO by jax {jax.__version__}"
    )
    for name, one, other in zip(names(said), mine, theirs, strict=True):
        print(f"  {name}: largest difference {np.abs(one - other).max():.1e}")


def names(said: dict[str, Any]) -> list[str]:
    """What the outputs are."""
    carry = [".".join(map(str, ["carry", *x["path"]])) for x in said["carry"]]
    return ["actions", *carry]


def shapes(said: dict[str, Any]) -> list[tuple[tuple[int, ...], str]]:
    """Shapes and types of the inputs, without the first axis."""
    reset = {"shape": [], "dtype": "bool"}
    masks = [said["mask"]] if said["mask"] and said["mask"]["used"] else []
    arrays = (*said["carry"], *said["observation"], reset, *masks)
    return [(tuple(x["shape"]), x["dtype"]) for x in arrays]


def parts(said: dict[str, Any], arrays: Any) -> list[Any]:
    """Inputs as a step takes them: carry, observation, resets and perhaps masks."""
    first = len(said["carry"])
    last = first + len(said["observation"])
    return [tuple(arrays[:first]), tuple(arrays[first:last]), *arrays[last:]]


def convert(policy: Any, said: dict[str, Any], path: Path) -> None:
    """Writes a step as ONNX."""
    import onnx
    from jax2onnx import to_onnx

    def step(*arrays):
        action, carry = policy.step(*parts(said, arrays))
        return action, *carry

    logging.getLogger("onnx_ir").setLevel(logging.ERROR)  # It warns of shapes.
    inputs = [jax.ShapeDtypeStruct(("B", *shape), kind) for shape, kind in shapes(said)]
    onnx.save(to_onnx(step, inputs=inputs, model_name="policy"), path)


def by_onnxruntime(path: Path) -> Step:
    """A step of the model."""
    import onnxruntime

    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    names = [x.name for x in session.get_inputs()]
    return lambda arrays: session.run(None, dict(zip(names, arrays, strict=True)))


def by_stablehlo(folder: Path, said: dict[str, Any]) -> Step:
    """A step of the export's program."""
    program = jax.export.deserialize((folder / "policy.stablehlo").read_bytes())
    call = jax.jit(program.call)
    return lambda arrays: jax.tree.leaves(call(*parts(said, arrays)))


def live(step: Step, said: dict[str, Any]) -> list[np.ndarray]:
    """Outputs of all steps, each of which is given the carry after the one before."""
    rng, known, history = np.random.default_rng(0), shapes(said), []
    carried = len(said["carry"])
    carry = [np.zeros((COUNT, *shape), kind) for shape, kind in known[:carried]]
    for _ in range(STEPS):
        now = [drawn(rng, shape, kind) for shape, kind in known[carried:]]
        action, *carry = step([*carry, *now])
        history.append([action, *carry])
    return [np.stack(output) for output in zip(*history, strict=True)]


def drawn(rng: np.random.Generator, shape: tuple[int, ...], kind: str) -> np.ndarray:
    """Something to see; a tenth of the episodes begin, the first choice is legal."""
    if kind == "bool":
        some = rng.random((COUNT, *shape)) < (0.5 if shape else 0.1)
        some[..., :1] |= bool(shape)
        return some
    return (2 * rng.normal(size=(COUNT, *shape))).astype(kind)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
