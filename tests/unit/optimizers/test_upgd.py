"""Optimisers that protect useful weights: their noise, and what warns of it."""

import warnings

import chex
import pytest
from stepping import steps

from ppo_jax import optimizers
from ppo_jax.optimizers import UPGD, UPGDW, VGS, AdaptiveUPGD
from ppo_jax.transforms.noise import fixed, gradient_norm, relative

GATED = [UPGD, UPGDW, AdaptiveUPGD]


@pytest.mark.parametrize("kind", GATED)
@pytest.mark.parametrize("alpha", [0.0, 0.1])
def test_noise_is_relative_behind_vgs(kind, alpha):
    """N3, R-A6: by default; without VGS it is fixed, and what is chosen holds."""

    def noise(**settings):
        _, state = steps(kind(**settings))
        gate = kind(**settings).metrics(state)
        return float(gate["upgd/noise_to_signal"]), float(gate["upgd/noise_std_mean"])

    chex.assert_trees_all_close(noise(vgs=VGS(alpha=alpha))[0], 0.001, rtol=1e-4)
    chex.assert_trees_all_close(noise()[1], 0.001, rtol=1e-5)
    chex.assert_trees_all_close(noise(noise_scale=relative)[0], 0.001, rtol=1e-4)


@pytest.mark.parametrize("kind", GATED)
@pytest.mark.parametrize("vgs", [None, VGS(alpha=0.0), VGS(alpha=0.1)])
@pytest.mark.parametrize("noise_scale", [None, fixed, gradient_norm, relative])
@pytest.mark.parametrize("sigma", [None, 0.0, 1e-4, 1.1e-4])
def test_loud_fixed_noise_behind_vgs_warns_once(kind, vgs, noise_scale, sigma):
    """N4, R-A6: VGS with α > 0, fixed noise and σ > 10⁻⁴; nothing else does."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        kind(vgs=vgs, noise_scale=noise_scale, sigma=sigma)
    active = vgs is not None and vgs.alpha > 0
    loud = active and noise_scale is fixed and sigma == 1.1e-4
    assert len(caught) == loud
    if loud:
        assert "does not shrink when VGS" in str(caught[0].message)
        assert caught[0].filename == __file__


def test_the_reference_of_the_numbers_tells_of_noise_and_vgs():
    """N5."""
    text = " ".join(optimizers.Gated.__doc__.split())
    assert "scaled gradients do not scale fixed noise" in text
    assert "With `vgs` noise is therefore relative to the direction by default" in text
