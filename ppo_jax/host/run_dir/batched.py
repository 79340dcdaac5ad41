"""Directories of many runs, which are trained batch after batch."""

from pathlib import Path

from ppo_jax.host.run_dir.script import ExperimentError

SWEEP, WALK = "sweep.json", "walk.json"
OF_BATCHES = {SWEEP: "sweep", WALK: "walkforward"}
"""The commands that have batches, by what each remembers of its command line."""
BATCHES = "batches"
SCORES, SELECTED, TRACKS = KEPT = ("scores.json", "selected.npz", "tracks.npz")
"""What a batch has come to, which is taken as it is."""
INSTEAD = {
    "sweep": "a sweep; ppo_jax.load_all finds its runs, each of which a directory can "
    "be made of by its save, and sweep --resume goes on with all",
    "walkforward": "a walk-forward; its backtest.html says what its agents came to, "
    "and walkforward --resume goes on with all",
}
"""What holds many runs, and what there is to do with it."""


def kind_of(run_dir: Path) -> str | None:
    """The command whose batches a directory holds; None: it holds none."""
    found = (kind for kept, kind in OF_BATCHES.items() if (run_dir / kept).exists())
    return next(found, None)


def require_single(run_dir: Path) -> None:
    """Checks that a directory is not that of many runs.

    Raises:
        ExperimentError: If it is; the message says what there is to do.
    """
    kind = kind_of(run_dir)
    if kind is not None:
        raise ExperimentError(f"{run_dir}: holds {INSTEAD[kind]}")


def has_results(run_dir: Path) -> bool:
    """Whether a batch there has come to anything, which new ones would be taken for."""
    return any(any(run_dir.glob(f"{BATCHES}/*/{name}")) for name in KEPT)


def forget(run_dir: Path) -> None:
    """Forgets what many runs were asked for there, before another run begins."""
    for name in OF_BATCHES:
        (run_dir / name).unlink(missing_ok=True)
