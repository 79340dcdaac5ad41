"""Lists all runs below a folder: how they are, what they reached, and how they go on.

Runs of sweeps are among them, batch by batch. A run is `running` while its process is
alive, `finished`, `stopped` by a bound or a callback, `interrupted`, `failed`, or
`unsaved`: it ended before its first checkpoint.

Exit status: 0, done. 2, an option or the folder is wrong.

Example:
    python -m ppo_jax.runs runs --json runs.json
"""

import sys
from pathlib import Path

from ppo_jax.errors import UserError
from ppo_jax.host.process import command
from ppo_jax.host.run_dir import claims, files
from ppo_jax.monitoring import listing


@command.entrance
def main(argv: list[str] | None = None) -> int:
    """Prints the list; returns the exit status."""
    parser = command.parser("runs", __doc__)
    command.add_folder(parser)
    parser.add_argument("--json", type=Path, help="also write the list to a file")
    options = command.parse(parser, argv)
    if options.json:
        claims.require_output(options.json)
    runs = listing.listed(options.folder)
    if not runs:
        raise UserError(f"{options.folder}: no run to be found there")
    print(listing.text(runs), end="")
    if options.json:
        files.write_json(options.json, listing.as_json(runs))
    return 0


if __name__ == "__main__":
    sys.exit(main())
