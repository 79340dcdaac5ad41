"""Devices that share an agent: a matter of speed, never of what comes out."""

import jax.numpy as jnp
import numpy as np
import pytest
from crew import CONFIGS
from runs import on_sixteen_cores

from ppo_jax.arrays.sharding import Crew, crew


@pytest.fixture(scope="module")
def lives(tmp_path_factory):
    """All arrays that the experiments ended in, and what they communicated."""
    return on_sixteen_cores("crew", tmp_path_factory.mktemp("crew"))


@pytest.mark.parametrize("name", CONFIGS)
def test_four_devices_come_to_what_one_comes_to(lives, name):
    """Members, all metrics, and returns of episodes; six of them are no shares of 4."""
    ended, said = lives
    alone, together = (
        {
            place.removeprefix(begins): x
            for place, x in ended.items()
            if place.startswith(begins)
        }
        for begins in (f"alone: {name}: ", f"shared: {name}: ")
    )
    assert len(alone) > 50
    for place, x in alone.items():
        # Log-ratios are small differences of logarithms of order 1.
        atol = 1e-5 if "log_ratio" in place else 1e-6
        np.testing.assert_allclose(together[place], x, 1e-5, atol, err_msg=place)
    assert said[f"alone: {name}"] == []
    assert "all-reduce" in said[f"shared: {name}"]  # Of gradients.


def test_what_is_compared_says_something(lives):
    """Steps were quarantined, minibatches attacked, agents learned, episodes differ."""
    ended, _ = lives
    everything, attacked = (
        f"alone: {name}: " for name in ("all at once", "attackers that draw nothing")
    )
    assert ended[f"{everything}[1]['error/quarantined_steps']"].sum() > 0
    assert (ended[f"{attacked}[1]['sa_ppo/num_adversarial']"] > 0).all()
    for begins in (everything, attacked):
        assert (ended[f"{begins}[1]['train/n_minibatches_done']"] > 0).all()
    for played in (2, 3):
        assert np.ptp(ended[f"{everything}[{played}]"]) > 0


def test_a_device_alone_does_nothing():
    sums, peaks = {"a": jnp.arange(6.0)}, {"b": jnp.float32(-1.0)}
    alone = crew(6)
    assert alone == Crew(1)
    assert alone.own(sums) is sums and alone.whole(sums) is sums
    assert alone.combined(sums, peaks) == (sums, peaks)
