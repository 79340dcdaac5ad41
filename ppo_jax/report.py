"""Draws a picture of a run; needs matplotlib, the extra `report`.

Its evaluations and, of a population, the family tree with the ancestry of the fittest
member of the last generation, and every searched number.

Exit status: 0, done. 2, an option or the run directory is wrong, or matplotlib is
missing.

Example:
    python -m ppo_jax.report runs/cartpole --out cartpole.png
"""

import sys
from pathlib import Path

from ppo_jax.component import former
from ppo_jax.errors import UserError
from ppo_jax.host import command, experiment, figures, files


@command.entrance
def main(argv: list[str] | None = None) -> int:
    """Draws `report.png`; returns the exit status."""
    parser = command.parser("report", __doc__)
    command.add_run(parser)
    parser.add_argument(
        "--out", type=Path, help="the picture (default: RUN_DIR/report.png)"
    )
    options = command.parse(parser, argv)
    out = options.out or options.run_dir / "report.png"
    metrics = files.rows(options.run_dir / "metrics.jsonl")
    if not metrics:
        raise UserError(f"{options.run_dir}: no run to be found there")
    files.require_writable(out)
    names = experiment.stored_names(options.run_dir)
    lineage = files.rows(options.run_dir / "lineage.jsonl")
    generations = former.translated(lineage, names)
    try:
        figures.draw(figures.panels(metrics, generations), out)
    except ValueError as error:
        raise UserError(f"{out}: {error}") from error
    print(out)
    return 0


if __name__ == "__main__":
    sys.exit(main())
