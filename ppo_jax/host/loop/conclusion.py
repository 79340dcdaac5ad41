"""What a run tells at its end: what it reached, how long it took, and what is next."""

from pathlib import Path
from typing import Any

from ppo_jax.host.metrics.figures import BEST, SCORE, Rows
from ppo_jax.host.process import command
from ppo_jax.host.process.console import Verbosity, duration, figure
from ppo_jax.host.process.exits import Exit
from ppo_jax.host.run_dir import files


def conclude(
    ending: str,
    hint: str,
    config: Any,
    run_dir: Path,
    verbosity: Verbosity,
    page: Path | None = None,
) -> int:
    """Says how a run has ended; returns the exit status.

    Args:
        ending: `finished`, `stopped`, `failed` or `interrupted`.
        hint: How to go on with it.
        config: Its experiment.
        run_dir: Its directory.
        verbosity: How much to show. Why it failed is said in any case.
        page: What was made of it to be read, if anything.
    """
    rows = files.rows(run_dir / "metrics.jsonl")
    if verbosity.notes:
        print(summary(ending, rows, run_dir, page))
    if ending in ("interrupted", "stopped"):
        print(hint)
    if ending == "failed":
        command.say(cause(rows, config.max_failures, run_dir))
    return Exit[ending.upper()]


def summary(ending: str, rows: Rows, run_dir: Path, page: Path | None = None) -> str:
    """The end of a run in a few lines.

    Args:
        ending: `finished`, `stopped`, `failed` or `interrupted`.
        rows: What it logged.
        run_dir: Its directory.
        page: What was made of it to be read, if anything.
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
    """The last evaluation, and the best one if that is another."""
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
        said = "not finite" if best is None else figure(best)
        return f"{text}, the median member; the fittest, {last[BEST]:.0f}: {said}"
    best = max(rated, key=lambda row: row[SCORE])
    if best[SCORE] > last[SCORE]:
        text += f"; best {figure(best[SCORE])} after {best['step']:,} steps"
    return text


def _quarantine(rows: Rows) -> str:
    """Which share of the steps was not finite; of members, that of the worst."""
    share = sum(row["error/quarantined_steps"] for row in rows) / rows[-1]["step"]
    return f"quarantined: {share:.2%} of the steps were not finite" if share else ""


def cause(rows: Rows, updates: int, run_dir: Path) -> str:
    """Why a run failed.

    Args:
        rows: What it logged, the last two at least.
        updates: How many of them without one finite step it was to bear.
        run_dir: Its directory.
    """
    begun = rows[-2]["step"] if len(rows) > 1 else 0
    if rows[-1]["error/quarantined_steps"] >= rows[-1]["step"] - begun:
        return (
            f"{updates} updates in a row had no step with finite observations and "
            "rewards; `ppo_jax.envs.check` plays the environment and says which"
        )
    return (
        f"{updates} updates in a row had no finite optimiser step; error/* in "
        f"{run_dir / 'metrics.jsonl'} says why"
    )
