"""What a batch of a walk-forward came to, from its file."""

import numpy as np

from ppo_jax.backtests import walking


def test_a_batch_of_a_version_before_is_read(tmp_path):
    """It did not say whose training failed; each member is there once."""
    place = np.array([[0, 0, 0], [0, 1, 0], [0, 1, 0]])
    others = dict.fromkeys(walking.Tracks._fields, np.arange(3.0))
    del others["failed"]
    np.savez(tmp_path / walking.KEPT, **others | {"place": place})
    found = walking.kept(tmp_path)
    assert found.place.tolist() == [[0, 0, 0], [0, 1, 0]]
    assert found.growth.tolist() == [0, 1]
    assert found.failed.tolist() == [False, False]
