"""The pure pieces in a loop of one's own: `experiments/by_hand.py`."""

import runpy
from pathlib import Path

import pytest

PATH = Path(__file__).parents[2] / "experiments" / "by_hand.py"


@pytest.fixture(scope="module")
def main():
    return runpy.run_path(str(PATH))["main"]


def test_an_update_learns_from_a_rollout(main):
    """Episodes of a policy that knows nothing are some twenty steps long."""
    assert 10 < main(updates=1) < 40


@pytest.mark.slow
def test_cartpole_is_solved(main):
    assert main() >= 475
