"""What is learned from a rollout that was made by hand, in float64."""

import functools

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from tabular import drawn

from ppo_jax import Config, networks, terms
from ppo_jax.component import component
from ppo_jax.envs.probes import TimeLimitChain
from ppo_jax.normalization.advantages import OverAll, PerEnv
from ppo_jax.normalization.return_scale import identity
from ppo_jax.ppo.batch import advantages, assemble, chunks, held_out
from ppo_jax.state import Trajectory

T, B = 4, 3
CONFIG = Config(
    env=TimeLimitChain(limit=3),
    num_envs=B,
    num_steps=T,
    num_minibatches=1,
    chunk_length=2,
    gamma=0.5,
    gae_lambda=0.5,
    network=networks.ActorCritic(networks.Mlp(hidden=(2,)), memory=networks.Gru(2)),
    total_timesteps=1200,
)
RANDOM = np.random.default_rng(0)
KEY = jax.random.key(0)
SCALE = identity().replace(mean=jnp.float32(1.0), std=jnp.float32(2.0))


def numbers():
    return np.float32(RANDOM.normal(size=(T, B)))


TERMINATED = np.zeros((T, B), bool)
LAST = np.zeros((T, B), bool)
VALID = np.ones((T, B), bool)
TERMINATED[1, 0] = LAST[1, 0] = LAST[2, 1] = True  # The second one was truncated.
VALID[2, 2] = False
STEPS = Trajectory(**dict.fromkeys(Trajectory._fields, ()))._replace(
    obs={"at": np.arange(T * B * 2, dtype=np.float32).reshape(T, B, 2)},
    reset=np.zeros((T, B), bool),
    action=np.arange(T * B, dtype=np.int32).reshape(T, B),
    log_prob=numbers(),
    value=numbers(),
    next_value=numbers(),
    reward=numbers(),
    terminated=TERMINATED,
    last=LAST,
    valid=VALID,
    weight=np.float32(VALID),
    group=np.full((T, B), -1, np.int32),
)


def oracle(scale=SCALE, gamma=0.5, lambda_=0.5):
    """Aₜ = δₜ + γλ Aₜ₊₁ from the end, one step after the other."""
    value, following = (
        np.float64(x) * float(scale.std) + float(scale.mean)
        for x in (STEPS.value, STEPS.next_value)
    )
    found, trace = np.zeros((T, B)), np.zeros(B)
    for t in reversed(range(T)):
        discount = gamma * ~TERMINATED[t]
        error = np.float64(STEPS.reward[t]) + discount * following[t] - value[t]
        trace = error + gamma * lambda_ * ~LAST[t] * trace
        trace = found[t] = np.where(VALID[t], trace, 0.0)
    return found, found + value


def test_advantages_are_cut_at_ends_and_bootstrapped_at_truncations(variant):
    """In units of rewards; a quarantined step has none, and stops the trace."""

    def run(value, following, reward):
        steps = STEPS._replace(value=value, next_value=following, reward=reward)
        return advantages(CONFIG, steps, SCALE)

    got, clipped = variant(run)(STEPS.value, STEPS.next_value, STEPS.reward)
    chex.assert_trees_all_close(got, oracle()[0], rtol=1e-4, atol=1e-5)
    assert not clipped.any()
    plain, _ = advantages(CONFIG, STEPS)
    want, _ = oracle(identity())
    chex.assert_trees_all_close(plain, want, rtol=1e-4, atol=1e-5)


def test_chunks_are_consecutive_steps_of_one_environment():
    """`[K, L]`: two of each environment, with the carry before the first step."""
    carries = (np.arange(12.0).reshape(2, B, 2),)
    batch = chunks(CONFIG, STEPS, STEPS.value, STEPS.reward, carries)
    action = np.arange(T * B).reshape(T, B)
    want = [action[t : t + 2, env] for t in (0, 2) for env in range(B)]
    chex.assert_trees_all_equal(batch.action, np.stack(want))
    chex.assert_shape(batch.obs["at"], (6, 2, 2))
    chex.assert_trees_all_equal(batch.obs["at"][..., 0], 2.0 * batch.action)
    chex.assert_trees_all_equal(batch.carry[0], carries[0].reshape(6, 2))
    assert batch.prepared == ((), (), ()) and batch.old_value == ()


def test_what_is_held_out_has_its_weight_apart():
    weight = np.where(np.arange(B) < 2, STEPS.weight, np.float32(0))
    assert held_out(CONFIG, STEPS, weight) is None
    apart = Config(env=TimeLimitChain(), num_envs=B, holdout_envs=1, num_minibatches=1)
    want = np.where(np.arange(B) == 2, VALID, 0.0)
    got = held_out(apart, STEPS, weight)
    chex.assert_trees_all_equal(got, want.astype(np.float32))


@pytest.fixture(scope="module")
def begun():
    return drawn(CONFIG).learner.replace(return_scale=SCALE)


compiled = jax.jit(assemble)


def assembled(begun, steps=STEPS, key=KEY, **changes):
    fields = {"standardization": OverAll(), "terms": CONFIG.terms, "holdout_envs": 0}
    config = Config(
        env=CONFIG.env,
        num_envs=B,
        num_steps=T,
        num_minibatches=1,
        chunk_length=2,
        gamma=0.5,
        gae_lambda=0.5,
        **fields | changes,
    )
    memories = tuple(term.init() for term in config.terms)
    begun = begun.replace(config=config, memories=memories)
    carries = (np.zeros((2, B, 2), np.float32),)
    return jax.device_get(compiled(begun, key, steps, carries))


def unchunked(x):
    return np.concatenate([np.stack(x[:B], 1), np.stack(x[B:], 1)])


def test_a_batch_has_scaled_advantages_and_encoded_targets(begun):
    batch, targets, metrics, own = assembled(begun)
    raw, target = oracle()
    mean, std = raw[VALID].mean(), raw[VALID].std(ddof=1)
    want = np.where(VALID, (raw - mean) / std, 0.0)
    chex.assert_trees_all_close(unchunked(batch.advantage), want, rtol=1e-4, atol=1e-5)
    encoded = (target - 1.0) / 2.0
    chex.assert_trees_all_close(unchunked(batch.target), encoded, rtol=1e-4, atol=1e-5)
    chex.assert_trees_all_close(targets.target, target, rtol=1e-4, atol=1e-5)
    chex.assert_trees_all_close(targets.unit, std, rtol=1e-4)
    chex.assert_trees_all_close(metrics["train/advantages_std_raw"], std, rtol=1e-4)
    assert metrics["train/gae_clip_count"] == 0 and own == [{}, {}, {}]


def test_without_a_standardisation_advantages_are_in_units_of_rewards(begun):
    batch, targets, _, _ = assembled(begun, standardization=None)
    raw, _ = oracle()
    chex.assert_trees_all_close(unchunked(batch.advantage), raw, rtol=1e-4, atol=1e-5)
    assert targets.unit == 1.0


def test_the_tail_of_risk_is_divided_by_one_deviation_of_all(begun):
    """Also where each environment has advantages of its own deviation."""
    _, targets, *_ = assembled(begun, standardization=PerEnv())
    std = oracle()[0][VALID].std(ddof=1)
    chex.assert_trees_all_close(targets.unit, np.float32(std), rtol=1e-4)


def test_nothing_follows_the_end_of_an_episode_or_a_step_without_a_value(begun):
    """γ = ½, except at ends, truncations and quarantined steps."""
    _, targets, *_ = assembled(begun)
    want = np.where(VALID & ~LAST, 0.5, 0.0)
    assert (want == 0).sum() > LAST.sum() > TERMINATED.sum() > 0
    chex.assert_trees_all_equal(targets.discount, np.float32(want))


def test_environments_that_are_held_out_have_no_weight(begun):
    """Neither in the batch, nor in what advantages are compared with."""
    batch, targets, _, _ = assembled(begun, holdout_envs=1)
    raw, weight = oracle()[0][:, :2], np.where(np.arange(B) < 2, VALID, 0.0)
    chex.assert_trees_all_equal(targets.weight, weight.astype(np.float32))
    chex.assert_trees_all_equal(unchunked(batch.weight), weight.astype(np.float32))
    chex.assert_trees_all_close(targets.unit, raw.std(ddof=1), rtol=1e-4)


def test_each_term_prepares_its_own(begun):
    """In the order of chunks; a metric of two terms is heard by each as its own."""
    tail = (terms.Surrogate(), terms.CVaR(0.5), terms.CVaR(0.25))
    with pytest.warns(UserWarning, match="2 of CVaR add up"):
        batch, targets, metrics, own = assembled(begun, terms=tail)
    assert batch.prepared[0] == () and own[0] == {}
    for i in (1, 2):
        beyond, said = jax.jit(tail[i].prepare)((), targets)
        got = unchunked(batch.prepared[i])
        chex.assert_trees_all_close(got, beyond, rtol=1e-5, atol=1e-6)
        chex.assert_trees_all_close(own[i], said, rtol=1e-6)
    assert metrics["train/cvar_var"] == own[2]["train/cvar_var"]
    assert own[1]["train/cvar_var"] != own[2]["train/cvar_var"]


def test_each_term_draws_with_a_key_of_its_own(begun):
    """Another one, too, than those that an update splits the same key into."""

    bits = jax.jit(functools.partial(jax.random.bits, shape=(T, B)))

    @component
    class Drawing(terms.Surrogate):
        def prepare(self, memory, rollout):
            return bits(rollout.key), {}

    @component
    class Other(Drawing):
        pass

    found = [
        unchunked(each).tobytes()
        for key in (KEY, jax.random.key(1))
        for each in assembled(begun, key=key, terms=(Drawing(), Other()))[0].prepared
    ]
    split = jax.random.split(KEY, CONFIG.num_epochs)
    found += [np.asarray(bits(each)).tobytes() for each in split]
    assert len(set(found)) == 4 + CONFIG.num_epochs


def test_a_tail_has_no_weight_beside_advantages_that_do_not_vary(begun):
    """All are 0, to the bit, though returns differ: they are as the critic said."""
    value = np.arange(1, 1 + T * B, dtype=np.float32).reshape(T, B)
    steps = STEPS._replace(reward=value, value=value, next_value=0 * value)
    tail = (terms.Surrogate(), terms.CVaR(0.5))
    batch, targets, _, own = assembled(
        begun.replace(return_scale=identity()), steps, terms=tail
    )
    assert not batch.advantage.any() and (targets.unit == jnp.inf).all()
    assert own[1]["train/cvar_var"] > own[1]["train/cvar_empirical"]
    assert not batch.prepared[1].any()
