"""Words of a command line that no option takes."""

import re

import pytest

from ppo_jax.errors import UserError
from ppo_jax.host.process import command


def parser():
    known = command.parser("train", f"Trains.{command.EXAMPLE}    train x.py")
    command.add_experiment(known)
    known.add_argument("--seeds", type=int)
    known.add_argument("--quiet", action="store_true")
    return known


@pytest.mark.parametrize(
    ("line", "fields"),
    [
        ("--a.b 8 16 --seeds 2", "--a.b 8 16"),
        ("--seeds 8 --a.b 8 --c=8", "--a.b 8 --c=8"),
        ("--a.b -1 --quiet --c 1", "--a.b -1 --c 1"),
    ],
)
def test_fields_may_have_values_between_options(line, fields):
    _, found = command.parse_with_fields(parser(), ["x.py", *line.split()])
    assert found == fields.split()


@pytest.mark.parametrize(
    ("line", "word", "before"),
    [
        ("--a.b 8 --seeds 1 2", "2", "1"),
        ("--seeds 2 2", "2", "--seeds"),
        ("--a.b 64 --quiet 16", "16", "--quiet"),
        ("16", "16", "x.py"),
    ],
)
def test_a_value_of_nothing_is_no_value_of_another_field(line, word, before):
    """A second seed became a layer's size, and one seed was trained."""
    said = f"'{word}': expected --FIELD before it, got '{before}'"
    with pytest.raises(UserError, match=re.escape(said)):
        command.parse_with_fields(parser(), ["x.py", *line.split()])
