"""Shows all runs below a folder in a browser, and how they grow.

The pages are for this machine alone, and only read. To look at them from elsewhere,
forward the port: `ssh -L 6007:localhost:6007 HOST`.

Exit status: 2, an option or the folder is wrong. 130, interrupted: Ctrl-C ends it.

Example:
    python -m ppo_jax.monitor runs --port 6007
"""

import sys

from ppo_jax.host.process import command
from ppo_jax.monitoring.server import Server
from ppo_jax.monitoring.watch import Watch

PORT = 6007
"""Beside that of tensorboard."""


@command.entrance
def main(argv: list[str] | None = None) -> int:
    """Serves pages until it is interrupted."""
    parser = command.parser("monitor", __doc__)
    command.add_folder(parser)
    parser.add_argument(
        "--port", type=int, default=PORT, help=f"0: any that is free (default: {PORT})"
    )
    options = command.parse(parser, argv)
    possible = 0 <= options.port < 2**16
    command.require(possible, "--port", options.port, "0 to 65535")
    with Server(Watch(options.folder), options.port) as server:
        print(f"{server.address}  Ctrl-C ends it", flush=True)
        server.serve_forever()
    return 0


if __name__ == "__main__":
    sys.exit(main())
