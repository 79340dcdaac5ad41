"""Which page is made of which directories, and where it goes."""

import sys
from collections.abc import Sequence
from pathlib import Path

from ppo_jax.errors import brief
from ppo_jax.host.run_dir import files
from ppo_jax.reports import comparison, contenders, page, records

PAGE, PAGE_OF_SEVERAL = "report.html", "comparison.html"


def place(paths: Sequence[Path]) -> Path:
    """Where a page goes: beside its run, or here if it is about several."""
    return paths[0] / PAGE if len(paths) == 1 else Path(PAGE_OF_SEVERAL)


def text(paths: Sequence[Path]) -> str:
    """The page of a run, or one that compares runs and sweeps.

    Raises:
        UserError: If one of them is no run, or cannot be read.
    """
    if len(paths) == 1 and not contenders.is_sweep(paths[0]):
        return page.of_run(records.read(paths[0]))
    return comparison.of(paths)


def leave(run_dir: Path) -> Path | None:
    """Leaves a page beside a run at its end, and where; else a line says why not."""
    page = place([run_dir])
    try:
        files.write(page, text([run_dir]))
    except Exception as error:  # The run is worth more than its page.
        print(f"no report: {brief(error)}", file=sys.stderr)
        return None
    return page
