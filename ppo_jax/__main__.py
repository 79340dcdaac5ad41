"""What there is to run, and where to begin.

`python -m ppo_jax train` is `python -m ppo_jax.train`: a command is a module.
"""

import importlib
import sys

from ppo_jax.component import suggestion
from ppo_jax.errors import UserError
from ppo_jax.host.process import command

COMMANDS = (
    "train",
    "runs",
    "monitor",
    "evaluate",
    "watch",
    "report",
    "robustness",
    "export",
    "sweep",
    "walkforward",
    "paper",
    "replay",
    "selfcheck",
    "alerts",
)
"""In the order in which one comes to need them."""


@command.entrance
def main(argv: list[str] | None = None) -> int:
    """Runs a command, or says which ones there are; returns the exit status."""
    argv = sys.argv[1:] if argv is None else argv
    name, *rest = argv or ["--help"]
    if name in ("-h", "--help"):
        print(_overview())
        return 0
    if name not in COMMANDS:
        raise UserError(suggestion.unknown("command", name, COMMANDS))
    return importlib.import_module(f"ppo_jax.{name}").main(rest)


def _overview() -> str:
    """The first line of every command's help, and the example of the first one's."""
    modules = [importlib.import_module(f"ppo_jax.{name}") for name in COMMANDS]
    texts = [str(module.__doc__) for module in modules]
    width = max(map(len, COMMANDS))
    lines = [
        f"  {name:{width}}  {text.splitlines()[0]}"
        for name, text in zip(COMMANDS, texts, strict=True)
    ]
    _, _, example = texts[0].partition(command.EXAMPLE)
    return (
        "usage: python -m ppo_jax COMMAND ...\n\n"
        + "\n".join(lines)
        + f"\n\nBegin with:\n{example.rstrip()}\n\n"
        + "`COMMAND --help` says all about one."
    )


if __name__ == "__main__":
    sys.exit(main())
