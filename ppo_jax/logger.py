"""Metrics on the host: `metrics.jsonl` and tensorboard events, by environment step."""

import json
from pathlib import Path

import numpy as np
from tensorboardX import SummaryWriter


class Logger:
    """Writes one row per phase; rows after `first_step` are cut off on resume.

    Args:
        run_dir: The run's directory.
        first_step: Environment steps done when the run starts or resumes.
    """

    def __init__(self, run_dir: Path, first_step: int):
        self._path = Path(run_dir) / "metrics.jsonl"
        if self._path.exists():
            rows = [json.loads(line) for line in _whole_lines(self._path)]
            kept = [json.dumps(row) for row in rows if row["step"] <= first_step]
            self._path.write_text("".join(line + "\n" for line in kept))
        purge = first_step + 1 if first_step else None
        self._events = SummaryWriter(str(run_dir), purge_step=purge)

    def write(self, step: int, metrics: dict[str, float]) -> None:
        """Appends a row; a value that is not finite is left out of the events."""
        numbers = {name: float(value) for name, value in metrics.items()}
        row = {k: v if np.isfinite(v) else None for k, v in sorted(numbers.items())}
        with self._path.open("a") as file:
            file.write(json.dumps({"step": step} | row) + "\n")
        for name, value in numbers.items():
            if np.isfinite(value):
                self._events.add_scalar(name, value, step)

    def close(self) -> None:
        """Flushes the events."""
        self._events.close()


def _whole_lines(path: Path) -> list[str]:
    """Lines that were written to their end before the process was killed."""
    return [line for line in path.read_text().splitlines(True) if line.endswith("\n")]
