"""Which errors mean that a file is damaged."""

import errno
from contextlib import closing
from unittest import mock

import jax.numpy as jnp
import pytest

from ppo_jax.host.run_dir import damage
from ppo_jax.host.run_dir.checkpoint import Checkpointer


@pytest.mark.parametrize("name", ["EIO", "ETIMEDOUT", "ESTALE", "EMFILE", "EACCES"])
def test_what_may_be_read_later_passes(name):
    number = getattr(errno, name)
    assert damage.passes(OSError(number, name))
    assert damage.passes(ValueError(f'Error reading "x": [OS error {number}: {name}]'))


@pytest.mark.parametrize("name", ["ENOENT", "EISDIR", "EINVAL", "EBADMSG", "EUCLEAN"])
def test_what_is_gone_or_damaged_does_not(name):
    """The last two are of file systems that found a checksum wrong."""
    number = getattr(errno, name)
    assert not damage.passes(OSError(number, name))
    assert not damage.passes(ValueError("Checksum is wrong"))


def test_the_best_checkpoint_is_not_forgotten_for_a_while(tmp_path, monkeypatch):
    """Otherwise the next save would remove it, as it were not known to be the best."""
    tree = {"x": jnp.zeros(3)}
    with closing(Checkpointer(tmp_path, last=1)) as checkpoints:
        for update, fitness in ((1, 2.0), (2, 1.0)):
            checkpoints.save(update, tree, fitness, meta={})
    with monkeypatch.context() as short:
        fails = mock.Mock(side_effect=OSError(errno.EMFILE, "Too many open files"))
        short.setattr(Checkpointer, "_meta", fails)
        with pytest.raises(OSError, match=r"[12]: cannot be read now \(.*Too many"):
            Checkpointer(tmp_path)
    with closing(Checkpointer(tmp_path, last=1)) as checkpoints:
        checkpoints.save(3, tree, 0.0, meta={})
    with closing(Checkpointer(tmp_path)) as checkpoints:
        assert checkpoints.restore(tree, best=True)[0] == 1
