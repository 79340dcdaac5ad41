"""What is imitated: demonstrations that fit, and draws from them."""

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from minibatches import context, forward, minibatch, targets
from tabular import as_float64

from ppo_jax import Config, networks, terms
from ppo_jax.envs.env import Box, Discrete, MultiDiscrete
from ppo_jax.networks.distributions import Categorical
from ppo_jax.schedules import Linear
from ppo_jax.terms import Demonstrations, Imitation, Sequences

OBS = np.arange(8.0).reshape(4, 2)
ACTION, WEIGHT = np.array([0, 1, 2, 1]), np.array([2.0, 0.0, 4.0, 2.0])
SHOWN = Demonstrations(OBS, ACTION, WEIGHT)
AT_BOUNDS = np.array([[-0.1], [0.1], [0.1], [-0.1]])
"""In float32, 0.1 is more than in float64."""
SPEC = jax.ShapeDtypeStruct((2,), jnp.float32)


def test_demonstrations_are_values():
    """Equal by content, whatever made them; what was given may change afterwards."""
    obs = OBS.copy()
    mine = Demonstrations(obs, ACTION.tolist(), WEIGHT)
    obs[0] = 99.0
    assert mine == SHOWN and hash(mine) == hash(SHOWN) and repr(mine) == repr(SHOWN)
    others = [
        Demonstrations(OBS + 1, ACTION, WEIGHT),
        Demonstrations(OBS, ACTION[::-1], WEIGHT),
        Demonstrations(OBS, ACTION),
        Demonstrations({"x": OBS}, ACTION, WEIGHT),
        Demonstrations(OBS, ACTION.astype(float), WEIGHT),
    ]
    assert len({SHOWN, *others}) == 6
    chex.assert_type([mine.obs, mine.action, mine.weight], [float, int, float])
    assert SHOWN.shape == (4,) and str(SHOWN).startswith("Demonstrations([4], ")


def test_steps_are_drawn_by_index_with_weights_of_mean_one():
    obs, action, weight = SHOWN.draw(jnp.array([[0, 2], [3, 2]]))
    chex.assert_trees_all_equal(obs, jnp.float32(OBS)[jnp.array([[0, 2], [3, 2]])])
    chex.assert_trees_all_equal(action, jnp.array([[0, 2], [1, 2]]))
    chex.assert_trees_all_close(weight, np.array([[1, 2], [1, 2.0]]), rtol=1e-6)


def test_sequences_are_drawn_whole():
    """A column each, whatever the other rows of indices are."""
    shown = Sequences(np.arange(12.0).reshape(3, 4, 1), np.arange(12).reshape(3, 4))
    obs, action, weight = shown.draw(jnp.array([[2, 0], [9, 9]]))
    chex.assert_trees_all_equal(action, jnp.array([[2, 0], [6, 4], [10, 8]]))
    chex.assert_trees_all_equal(obs[..., 0], action.astype(jnp.float32))
    chex.assert_trees_all_equal(weight, jnp.ones((3, 2)))


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (
            lambda: Demonstrations(OBS[:3], ACTION),
            r"Demonstrations\.obs: expected 1 le",
        ),
        (lambda: Demonstrations({"x": OBS[:3]}, ACTION), r"obs\['x'\]: expected"),
        (lambda: Demonstrations(OBS, ACTION, [1.0]), r"Demonstrations\.weight"),
        (lambda: Demonstrations(OBS * np.nan, ACTION), "obs: expected finite numbers"),
        (lambda: Demonstrations(OBS, ACTION, -WEIGHT), "weight: expected numbers ≥ 0"),
        (lambda: Demonstrations(OBS, ACTION, 0 * WEIGHT), "not all of them 0"),
        (lambda: Demonstrations(OBS, 3), r"Demonstrations\.action: expected 1 leading"),
        (lambda: Sequences(OBS, ACTION), r"Sequences\.action: expected 2 leading"),
        (lambda: Imitation(SHOWN, coef=-1.0), r"Imitation\.coef: expected"),
    ],
)
def test_impossible_demonstrations_are_errors(make, said):
    with pytest.raises(ValueError, match=said):
        make()


@pytest.mark.parametrize(
    ("shown", "spec", "space", "memory", "said"),
    [
        (SHOWN, SPEC, Discrete(2), False, r"action: expected actions of Discrete\(n=2"),
        (SHOWN, SPEC, MultiDiscrete((3, 3)), False, r"action: expected .* \(2,\), got"),
        (SHOWN, {"x": SPEC}, Discrete(3), False, r"obs: expected observations of sh"),
        (SHOWN, SPEC, Discrete(3), True, "expected Sequences, for the memory"),
        (
            Sequences(OBS[None], ACTION[None]),
            *(SPEC, Discrete(3), False, "expected no Sequences without memory"),
        ),
        (Demonstrations(OBS, OBS), SPEC, Box((0.0,) * 2, (1.0,) * 2), False, "action"),
        (Demonstrations(OBS, ACTION * 1.0), SPEC, Discrete(3), False, "action: expect"),
    ],
)
def test_demonstrations_of_another_environment_are_refused(
    shown, spec, space, memory, said
):
    with pytest.raises(ValueError, match=said):
        shown.require_fit(spec, space, memory)


@pytest.mark.parametrize(
    ("shown", "space", "memory"),
    [
        (SHOWN, Discrete(3), False),
        (Sequences(OBS[None], ACTION[None]), Discrete(3), True),
        (Demonstrations(OBS, OBS / 8), Box((0.0, 0.0), (1.0, 1.0)), False),
        (Demonstrations(OBS, AT_BOUNDS), Box((-0.1,), (0.1,)), False),
        (Demonstrations(OBS, OBS.astype(int) % 2), MultiDiscrete((2, 2)), False),
    ],
)
def test_demonstrations_of_the_environment_fit(shown, space, memory):
    shown.require_fit(SPEC, space, memory)


def test_an_experiment_with_demonstrations_of_another_is_refused():
    with pytest.raises(ValueError, match=r"Demonstrations\.obs: expected observations"):
        Config("CartPole-v1", terms=(Imitation(SHOWN),))
    memory = networks.ActorCritic(memory=networks.Gru(4))
    with pytest.raises(ValueError, match=r"Imitation\.demonstrations: expected Seq"):
        Config("CartPole-v1", terms=(Imitation(SHOWN),), network=memory)
    with pytest.raises(TypeError, match=r"Imitation\.demonstrations: expected Demon"):
        Imitation(OBS)


def test_draws_are_of_all_and_those_of_a_key():
    """An index per step, as likely each; the same for the same key."""
    term, rollout = Imitation(SHOWN), targets(np.zeros((64, 32)))
    first, said = term.prepare((), rollout)
    assert said == {}
    chex.assert_shape(first, (64, 32))
    shares = np.bincount(np.ravel(first), minlength=4) / first.size
    chex.assert_trees_all_close(shares, np.full(4, 0.25), rtol=0, atol=0.04)
    again, _ = term.prepare((), rollout)
    chex.assert_trees_all_equal(first, again)
    later, _ = term.prepare((), rollout._replace(key=jax.random.key(1)))
    assert (later != first).mean() > 0.5


def test_the_loss_is_that_of_what_was_drawn():
    """−weight ln π(a), a mean over the chunk, times what the schedule leaves."""
    index = jnp.array([[0, 2], [3, 1], [2, 2]])
    kernel = np.random.default_rng(0).normal(size=(2, 3)) / 4

    def policy(obs):
        return Categorical(obs @ jnp.asarray(kernel, jnp.float32))

    term = Imitation(SHOWN, coef=2.0, schedule=Linear())
    given = context(prepared=index, progress=0.25, policy=policy)
    loss, said = term(forward(), minibatch(), given)
    logits = OBS[np.array(index)] @ kernel
    log_p = logits - np.log(np.exp(logits).sum(axis=-1, keepdims=True))
    taken = np.take_along_axis(log_p, ACTION[np.array(index)][..., None], -1)[..., 0]
    weight = WEIGHT[np.array(index)] / 2.0
    nll = -(weight * taken).mean(axis=0)
    want = np.broadcast_to(2.0 * 0.75 * nll, (3, 2))
    chex.assert_trees_all_close(loss, want, rtol=1e-5)
    chex.assert_trees_all_equal(said["train/imitation_loss"], loss)
    assert as_float64(loss).min() > 0 and terms.Imitation.guides
