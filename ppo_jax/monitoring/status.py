"""Status of a run: under way or how it ended, its results, and the next command."""

import contextlib
import json
from pathlib import Path
from typing import NamedTuple

from ppo_jax.errors import UserError
from ppo_jax.host.loop.conclusion import cause
from ppo_jax.host.process import command
from ppo_jax.host.run_dir import batched, claims, ending, experiment, presence, script
from ppo_jax.host.run_dir.batched import BATCHES, OF_BATCHES, kind_of
from ppo_jax.host.run_dir.experiment import ExperimentError
from ppo_jax.host.run_dir.names import LINEAGE, LOG, SCHEDULE
from ppo_jax.monitoring.tail import Tail

RUNNING, FINISHED, STOPPED, INTERRUPTED, FAILED, UNSAVED = STATES = (
    "running",
    "finished",
    "stopped",
    "interrupted",
    "failed",
    "unsaved",
)
DONE = FINISHED, STOPPED
"""States of runs that have nothing left to do, and need nobody's attention."""
BATCH = "batch"
"""Kind of the batches of a sweep or a walk-forward, which are no runs of their own."""
BEFORE = "stopped before its first checkpoint"
WITHOUT_A_WORD = (
    "killed, stalled or stopped at once; it goes on from its last checkpoint"
)
BUDGET = ("total_timesteps", "num_envs", "num_steps", "max_failures")
"""Fields of an experiment that a status depends on; they are whole numbers."""


class Status(NamedTuple):
    """Status of a run."""

    path: Path
    kind: str
    """`run`, `population`, `replay`, `sweep`, `walkforward`, or `batch` of these."""
    state: str
    why: str
    step: int
    """Environment steps done, of each member."""
    total: int | None
    """Environment steps of the whole run, of each member; None: not known."""
    last: float | None
    """The last evaluation; of a population, that of the fittest member."""
    best: float | None
    """The best evaluation."""
    left: float | None
    """Seconds that are left; None: the run is not under way, or it is not known."""
    changed: float
    """Time of the run's last sign of life, in seconds since the epoch."""
    next: str
    """The command to give now, or the call of Python; empty: there is none."""


def now(run_dir: Path) -> Status:
    """Returns the present status of a run, after reading its whole log."""
    tail = Tail(run_dir / LOG)
    tail.read()
    return status(run_dir, tail)


def status(run_dir: Path, tail: Tail) -> Status:
    """Returns the present status of a run.

    Args:
        run_dir: The directory of the run.
        tail: The run's log, which has been read.
    """
    kind = _kind(run_dir)
    settings = _settings(run_dir, kind)
    total = None if kind in OF_BATCHES.values() else _total(settings, tail)
    state, why = _state(run_dir, tail, total, settings)
    speed = tail.speed if state == RUNNING else None
    return Status(
        path=run_dir,
        kind=kind,
        state=state,
        why=why,
        step=tail.step,
        total=total,
        last=tail.score,
        best=tail.best,
        left=(total - tail.step) / speed if speed and total is not None else None,
        changed=tail.changed or _heard(run_dir),
        next=_next(run_dir, kind, state),
    )


def again(run_dir: Path) -> str:
    """Returns what goes on with a run, however it ended; empty: nothing does.

    It is a command, or a call of Python for a sweep that was begun there.
    """
    kind = _kind(run_dir)
    home = run_dir.parents[1] if kind == BATCH else run_dir
    if claims.never_began(home) or _lost(run_dir):
        return ""
    if _is_of_python(home):
        return batched.call(home)
    kept = home / script.KEPT
    if not kept.exists():
        return ""
    if kind == "replay":
        return command.typed("replay", home, "--to", home, "--resume")
    name = kind_of(home) or ("sweep" if kind == BATCH else "train")
    return command.typed(name, kept, "--run-dir", home, "--resume")


def ended_badly(status: Status) -> bool:
    """Returns whether a run waits for somebody to look at it, or to resume it."""
    return status.state not in (RUNNING, *DONE)


def _kind(run_dir: Path) -> str:
    if kind := kind_of(run_dir):
        return kind
    home = run_dir.parent.parent
    if run_dir.parent.name == BATCHES and (home / experiment.CONFIG).exists():
        return BATCH
    if (run_dir / SCHEDULE).exists():
        return "replay"
    return "population" if (run_dir / LINEAGE).exists() else "run"


def _is_of_python(run_dir: Path) -> bool:
    """Returns whether a directory holds a sweep of `fit_all`."""
    try:
        return "runs" in experiment.stored(run_dir, batched.SWEEP)
    except ExperimentError:
        return False


def _lost(run_dir: Path) -> str:
    """Returns why a run cannot go on, if its checkpoints are gone."""
    try:
        claims.require_whole(run_dir)
    except ExperimentError as error:
        return str(error).removeprefix(f"{run_dir}: ")
    except (UserError, OSError, ValueError, TypeError, KeyError):
        return ""  # The log is damaged, or that of another program.
    return ""


def _settings(run_dir: Path, kind: str) -> dict[str, int]:
    """Returns the `BUDGET` of a run, or of a batch's sweep; empty if unreadable."""
    home = run_dir.parents[1] if kind == BATCH else run_dir
    try:
        fields = json.loads((home / experiment.CONFIG).read_text())
        return {name: int(fields[name]["value"]) for name in BUDGET}
    except (OSError, ValueError, TypeError, KeyError):
        return {}


def _total(settings: dict[str, int], tail: Tail) -> int | None:
    """Returns the environment steps of the whole run, which has whole updates only."""
    if not settings:
        return None
    updates = tail.last.get("time/iterations")
    given = settings["num_envs"] * settings["num_steps"]
    update = tail.step / updates if updates else given
    return int(settings["total_timesteps"] // update * update) if update > 0 else None


def _state(
    run_dir: Path, tail: Tail, total: int | None, settings: dict[str, int]
) -> tuple[str, str]:
    """Returns the state of a run, and its cause.

    The state of a run that left no ending is guessed from its files.
    """
    if presence.is_alive(run_dir):
        return RUNNING, ""
    if claims.never_began(run_dir):
        return UNSAVED, claims.AGAIN
    ended, lost = ending.last(run_dir), _lost(run_dir)
    if ended.state in STATES:
        if ended.state == FAILED and not ended.why:
            return FAILED, _cause(run_dir, tail, settings)
        return ended.state, ended.why or lost
    if kind_of(run_dir) is not None:
        return INTERRUPTED, WITHOUT_A_WORD
    saved = claims.newest(run_dir)
    whole = saved is None or saved >= tail.last.get("time/iterations", 0)
    if whole and total is not None and tail.step >= total:
        return FINISHED, lost
    if saved is None:
        return UNSAVED, lost or BEFORE
    return INTERRUPTED, WITHOUT_A_WORD


def _cause(run_dir: Path, tail: Tail, settings: dict[str, int]) -> str:
    """Returns the reason why a run failed to learn; empty: not known."""
    if settings and "error/quarantined_steps" in tail.last:
        return cause(list(tail.rows), settings["max_failures"], run_dir)
    return ""


def _next(run_dir: Path, kind: str, state: str) -> str:
    """Returns the command to give now; empty: there is none."""
    following = "" if state == RUNNING else again(run_dir)
    if not following or state not in DONE:
        return following
    single = kind not in (BATCH, *OF_BATCHES.values())
    return command.typed("evaluate", run_dir) if single else ""


def _heard(run_dir: Path) -> float:
    """Returns the time when a run without a log last began or ended; 0: not known."""
    found = 0.0
    for name in (presence.LOCK, ending.KEPT):
        with contextlib.suppress(OSError):
            found = max(found, (run_dir / name).stat().st_mtime)
    return found
