"""Makes a page about a run, or one that compares several runs.

It is one HTML file that needs nothing else, to be opened in any browser or sent to
anyone: how well the run came to do, what was wrong when, what it was. A sweep is
compared by its settings.

Exit status: 0, done. 2, an option or a directory is wrong.

Example:
    python -m ppo_jax.report runs/cartpole --open
"""

import argparse
import sys
import webbrowser
from pathlib import Path

from ppo_jax.host.process import command
from ppo_jax.host.run_dir import claims, files
from ppo_jax.reports import making


@command.entrance
def main(argv: list[str] | None = None) -> int:
    """Writes a page; returns the exit status."""
    options = command.parse(_parser(), argv)
    text = making.text(options.run_dirs)
    out = options.out or making.place(options.run_dirs)
    claims.require_output(out)
    files.write(out, text)
    print(out)
    if options.open and not webbrowser.open(out.resolve().as_uri()):
        print(f"no browser to be found; open {out}", file=sys.stderr)
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = command.parser("report", __doc__)
    parser.add_argument(
        "run_dirs",
        type=Path,
        nargs="+",
        metavar="RUN_DIR",
        help="the directory of a run or of a sweep; several are compared",
    )
    parser.add_argument(
        "--out",
        type=Path,
        help="the page (default: RUN_DIR/report.html; of several: comparison.html)",
    )
    parser.add_argument("--open", action="store_true", help="show it in a browser")
    return parser


if __name__ == "__main__":
    sys.exit(main())
