"""Saving and restoring whole populations: asynchronous, atomic, never pickled."""

import json
import logging
import math
from pathlib import Path
from typing import Any

import jax
import orbax.checkpoint as ocp
from orbax.checkpoint.checkpoint_managers import preservation_policy as keep

from ppo_jax.types import PyTree

logging.getLogger("absl").setLevel(logging.ERROR)


class Checkpointer:
    """Checkpoints of a run directory: the last ones and the best one.

    Args:
        run_dir: The run's directory.
        last: How many of the newest to keep; an older one stands in for a damaged one.
    """

    def __init__(self, run_dir: Path, last: int = 2):
        policy = keep.AnyPreservationPolicy(
            [
                keep.LatestN(last),
                keep.BestN(get_metric_fn=_fitness, n=1, reverse=False),
            ]
        )
        options = ocp.CheckpointManagerOptions(
            preservation_policy=policy, best_fn=_fitness, best_mode="max"
        )
        path = Path(run_dir).absolute() / "checkpoints"
        self._manager = ocp.CheckpointManager(path, options=options)

    def save(self, update: int, population: PyTree, fitness: float, meta: dict) -> None:
        """Starts to save; the population may be donated afterwards."""
        finite = fitness if math.isfinite(fitness) else -1e30  # NaN would stay best.
        self._manager.save(
            update,
            args=ocp.args.Composite(
                population=ocp.args.StandardSave(population),
                meta=ocp.args.JsonSave(meta),
            ),
            metrics={"fitness": finite},
        )

    @property
    def empty(self) -> bool:
        """Whether nothing was ever saved whole."""
        return not self._manager.all_steps()

    def restore(self, template: PyTree, best: bool = False) -> tuple[int, Any, dict]:
        """The newest whole checkpoint, or the best.

        Args:
            template: A population of the same structure, for shapes and devices.
            best: Whether to prefer the fittest one.

        Returns:
            Its update, its population and its metadata.

        Raises:
            FileNotFoundError: If there is none that can be read.
        """
        shapes = jax.tree.map(
            lambda x: jax.ShapeDtypeStruct(x.shape, x.dtype, sharding=x.sharding),
            template,
        )
        steps = sorted(self._manager.all_steps(), reverse=True)
        if best and (step := self._manager.best_step()) is not None:
            steps = [step, *(s for s in steps if s != step)]
        for step in steps:
            try:
                out = self._manager.restore(
                    step,
                    args=ocp.args.Composite(
                        population=ocp.args.StandardRestore(shapes),
                        meta=ocp.args.JsonRestore(),
                    ),
                )
                return step, out["population"], out["meta"]
            except Exception as error:
                print(f"checkpoint {step} cannot be read ({_first_line(error)})")
        raise FileNotFoundError(
            f"{self._manager.directory}: no checkpoint can be restored"
        )

    def close(self) -> None:
        """Waits until everything is on disk."""
        self._manager.wait_until_finished()
        self._manager.close()


def _fitness(metrics: dict) -> float:
    return metrics["fitness"]


def _first_line(error: Exception) -> str:
    return f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"


def write_json(path: Path, value: Any) -> None:
    """Writes a file whole or not at all."""
    part = path.with_suffix(path.suffix + ".part")
    part.write_text(json.dumps(value, indent=2) + "\n")
    part.replace(path)
