"""What a rollout stores, against known answers."""

import dataclasses

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from tabular import drawn

from ppo_jax import networks, optimizers
from ppo_jax.arrays import platforms
from ppo_jax.component import component
from ppo_jax.config import Config
from ppo_jax.critics import Scalar, ValueDist
from ppo_jax.envs.faults import Faulty
from ppo_jax.envs.probes import (
    Accumulator,
    IdenticalRewards,
    MaskedBandit,
    RecallCue,
)
from ppo_jax.envs.wrappers import TimeLimit
from ppo_jax.networks.distributions import Categorical
from ppo_jax.ppo import rollout
from ppo_jax.ppo.batch import advantages, chunks
from ppo_jax.ppo.learner import iteration
from ppo_jax.ppo.objective import forward
from ppo_jax.ppo.update import gather
from ppo_jax.schedules import Progress

LINEAR = networks.ActorCritic(torso=networks.Mlp(hidden=()))
NAN = float("nan")


@component
class Adding(Config):
    """An experiment whose memory is h ← h + x and whose value is h."""

    def build(self):
        def apply(params, carry, obs, reset, action_mask=None):
            del params, action_mask

            def step(total, inputs):
                x, reset = inputs
                total = jnp.where(reset, 0.0, total) + x[:, 0]
                return total, total

            carry, total = jax.lax.scan(step, carry, (obs, reset))
            policy = Categorical(jnp.zeros((*total.shape, 2)))
            value = ValueDist(total[..., None, None], Scalar())
            return networks.Output(policy, value, carry)

        return networks.Network(lambda key: {}, jnp.zeros, apply)


@component
class Hasty(Accumulator):
    """Truncates sooner than it says."""

    announced: int = 4

    @property
    def min_steps_to_truncation(self):
        return self.announced


def settings(env, **changes):
    fields = {
        "env": env,
        "num_envs": 2,
        "num_steps": 6,
        "num_minibatches": 1,
        "network": LINEAR,
        "optimizer": optimizers.Sgd(),
        "total_timesteps": 10_000,
    }
    return fields | changes


def fetched(function):
    """A program whose results are arrays of NumPy."""
    program = jax.jit(function)
    return lambda *args: jax.device_get(program(*args))


live, estimate, rows_of = map(fetched, (rollout.unroll, advantages, gather))


@fetched
def said(run, obs):
    """The values `[T, B, C]` of observations, none of which begins an episode."""
    reset = jnp.zeros(obs.shape[:2], bool)
    out = run.learner.config.build().apply(run.learner.params, (), obs, reset)
    return out.value.mean()


@fetched
def kept(run, steps, carries):
    """The chunks of a rollout, as they are learned from."""
    nothing = jnp.zeros_like(steps.reward)
    return chunks(run.learner.config, steps, nothing, nothing, carries)


@fetched
def replayed(run, rows):
    """Values `[L, K, C]` and log-ratios `[L, K]` of chunks that are learned from."""
    out = forward(run.learner.config.build(), run.learner.params, rows)
    return out.value.mean(), out.log_ratio


def adding(limit):
    network = dataclasses.replace(LINEAR, memory=networks.Lstm(size=1))
    fields = settings(Accumulator(limit=limit), network=network, chunk_length=1)
    return drawn(Adding(**fields))


def test_the_way_of_a_gpu_keeps_the_same(monkeypatch):
    """In words: numbers, counts, flags, a memory, and the ends of two episodes."""
    run = adding(limit=3)
    as_known = live(run.learner, run.actor, run.key)
    monkeypatch.setattr(platforms, "_is_cpu", lambda: False)
    in_words = fetched(lambda *args: rollout.unroll(*args))
    chex.assert_trees_all_equal(in_words(run.learner, run.actor, run.key), as_known)


def test_observations_are_consumed_once():
    """PROP-1.2, R-D8, X5.

    Values 1, 3, 6, bootstrap 10; chunks that start late say 3, 6.
    """
    run = adding(limit=3)
    _, steps, carries = live(run.learner, run.actor, run.key)
    assert steps.value[:, 1].tolist() == [1, 3, 6, 1, 3, 6]
    assert steps.next_value[:, 1].tolist() == [3, 6, 10, 3, 6, 10]
    late = rows_of(kept(run, steps, carries), np.array([2, 3]))  # Both at t = 1.
    late = late._replace(obs=steps.obs[1:3], reset=steps.reset[1:3])
    late = late._replace(action=steps.action[1:3], log_prob=steps.log_prob[1:3])
    value, _ = replayed(run, late)
    assert value[..., 0].tolist() == [[3, 3], [6, 6]]


def test_what_is_not_finite_is_looked_for_once():
    """Compiled for a CPU: not in every kernel that reads what is left."""
    run = drawn(Config(**settings(Accumulator())))
    shape = f"pred[{run.learner.config.num_steps},{run.learner.config.num_envs}]"
    program = jax.jit(iteration).lower(run, Progress.at(0.0)).compile().as_text()
    looks = [line for line in program.splitlines() if " is-finite(" in line]
    # Twice for each of the leaves that are left; for each statistic it would be 100.
    assert 1 <= sum(shape in line for line in looks) <= 20


def test_episodes_of_one_step():
    """PROP-1.2: an episode that starts and is truncated at the same step."""
    run = adding(limit=1)
    _, steps, _ = live(run.learner, run.actor, run.key)
    assert steps.reset.all() and steps.last.all() and not steps.terminated.any()
    assert (steps.value == 1).all() and (steps.next_value == 3).all()


def test_an_end_at_the_time_limit_is_not_bootstrapped():
    """PROP-1.2, R-D14: terminated and truncated at once; the end wins."""
    env = TimeLimit(env=IdenticalRewards(reward=3.0), limit=1)
    run = drawn(Config(**settings(env, gamma=0.9)))
    _, steps, _ = live(run.learner, run.actor, run.key)
    assert steps.terminated.all() and steps.last.all()
    advantage, _ = estimate(run.learner.config, steps)
    chex.assert_trees_all_close(advantage, 3 - steps.value, rtol=0, atol=1e-6)


def test_boundaries_come_from_the_flags_of_the_step_before():
    """R-A18, X11, R-A23: `[T, B]` starts; each follows an end, over rollouts too."""
    env = TimeLimit(env=RecallCue(delay=4), limit=4)
    run = drawn(Config(**settings(env, num_steps=32)))
    actor, before, _ = live(run.learner, run.actor, run.key)
    _, after, _ = live(run.learner, actor, jax.random.key(7))
    chex.assert_shape([before.reset, after.reset], (32, 2))
    chex.assert_type(before.reset, bool)
    assert before.reset[0].all()
    starts = np.concatenate([before.reset[1:], after.reset])
    ends = np.concatenate([before.last, after.last[:-1]])
    chex.assert_trees_all_equal(starts, ends)
    shows_cue = after.obs[..., :2].any(axis=-1)
    chex.assert_trees_all_equal(shows_cue, after.reset)
    assert not starts.all() and (after.last & ~after.terminated).any()


def test_values_are_the_lesser_of_two_critics():
    """PROP-2.8, R-D17: advantages of min(Q₁, Q₂), of neither critic alone."""
    fields = {"num_steps": 8, "num_critics": 2, "gamma": 0.9}
    bent = networks.ActorCritic(torso=networks.Mlp(hidden=(8,)))
    fields = settings(Accumulator(limit=4), network=bent, **fields)
    run = drawn(Config(**fields), seed=2)
    _, steps, _ = live(run.learner, run.actor, run.key)

    final = np.full((1, 2, 1), 5.0, np.float32)
    value = said(run, np.concatenate([steps.obs, final]))[:, 0].astype(np.float64)
    q, q_final = value[:-1], value[-1]
    assert (q[:, 0] < q[:, 1]).any() and (q[:, 0] > q[:, 1]).any()

    def by_hand(v, v_final):
        """λ-returns of episodes of four steps that are cut off."""
        adv = np.zeros(8)
        for t in reversed(range(8)):
            following = v_final if t % 4 == 3 else v[t + 1]
            adv[t] = t % 4 + 1 + 0.9 * following - v[t]
            adv[t] += 0 if t % 4 == 3 else 0.9 * 0.95 * adv[t + 1]
        return adv

    got = estimate(run.learner.config, steps)[0][:, 0]
    least = by_hand(q.min(axis=1), q_final.min())
    chex.assert_trees_all_close(got, least, rtol=1e-5)
    for one in (0, 1):
        assert np.abs(got - by_hand(q[:, one], q_final[one])).max() > 1e-2


def test_rewards_are_stored_as_paid():
    """PROP-3.4: observations are normalised, rewards and values' units never."""
    run = drawn(Config(**settings(Accumulator(), obs_clip=10.0)))
    mean, var = np.float32([2.0]), np.float32([4.0])
    moments = run.learner.obs_moments.replace(mean=mean, var=var)
    learner = run.learner.replace(obs_moments=moments)
    _, steps, _ = live(learner, run.actor, run.key)
    assert steps.reward[:, 0].tolist() == [1, 2, 3, 1, 2, 3]
    chex.assert_trees_all_close(
        steps.obs[:3, 0, 0], np.array([-0.5, 0.0, 0.5]), rtol=0, atol=1e-6
    )
    assert steps.raw_obs[:3, 0, 0].tolist() == [1, 2, 3]


def test_the_step_before_a_fault_keeps_its_bootstrap():
    """R-A20: what the critic says of the last sound observation still counts."""
    env = Faulty(env=Accumulator(limit=5), rate=1.0, after=2, reward=NAN)
    run = drawn(Config(**settings(env, num_steps=4, gamma=0.9)))
    _, steps, _ = live(run.learner, run.actor, run.key)
    assert steps.valid[:, 0].tolist() == [True, True, False, True]
    v = said(run, np.float32([[[2.0]], [[3.0]]]))[:, 0, 0]
    advantage, _ = estimate(run.learner.config, steps)
    chex.assert_trees_all_close(advantage[1, 0], 2 + 0.9 * v[1] - v[0], rtol=1e-5)
    assert advantage[2, 0] == 0 and steps.weight[2, 0] == 0


def steep(env, kernel, bias=0.0, **changes):
    """A run whose critic says `kernel` times the sum of an observation, and `bias`."""
    run = drawn(Config(**settings(env, **changes)))
    params = jax.tree_util.tree_map_with_path(
        lambda path, x: np.full(x.shape, path[-1].key == "kernel", np.float32),
        run.learner.params,
    )
    params = networks.map_value_heads(
        params, lambda k, b: (np.float32(kernel) + 0 * k, np.float32(bias) + 0 * b)
    )
    return run.replace(learner=run.learner.replace(params=params))


@pytest.mark.parametrize("shared", [False, True], ids=["by themselves", "shared"])
def test_a_value_that_overflows_is_quarantined(shared):
    """R-A20: 1.4·10³⁸ o of observations 1, 2, 3; float32 ends at 3.4·10³⁸.

    So is the step before it, whose bootstrap it is.
    """
    torso = networks.Mlp(hidden=(1,), activation="relu")
    network = networks.ActorCritic(torso=torso, shared=shared)
    run = steep(Accumulator(limit=3), 1.4e38, num_steps=3, network=network)
    _, steps, _ = live(run.learner, run.actor, run.key)
    value = np.float32([1.4e38, 2.8e38, 0])
    chex.assert_trees_all_close(steps.value[:, 0], value, rtol=1e-6)
    chex.assert_trees_all_close(steps.next_value[:2, 0], value[1:], rtol=1e-6)
    assert steps.valid[:, 0].tolist() == [True, False, False]
    assert steps.weight[:, 0].tolist() == [1, 0, 0]


@pytest.mark.parametrize("limit", [2, 9], ids=["truncated", "after the last step"])
def test_a_bootstrap_that_overflows_is_quarantined(limit):
    """R-A20: 1.4·10³⁸ o of the observation 3, on which nobody acts in the rollout."""
    run = steep(Accumulator(limit=limit), 1.4e38, num_steps=2)
    _, steps, _ = live(run.learner, run.actor, run.key)
    assert steps.valid[:, 0].tolist() == [True, False]
    chex.assert_tree_all_finite((steps, estimate(run.learner.config, steps)))


def test_an_end_needs_no_bootstrap():
    """R-A20: what the next episode is worth is nothing to the step that ended one."""
    run = steep(RecallCue(delay=0), [[[3e38], [3e38], [0.0]]], 3e38)
    _, steps, _ = live(run.learner, run.actor, run.key)
    assert steps.valid[:, 0].tolist() == steps.terminated[:, 0].tolist()
    assert steps.valid[:, 0].tolist() == [False, True] * 3


def test_a_truncation_that_nobody_announced_is_quarantined():
    """One in four steps at least was promised: two slots for six steps."""
    run = drawn(Config(**settings(Hasty(limit=2, announced=4), gamma=0.9)))
    _, steps, _ = live(run.learner, run.actor, run.key)
    assert steps.valid[:, 0].tolist() == [True] * 5 + [False]
    assert steps.weight[:, 0].tolist() == [1] * 5 + [0]


def test_a_replay_knows_the_mask():
    """PROP-1.1: log-probabilities are those of the masked policy, ratio 1."""
    run = drawn(Config(**settings(MaskedBandit())))
    _, steps, carries = live(run.learner, run.actor, run.key)
    batch = kept(run, steps, carries)
    rows = rows_of(batch, np.arange(batch.weight.shape[0]))
    assert not steps.action_mask.all()
    _, log_ratio = replayed(run, rows)
    chex.assert_trees_all_close(log_ratio, 0.0, rtol=0, atol=1e-5)
