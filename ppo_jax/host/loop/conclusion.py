"""The text at the end of a run: its results, its duration, and the next commands."""

from pathlib import Path
from typing import Any

from ppo_jax.host.metrics.figures import BEST, SCORE, Rows
from ppo_jax.host.process import command
from ppo_jax.host.process.console import Verbosity, duration, figure
from ppo_jax.host.process.exits import Exit
from ppo_jax.host.run_dir import files
from ppo_jax.host.run_dir.names import LOG


def conclude(
    ending: str,
    hint: str,
    config: Any,
    run_dir: Path,
    verbosity: Verbosity,
    page: Path | None = None,
) -> int:
    """Prints how a run has ended; returns the exit status.

    Args:
        ending: `finished`, `stopped`, `failed` or `interrupted`.
        hint: Text on how to continue the run.
        config: Experiment of the run.
        run_dir: Directory of the run.
        verbosity: How much to print. The cause of a failure is printed in any case.
        page: The page about the run, if one was made.
    """
    rows = files.rows(run_dir / LOG)
    if verbosity.notes:
        print(summary(ending, rows, run_dir, page))
    if ending in ("interrupted", "stopped"):
        print(hint)
    if ending == "failed":
        command.say(cause(rows, config.max_failures, run_dir))
    return Exit[ending.upper()]


def summary(ending: str, rows: Rows, run_dir: Path, page: Path | None = None) -> str:
    """Returns a few lines about the end of a run.

    Args:
        ending: `finished`, `stopped`, `failed` or `interrupted`.
        rows: Rows that the run logged.
        run_dir: Directory of the run.
        page: The page about the run, if one was made.
    """
    if not rows:
        return f"{ending}, without a row of metrics in {run_dir}"
    last = rows[-1]
    compiling = sum(row.get("time/compiling", 0.0) for row in rows)
    lines = [
        f"{ending}: {last['step']:,} steps in {duration(last['time/time_elapsed'])}, "
        f"{duration(compiling)} of it compiling"
    ]
    lines += [f"  {line}" for line in (_evaluation(rows), _quarantine(rows)) if line]
    lines += [f"  in {run_dir}"]
    lines += [f"  {page}"] if page else []
    if ending in ("finished", "stopped"):
        left = ("evaluate",) if page else ("evaluate", "report")
        lines += [f"  {command.typed(name, run_dir)}" for name in left]
    return "\n".join(lines)


def _evaluation(rows: Rows) -> str:
    """Returns a line on the last evaluation, and the best one if that is another."""
    evaluated = [row for row in rows if SCORE in row]
    rated = [row for row in evaluated if row[SCORE] is not None]
    if not evaluated:
        return "not evaluated yet"
    if not rated:
        return "no evaluation was finite"
    last = rated[-1]
    text = f"evaluation {figure(last[SCORE])}"
    if BEST in last:
        best = last[f"best/{SCORE}"]
        score = "not finite" if best is None else figure(best)
        return f"{text}, the median member; the fittest, {last[BEST]:.0f}: {score}"
    best = max(rated, key=lambda row: row[SCORE])
    if best[SCORE] > last[SCORE]:
        text += f"; best {figure(best[SCORE])} after {best['step']:,} steps"
    return text


def _quarantine(rows: Rows) -> str:
    """Returns a line on the share of steps that were not finite, if there were any.

    For several members, it is the share of the worst.
    """
    lost = sum(row.get("error/quarantined_steps", 0.0) for row in rows)
    share = lost / rows[-1]["step"]
    return f"quarantined: {share:.2%} of the steps were not finite" if share else ""


def cause(rows: Rows, updates: int, run_dir: Path) -> str:
    """Returns the cause of a run's failure.

    Args:
        rows: Rows that the run logged, the last two at least.
        updates: Updates in a row without one finite step that make a run fail.
        run_dir: Directory of the run.
    """
    begun = rows[-2]["step"] if len(rows) > 1 else 0
    lost = rows[-1].get("error/quarantined_steps")
    if lost is None:  # The rows of one among others have no more than evaluations.
        return f"{updates} updates in a row had no finite step"
    if lost >= rows[-1]["step"] - begun:
        return (
            f"{updates} updates in a row had no step with finite observations and "
            "rewards; `ppo_jax.envs.check` plays the environment and says which"
        )
    return (
        f"{updates} updates in a row had no finite optimiser step; error/* in "
        f"{run_dir / 'metrics.jsonl'} says why"
    )
