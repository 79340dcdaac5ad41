"""The pure pieces in a loop of one's own: `experiments/by_hand.py`."""

import functools
import runpy
from pathlib import Path

import chex
import jax
import jax.numpy as jnp
import pytest

from ppo_jax import losses, returns
from ppo_jax.arrays import tree
from ppo_jax.controllers.early_stop import EpochBudget
from ppo_jax.controllers.entropy import EntropySchedule, Plateau
from ppo_jax.controllers.pid import KlPid
from ppo_jax.controllers.smoothing import Ema, MovingAverage
from ppo_jax.controllers.value import Known
from ppo_jax.networks import Lstm
from ppo_jax.normalization import observations
from ppo_jax.normalization.return_scale import ReturnNormalization, identity

PATH = Path(__file__).parents[2] / "experiments" / "by_hand.py"


@pytest.fixture(scope="module")
def script():
    return runpy.run_path(str(PATH))


def test_episodes_of_a_policy_that_knows_nothing(script):
    """Some twenty steps long."""
    assert 10 < script["main"](updates=1) < 40


def test_an_update_learns_from_a_rollout(script):
    """What was worth it is likelier than it was, and returns are closer to values."""

    @jax.jit
    def lived(params, now, key):
        """The rollout of an update, from the same keys."""
        key, *_ = jax.random.split(key, 1 + script["EPOCHS"])
        keys = jax.random.split(key, script["STEPS"])
        acts = functools.partial(script["step"], params)
        _, (acted, paid) = jax.lax.scan(acts, now, keys)
        advantage, _ = returns.gae(*paid)
        return tree.merge_leading((*acted, advantage, advantage + paid[3]))

    @jax.jit
    def judged(params, batch):
        """What the policy would gain without a clip, and how far values are off."""
        obs, action, log_prob, advantage, target = batch
        policy, value = script["see"](params, obs)
        ratio = jnp.exp(policy.log_prob(action) - log_prob)
        error = losses.squared_error(value, target)
        return jnp.mean((ratio - 1) * (advantage - advantage.mean())), error.mean()

    learner, now = script["begin"](jax.random.key(1), jax.random.key(2))
    key = jax.random.key(3)
    (after, _), _, _ = script["update"](learner, now, key)
    batch = lived(learner[0], now, key)
    (gain, error), (new_gain, new_error) = (
        judged(params, batch) for params in (learner[0], after)
    )
    chex.assert_trees_all_close(gain, 0.0, atol=1e-4, rtol=0)
    assert new_gain > 0.02 and new_error < 0.9 * error


def test_an_update_where_floats_are_long_by_default(script):
    """With `jax_enable_x64`: what goes on is as it came, and nothing of it is long."""
    with jax.enable_x64(True):
        keys = jax.random.key(1), jax.random.key(2)
        learner, now = jax.eval_shape(script["begin"], *keys)
        update = script["update"].__wrapped__
        after, *_ = jax.eval_shape(update, learner, now, jax.random.key(0))
    chex.assert_trees_all_equal_shapes_and_dtypes(learner, after)
    types = {x.dtype for x in jax.tree.leaves(after)}
    assert types <= {jnp.dtype("float32"), jnp.dtype("int32")}


PIECES = {
    "moments": (
        lambda: observations.init(jnp.zeros(3, jnp.float32)),
        lambda state, x: observations.update(state, jnp.stack([x, x, x])),
    ),
    "scale of returns": (identity, ReturnNormalization().update),
    "KL penalty": (KlPid(0.1).init, lambda state, x: KlPid(0.1).update(state, x[0])),
    "entropy": (
        EntropySchedule(plateau=Plateau()).init,
        lambda state, x: EntropySchedule(plateau=Plateau()).update(state, *x[:2]),
    ),
    "window": (MovingAverage().init, lambda s, x: MovingAverage().update(s, x[0])),
    "average": (Ema().init, lambda state, x: Ema().update(state, x[0])),
    "epochs": (
        EpochBudget().init,
        lambda s, x: EpochBudget().update(s, True, x[0], target=0.1, num_epochs=4),
    ),
    "last": (Known.init, lambda state, x: state.update(x[0])),
    "memory": (
        lambda: Lstm(size=4).initial_carry(2),
        lambda carry, x: jax.tree.map(lambda c: c * x[0], carry),
    ),
}


@pytest.mark.parametrize("name", PIECES)
def test_what_is_kept_is_short_where_floats_are_long_by_default(name):
    begin, update = PIECES[name]
    with jax.enable_x64(True):
        state = jax.eval_shape(begin)
        x = jax.ShapeDtypeStruct((3,), jnp.float32)
        chex.assert_trees_all_equal_dtypes(state, jax.eval_shape(update, state, x))
    assert "float64" not in {str(leaf.dtype) for leaf in jax.tree.leaves(state)}


@pytest.mark.parametrize("name", PIECES)
def test_what_is_kept_may_be_donated_from_the_first_step(name):
    """XLA refuses an array that is given to it twice."""
    begin, _ = PIECES[name]
    given = begin()
    kept = jax.jit(lambda state: jax.tree.map(jnp.copy, state), donate_argnums=0)(given)
    chex.assert_trees_all_equal(kept, begin())


@pytest.mark.slow
@pytest.mark.brief
def test_cartpole_is_solved(script):
    assert script["main"]() >= 475
