"""How every command ends: what goes wrong becomes a message and an exit status."""

import argparse
import functools
import logging
import sys
from collections.abc import Callable

import jax

from ppo_jax.errors import RunError, brief, mendable

EXIT_STATUS = {"finished": 0, "failed": 3, "interrupted": 130}
"""By how a run ended."""
WRONG = 2
"""The experiment, an option or the run directory is wrong."""

Main = Callable[..., int]

logging.getLogger("jax._src.callback").setLevel(logging.CRITICAL)
"""It prints tracebacks of callbacks, beside the exception that it raises."""


def entrance(main: Main) -> Main:
    """A command's `main`, out of which no error comes raw.

    What its user can mend, and whatever their own code raises, ends with status 2; what
    a disk or a device cannot do with 3; an interrupt with 130. All else is a fault of
    this package, and goes its way.
    """

    @functools.wraps(main)
    def enter(argv: list[str] | None = None) -> int:
        try:
            return main(argv)
        except KeyboardInterrupt:
            return EXIT_STATUS["interrupted"]
        except Exception as error:
            ending = told(error)
            if ending is None:
                raise
        status, message = ending
        say(message)
        return status

    return enter


def add_agent_options(parser: argparse.ArgumentParser) -> None:
    """Which agent of a run plays, and how."""
    checkpoint = parser.add_mutually_exclusive_group()
    checkpoint.add_argument(
        "--checkpoint",
        type=int,
        metavar="N",
        help="the one after N updates (default: the newest)",
    )
    checkpoint.add_argument("--best", action="store_true", help="the best checkpoint")
    parser.add_argument(
        "--member",
        type=int,
        help="which member of a population (default: the fittest at its last "
        "evaluation)",
    )
    parser.add_argument(
        "--sample",
        action="store_true",
        help="sample actions instead of taking the most likely ones",
    )


def add_verbosity_options(parser: argparse.ArgumentParser) -> None:
    """How much a run shows."""
    how = parser.add_mutually_exclusive_group()
    how.add_argument("--quiet", action="store_true", help="show warnings and errors")
    how.add_argument("--verbose", action="store_true", help="a line for every phase")


def told(error: Exception) -> tuple[int, str] | None:
    """The exit status and the message of an error; None: a fault of this package."""
    if message := mendable(error):
        return WRONG, message
    if isinstance(error, RunError | OSError):
        return EXIT_STATUS["failed"], str(error)
    if isinstance(error, jax.errors.JaxRuntimeError):
        return EXIT_STATUS["failed"], brief(error)
    return None


def say(message: str) -> None:
    """Says what went wrong."""
    print(f"error: {message}", file=sys.stderr)
