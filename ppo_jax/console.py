"""What a run shows: a progress bar on a terminal, plain lines elsewhere."""

import os
import sys

from rich.console import Console as Terminal
from rich.progress import (
    BarColumn,
    Progress,
    TaskProgressColumn,
    TextColumn,
    TimeRemainingColumn,
)


class Console:
    """Lines, and progress over environment steps once it has started.

    Args:
        quiet: Whether to show nothing.
    """

    def __init__(self, quiet: bool = False):
        self._terminal = Terminal(quiet=quiet)
        self._bar = Progress(
            BarColumn(),
            TaskProgressColumn(),
            TimeRemainingColumn(),
            TextColumn("{task.description}"),
            console=self._terminal,
            disable=not self._terminal.is_terminal,
        )
        self._total = 0

    def start(self, total: int, done: int) -> None:
        """Begins the bar.

        Args:
            total: Environment steps of the whole run.
            done: Those done before.
        """
        self._total = total
        self._task = self._bar.add_task("compiling", total=total, completed=done)
        self._bar.start()

    def say(self, text: str) -> None:
        """Prints a line above the bar."""
        self._terminal.print(text, highlight=False, markup=False, soft_wrap=True)

    def update(self, step: int, metrics: dict[str, float]) -> None:
        """Shows how far the run is and how it does."""
        text = (
            f"{metrics['time/fps']:,.0f} steps/s"
            f"  return {metrics['rollout/ep_rew_mean']:.1f}"
        )
        if "eval/mean_reward" in metrics:
            mean = metrics["eval/mean_reward"]
            best = metrics.get("best/eval/mean_reward", mean)
            said = f"  best {best:.1f}" if best != mean else ""
            self.say(f"{step:>12,} steps  evaluation {mean:.1f}{said}")
        self._bar.update(self._task, completed=step, description=text)
        if not self._terminal.is_terminal:
            self.say(f"{step:>12,} / {self._total:,} steps  {text}")

    def close(self) -> None:
        """Ends the bar."""
        self._bar.stop()

    def leave(self, status: int) -> None:
        """Ends the process at once, from any thread; what is on disk stays whole."""
        self.close()
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)
