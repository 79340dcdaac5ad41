"""A learning rate that follows the divergence, in updates and beside other parts."""

import re
from contextlib import nullcontext

import jax
import numpy as np
import pytest
from stepping import KEY, PARAMS

from ppo_jax.config import Config
from ppo_jax.optimizers import Adam, KlAdaptive, Sgd
from ppo_jax.schedules import Progress


def test_a_loop_of_one_s_own_gives_the_divergence():
    optimizer = Sgd(1.0, max_grad_norm=None, kl_adaptive=KlAdaptive(0.01))
    given = PARAMS, optimizer.init(PARAMS), PARAMS, KEY, Progress.at(0.5)
    updates, _, norm = optimizer.update(*given, {"train/approx_kl": 0.03})
    for key, update in updates.items():  # Half of the rate is left by the schedule.
        np.testing.assert_allclose(update, -0.5 / 1.5 * PARAMS[key], rtol=1e-6)
    length = np.sqrt(sum(np.sum(np.square(x)) for x in jax.tree.leaves(PARAMS)))
    np.testing.assert_allclose(norm, length, rtol=1e-6)
    said = "KlAdaptive: expected a metric train/approx_kl, got ['train/loss']"
    with pytest.raises(ValueError, match=f"^{re.escape(said)}$"):
        optimizer.update(*given, {"train/loss": 1.0})
    with pytest.raises(ValueError, match=r"got \[\]$"):
        optimizer.update(*given)


def test_steps_stay_elementwise():
    assert Adam(kl_adaptive=KlAdaptive()).elementwise


@pytest.mark.parametrize("sizes", [(1, 1), (1, 2), (2, 1)])
def test_an_update_of_one_step_shows_no_divergence(sizes):
    epochs, minibatches = sizes
    given = {"num_epochs": epochs, "num_minibatches": minibatches}
    given["optimizer"] = Adam(kl_adaptive=KlAdaptive())
    said = "^Config.num_epochs: expected at least 2 steps in an update for kl_adaptive"
    with pytest.raises(ValueError, match=said) if sizes == (1, 1) else nullcontext():
        Config("CartPole-v1", **given)
