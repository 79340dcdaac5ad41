"""Directories of many runs, which are trained batch after batch."""

from pathlib import Path

from ppo_jax.host.run_dir.script import ExperimentError

SWEEP, WALK = "sweep.json", "walk.json"
OF_BATCHES = {SWEEP: "sweep", WALK: "walkforward"}
"""Commands that train batches, by the file in which each keeps its command line."""
BATCHES = "batches"
SCORES, SELECTED, TRACKS = KEPT = ("scores.json", "selected.npz", "tracks.npz")
"""Files with results of a batch, which are taken as they are."""
INSTEAD = {
    "sweep": "a sweep; ppo_jax.load_all finds its runs, each of which a directory can "
    "be made of by its save, and sweep --resume goes on with all",
    "walkforward": "a walk-forward; its backtest.html says what its agents came to, "
    "and walkforward --resume goes on with all",
}
"""Texts on directories of many runs, and on what to do with them, by command."""


def kind_of(run_dir: Path) -> str | None:
    """Returns the command whose batches a directory holds, or None."""
    found = (kind for kept, kind in OF_BATCHES.items() if (run_dir / kept).exists())
    return next(found, None)


def call(run_dir: Path) -> str:
    """Returns the call of Python that goes on with a sweep which was begun there.

    >>> call(Path("runs/x"))
    "ppo_jax.fit_all(configs, 'runs/x', resume=True)"
    """
    return f"ppo_jax.fit_all(configs, {str(run_dir)!r}, resume=True)"


def require_single(run_dir: Path) -> None:
    """Checks that a directory does not hold many runs.

    Raises:
        ExperimentError: If it does; the message says what to do instead.
    """
    kind = kind_of(run_dir)
    if kind is not None:
        raise ExperimentError(f"{run_dir}: holds {INSTEAD[kind]}")


def has_results(run_dir: Path) -> bool:
    """Returns whether a batch there has results, which would pass for new ones."""
    return any(any(run_dir.glob(f"{BATCHES}/*/{name}")) for name in KEPT)
