"""Makes the page of some directories, and chooses its path."""

import sys
from collections.abc import Sequence
from pathlib import Path

from ppo_jax.errors import brief
from ppo_jax.host.run_dir import files
from ppo_jax.host.run_dir.names import REPORT
from ppo_jax.reports import comparison, contenders, page, records

PAGE_OF_SEVERAL = "comparison.html"


def place(paths: Sequence[Path]) -> Path:
    """Returns the path of a page: in its run, or here if it is about several."""
    return paths[0] / REPORT if len(paths) == 1 else Path(PAGE_OF_SEVERAL)


def text(paths: Sequence[Path]) -> str:
    """Returns the page of a run, or one that compares runs and sweeps.

    Raises:
        UserError: If one of them is no run, or cannot be read.
    """
    if len(paths) == 1 and not contenders.is_sweep(paths[0]):
        return page.of_run(records.read(paths[0]))
    return comparison.of(paths)


def leave(run_dir: Path) -> Path | None:
    """Writes the page of a run that has ended, and returns its path.

    If that fails, the reason is printed, and None returned.
    """
    page = place([run_dir])
    try:
        files.write(page, text([run_dir]))
    except Exception as error:  # The run is worth more than its page.
        print(f"no report: {brief(error)}", file=sys.stderr)
        return None
    return page
