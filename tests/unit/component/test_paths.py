"""Fields by path: replaced together, checked as a whole, with messages that help."""

import pytest

from ppo_jax import Config, networks, optimizers, terms
from ppo_jax.component.paths import paths, replace

CARTPOLE = Config("CartPole-v1")


def test_numbers_and_structure_of_any_depth():
    changed = replace(
        CARTPOLE,
        {
            "terms.surrogate.clip_eps": 0.1,
            "terms.entropy": terms.Entropy(coef=0.5),
            "network.torso.hidden": (8, 8),
            "optimizer.learning_rate": 1,
            "total_timesteps": 2048,
        },
    )
    assert changed == Config(
        "CartPole-v1",
        terms=(terms.Surrogate(clip_eps=0.1), terms.Value(), terms.Entropy(coef=0.5)),
        network=networks.ActorCritic(torso=networks.Mlp(hidden=(8, 8))),
        optimizer=optimizers.Adam(learning_rate=1.0),
        total_timesteps=2048,
    )


def test_a_component_and_a_field_that_only_the_new_one_has():
    values = {"optimizer.sigma": 0.25, "optimizer": optimizers.UPGD()}
    assert replace(CARTPOLE, values).optimizer == optimizers.UPGD(sigma=0.25)


def test_values_that_only_fit_together():
    """Either alone does not divide the rollout."""
    values = {"num_minibatches": 3, "num_envs": 6}
    assert replace(CARTPOLE, values).num_minibatches == 3
    with pytest.raises(ValueError, match=r"Config\.num_minibatches"):
        replace(CARTPOLE, {"num_minibatches": 3})


@pytest.mark.parametrize(
    ("path", "value", "error", "said"),
    [
        ("optimiser.learning_rate", 1.0, KeyError, "'optimizer.learning_rate'"),
        ("optimizer.learnin_rate", 1.0, KeyError, "'optimizer.learning_rate'"),
        ("terms.surrogate.clip", 1.0, KeyError, "'terms.surrogate.clip_eps'"),
        ("optimizer.vgs.alpha", 0.1, KeyError, "alpha: optimizer.vgs is absent, give"),
        ("gamma.x", 1.0, KeyError, "no field is called 'gamma.x'"),
        ("gamma", 2.0, ValueError, r"gamma: expected a number in \(0, 1\], got 2.0"),
        ("gamma", "high", TypeError, "Config.gamma: expected float"),
        ("num_epochs", 1.5, TypeError, "Config.num_epochs: expected int"),
        ("terms.surrogate", 1.0, TypeError, "Config.terms"),
    ],
)
def test_what_cannot_be_is_said(path, value, error, said):
    with pytest.raises(error, match=said):
        replace(CARTPOLE, {path: value})


def test_every_path_can_be_replaced_by_its_own_value():
    found = paths(CARTPOLE)
    assert {"gamma", "terms", "terms.surrogate.clip_eps", "network.torso.hidden"} <= {
        *found
    }
    assert len(set(found)) == len(found)
