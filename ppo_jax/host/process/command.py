"""Begins every command with its help, and ends it with a message and a status."""

import argparse
import atexit
import functools
import gc
import io
import logging
import os
import re
import shlex
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax

from ppo_jax.component import suggestion
from ppo_jax.errors import RunError, UserError, brief, mendable
from ppo_jax.host.process import leftover
from ppo_jax.host.process.exits import Exit

EXAMPLE = "\n\nExample:\n"
"""Text before the example, which ends a command's docstring."""

RARELY = 10_000
"""Growth of the number of objects after which Python looks for garbage, not 700."""

Main = Callable[..., int]

logging.getLogger("jax._src.callback").setLevel(logging.CRITICAL)
"""JAX's logger prints tracebacks of callbacks, beside the exception that JAX raises."""


def entrance(main: Main) -> Main:
    """Returns a command's `main` that ends on errors with a message and a status.

    Errors that the user can fix, and errors of the user's own code, end with status 2;
    failures of a disk or a device with 3; an interrupt with 130. All other errors are
    faults of this package, and are raised. Garbage is collected rarely, and neither
    among imported objects nor at the end of the process: that takes half a second of a
    short run.
    """

    @functools.wraps(main)
    def enter(argv: list[str] | None = None) -> int:
        _open_closed()
        if isinstance(sys.stdout, io.TextIOWrapper):
            sys.stdout.reconfigure(errors="backslashreplace")  # As stderr has it.
        gc.freeze()
        gc.set_threshold(RARELY)
        atexit.register(gc.freeze)
        try:
            status = main(argv)
            sys.stdout.flush()
            return status
        except KeyboardInterrupt:
            return Exit.INTERRUPTED
        except BrokenPipeError:
            hush()
            return Exit.UNREAD
        except Exception as error:
            ending = told(error)
            if ending is None:
                raise
        status, message = ending
        say(message)
        return status

    return enter


def parser(name: str, text: str | None) -> argparse.ArgumentParser:
    """Returns the parser of a command, to which the command adds its options.

    Args:
        name: Name of the command's module.
        text: Docstring of that module, which is the help: the command's task, its exit
            statuses and, after the options, an example.
    """
    about, mark, example = str(text).partition(EXAMPLE)
    found = argparse.ArgumentParser(
        prog=f"python -m ppo_jax.{name}",
        description=about,
        epilog=mark.strip() + "\n" + example.rstrip(),
        formatter_class=argparse.RawDescriptionHelpFormatter,
        add_help=False,
        allow_abbrev=False,
    )
    found.add_argument("-h", "--help", action=_Help, nargs=0, help="say all this")
    return found


def add_experiment(parser: argparse.ArgumentParser) -> None:
    """Adds the argument of an experiment; `--help` after it asks for its fields."""
    parser.add_argument(
        "experiment",
        type=Path,
        metavar="EXPERIMENT",
        help="a Python file with a Config named `config`",
    )
    parser.add_argument_group(
        "fields",
        "--FIELD VALUE sets a field of the config, such as --num-envs 16\n"
        "`EXPERIMENT --help` lists them",
    )


def add_run(parser: argparse.ArgumentParser) -> None:
    """Adds the argument of a run's directory."""
    parser.add_argument(
        "run_dir", type=Path, metavar="RUN_DIR", help="the directory of a run"
    )


def add_folder(parser: argparse.ArgumentParser) -> None:
    """Adds the argument of a folder with runs at any depth."""
    parser.add_argument(
        "folder", type=Path, metavar="FOLDER", help="where runs are, however deep"
    )


def parse(parser: argparse.ArgumentParser, argv: list[str] | None) -> Any:
    """Parses the options of a command that takes no others.

    Raises:
        UserError: If there are other options.
    """
    options, others = parser.parse_known_args(argv)
    refuse(parser, others)
    return options


def refuse(
    parser: argparse.ArgumentParser, words: list[str], fields: tuple[str, ...] = ()
) -> None:
    """Refuses words that are no options of a command, and none of its fields.

    Raises:
        UserError: If there are any.
    """
    if words:
        known = [*_options(parser), *fields]
        raise UserError(suggestion.unknown("option", words[0], known))


def parse_with_fields(
    parser: argparse.ArgumentParser, argv: list[str] | None
) -> tuple[Any, list[str]]:
    """Parses the options of a command; returns them, and all others as fields.

    Raises:
        UserError: If the line begins with a field, or has a value without a name, or a
            name that is no field and looks like an option.
    """
    options, overrides = parser.parse_known_args(argv)
    leftover.require_first(argv, overrides)
    leftover.require_named(argv, overrides)
    leftover.require_spelt(_options(parser), overrides)
    return options, overrides + ["--help"] * (options.help is not None)


def require(ok: bool, option: str, given: Any, expected: str) -> None:
    """Checks the value of an option.

    Raises:
        UserError: If `ok` is false.
    """
    if not ok:
        raise UserError(f"{option}: expected {expected}, got {given}")


def add_agent_options(parser: argparse.ArgumentParser) -> None:
    """Adds options for the agent of a run that plays, and for its actions."""
    add_member_options(parser)
    parser.add_argument(
        "--sample",
        action=argparse.BooleanOptionalAction,
        help="sample actions, or take the most likely ones (default: as the run's "
        "evaluations)",
    )


def add_member_options(parser: argparse.ArgumentParser) -> None:
    """Adds options for the checkpoint and the member of a run."""
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


def add_verbosity_options(parser: argparse.ArgumentParser) -> None:
    """Adds options for how much a run prints."""
    how = parser.add_mutually_exclusive_group()
    how.add_argument("--quiet", action="store_true", help="show warnings and errors")
    how.add_argument("--verbose", action="store_true", help="a line for every phase")


def typed(name: str, *words: Any) -> str:
    """Returns a command as it is typed into a shell.

    >>> typed("evaluate", Path("runs/my run"), "--best")
    "python -m ppo_jax.evaluate 'runs/my run' --best"
    >>> typed("evaluate", Path("-x"))
    'python -m ppo_jax.evaluate ./-x'
    """
    return f"python -m ppo_jax.{name} {shlex.join(map(_word, words))}"


def _word(word: Any) -> str:
    """Returns a word of a command line; a path is never taken for an option."""
    is_option = isinstance(word, Path) and str(word).startswith("-")
    return f"./{word}" if is_option else str(word)


def told(error: Exception) -> tuple[int, str] | None:
    """Returns the exit status and message of an error; None: this package's fault."""
    if message := mendable(error):
        return Exit.WRONG, message
    if isinstance(error, RunError | OSError):
        return Exit.FAILED, str(error)
    if isinstance(error, jax.errors.JaxRuntimeError):
        return Exit.FAILED, brief(error)
    return None


def hush() -> None:
    """Discards all further output, as its reader has closed the pipe."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def say(message: str) -> None:
    """Prints the message of an error."""
    print(f"error: {message}", file=sys.stderr)


def warn(message: Warning | str, *_: Any) -> None:
    """Prints a warning as one line, without a place in code that is not the user's."""
    print(f"warning: {message}", file=sys.stderr)


def _open_closed() -> None:
    """Opens streams that the process began without, so that no file takes their place.

    Their numbers are the lowest that are free, in this order.
    """
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            nowhere = os.open(os.devnull, os.O_RDWR)
            setattr(sys, name, os.fdopen(nowhere, mode, closefd=False))


def _options(parser: argparse.ArgumentParser) -> list[str]:
    """Returns the names of a command's options."""
    return re.findall(r"--[a-z-]+", parser.format_usage())


class _Help(argparse.Action):
    """Shows the help of a command, unless an experiment is asked for its own."""

    def __call__(self, parser: argparse.ArgumentParser, namespace: Any, *_: Any):
        if getattr(namespace, "experiment", None) is None:
            parser.print_help()
            parser.exit()
        namespace.help = True
