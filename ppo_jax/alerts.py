"""Says what an alert of a run means, and what to do about it.

Without a name it prints all of them, as `docs/monitoring.md` has them.

Exit status: 0, done. 2, there is no such alert.

Example:
    python -m ppo_jax.alerts warn/explained_variance_low
"""

import sys

from ppo_jax.host.metrics.alerts import document, page
from ppo_jax.host.process import command


@command.entrance
def main(argv: list[str] | None = None) -> int:
    """Prints the table, or what there is to know of an alert."""
    parser = command.parser("alerts", __doc__)
    parser.add_argument("name", nargs="?", help="as it is logged, such as warn/NAME")
    options = command.parse(parser, argv)
    print(page(options.name) if options.name else document(), end="")
    return 0


if __name__ == "__main__":
    sys.exit(main())
