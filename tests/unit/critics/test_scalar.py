"""Single numbers as predictions, by hand."""

import chex
import jax
import jax.numpy as jnp
import numpy as np
from criticism import clipped_loss

from ppo_jax.critics import MeanOnly, Scalar, ValueDist


def scalars(values):
    """Predictions with a loss ½ v² against 0, `[..., C]`."""
    return ValueDist(np.float32(values)[..., None], Scalar(clip=MeanOnly()))


@jax.jit
def losses(new, old):
    """Against 0: of predictions, of clipped ones, and the loss that PPO uses."""
    zero = jnp.zeros(new.outputs.shape[:-2])
    moved = new.clip(old, 0.5)
    return new.loss(zero), moved.loss(zero), clipped_loss(new, old, zero, 0.5)


def test_the_worse_loss_is_taken_per_example():
    """U = (1, 5), C = (4, 2); the mean of maxima, not its reverse."""
    new = scalars(np.sqrt([[2.0], [10.0]]))
    old = scalars(np.sqrt([[8.0], [4.0]]) + np.array([[0.5], [-0.5]]))
    plain, clipped, worse = jax.device_get(losses(new, old))
    chex.assert_trees_all_close(plain[:, 0], np.array([1, 5]), rtol=1e-5)
    chex.assert_trees_all_close(clipped[:, 0], np.array([4, 2]), rtol=1e-5)
    chex.assert_trees_all_close(worse.mean(), 4.5, rtol=1e-5)


def test_the_worse_loss_is_taken_per_critic():
    """(U, C) = (10, 5) and (5, 10) give 10 and not 7.5."""
    new = scalars(np.sqrt([20.0, 10.0]))
    old = scalars(np.sqrt([10.0, 20.0]) + np.array([-0.5, 0.5]))
    plain, clipped, worse = jax.device_get(losses(new, old))
    chex.assert_trees_all_close(plain, np.array([10, 5]), rtol=1e-5)
    chex.assert_trees_all_close(clipped, np.array([5, 10]), rtol=1e-5)
    chex.assert_trees_all_close(worse.mean(), 10, rtol=1e-5)


def test_a_number_is_its_law_its_mean_and_its_tail(variant):
    """Of one outcome that is certain, whatever α is; ½ (y − v)², in float64."""
    outputs = np.random.default_rng(0).normal(size=(4, 2, 1))
    target = np.array([0.5, -1.0, 2.0, 30.0])

    def say(outputs, target):
        value = ValueDist(outputs, Scalar())
        return value.mean(), value.cvar(0.1), value.loss(target)

    mean, cvar, loss = variant(say)(jnp.float32(outputs), jnp.float32(target))
    want = 0.5 * (target[:, None] - outputs[..., 0]) ** 2
    chex.assert_trees_all_close((mean, cvar), (outputs[..., 0],) * 2, rtol=1e-6)
    chex.assert_trees_all_close(loss, want, rtol=1e-5)
    law = Scalar().law(jnp.float32(outputs))
    chex.assert_trees_all_equal(law.probs, jnp.ones((4, 2, 1)))
    assert Scalar().num_outputs == 1 and not Scalar().distributional
