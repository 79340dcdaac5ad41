"""A job of one process, and what each computes on."""

from unittest.mock import Mock

import chex
import numpy as np
import pytest

from ppo_jax.errors import RunError, UserError
from ppo_jax.host.process import distributed


def test_a_single_process_agrees_with_itself():
    assert distributed.is_first()
    assert distributed.first_only(lambda: 3) == 3
    chex.assert_trees_all_equal(distributed.agreed(np.arange(3)), np.arange(3))
    assert distributed.any_of(True) is True and distributed.any_of(False) is False
    with pytest.raises(ZeroDivisionError):
        distributed.first_only(lambda: 1 / 0)


def test_the_first_process_writes_in_the_run_s_directory(tmp_path):
    with distributed.folder(tmp_path) as folder:
        assert folder == tmp_path


@pytest.mark.parametrize(
    ("raised", "ending", "said"),
    [
        (OSError(28, "No space left"), RunError, "No space left\ngo on with: x"),
        (UserError("gamma: too large"), UserError, "^gamma: too large$"),
        (ValueError("a fault"), ValueError, "^a fault$"),
    ],
)
def test_what_one_process_meets_ends_it_with_a_hint(raised, ending, said):
    """Raised by a mock: a line of this file would be the user's own."""
    fails = distributed.together("go on with: x")(Mock(side_effect=raised))
    with pytest.raises(ending, match=said):
        fails()


def test_what_the_user_s_own_code_meets_stays_what_it_is():
    """An error of a line of theirs is theirs to mend; this file counts as theirs."""
    with pytest.raises(OSError, match="No space"), distributed.together("x"):
        raise OSError(28, "No space left")
