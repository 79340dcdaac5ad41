"""What becomes of errors that come out of a command."""

import io
import subprocess
import sys
from unittest.mock import Mock

import jax
import pytest

from ppo_jax.errors import Misfit, RunError, UserError
from ppo_jax.host.process import command


@pytest.mark.parametrize(
    ("error", "status", "said"),
    [
        (UserError("gamma: too large"), 2, "error: gamma: too large\n"),
        (Misfit("Mine: got None"), 2, "error: Mine: got None\n"),
        (RunError("full\ngo on with: x"), 3, "error: full\ngo on with: x\n"),
        (OSError(28, "No space left"), 3, "error: [Errno 28] No space left\n"),
        (
            jax.errors.JaxRuntimeError("RESOURCE_EXHAUSTED: 9 bytes\nmore\n"),
            3,
            "error: JaxRuntimeError: RESOURCE_EXHAUSTED: 9 bytes\n",
        ),
        (KeyboardInterrupt(), 130, ""),
    ],
)
def test_an_error_becomes_a_status_and_a_message(capsys, error, status, said):
    """Raised by a mock: a line of this file would be the user's own."""
    assert command.entrance(Mock(side_effect=error))() == status
    assert capsys.readouterr().err == said


def test_a_fault_of_the_package_is_not_hidden():
    with pytest.raises(ZeroDivisionError):
        command.entrance(Mock(side_effect=ZeroDivisionError))()


def test_nothing_is_looked_for_when_a_command_has_ended():
    """Asked of a process that has all but ended."""
    code = (
        "import atexit, gc, sys\n"
        "atexit.register(lambda: print(gc.get_freeze_count() > 10_000))\n"
        "from ppo_jax import alerts\n"
        "sys.exit(alerts.main(['warn/explained_variance_low']))\n"
    )
    fresh = [sys.executable, "-c", code]
    done = subprocess.run(fresh, capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stdout.splitlines()[-1]) == (0, "True")


def test_a_field_of_a_part_may_be_called_as_an_option_is():
    parser = command.parser("train", f"Trains.{command.EXAMPLE}    train x.py")
    command.add_experiment(parser)
    command.add_verbosity_options(parser)
    fields = ["--env.verbose", "True", "--env.quiet=False"]
    _, found = command.parse_with_fields(parser, ["x.py", *fields])
    assert found == fields
    with pytest.raises(UserError, match="closest is '--verbose'"):
        command.parse_with_fields(parser, ["x.py", "--verbos"])


def test_what_an_encoding_cannot_say_is_escaped(monkeypatch):
    written = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(written, encoding="ascii"))
    assert command.entrance(lambda argv: print("ε") or 0)() == 0
    assert written.getvalue() == rb"\u03b5" + b"\n"


def test_what_nobody_can_read_is_dropped(monkeypatch):
    """As of a process that begins with closed streams, which Python has as None."""
    for name in ("stdin", "stdout", "stderr"):
        monkeypatch.setattr(sys, name, None)

    def main(argv):
        print("said", file=sys.stderr)
        assert sys.stdin.read() == "" and sys.stdout.fileno() != sys.stderr.fileno()
        raise UserError("wrong")

    assert command.entrance(main)() == 2
    assert command.entrance(lambda argv: print("told") or 0)() == 0
