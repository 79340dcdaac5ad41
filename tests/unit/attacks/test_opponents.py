"""Opponents of training: what agents see while they act, and then learn from."""

import dataclasses
import warnings

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tabular

from ppo_jax import networks, optimizers
from ppo_jax.attacks.opponents import Opponent, divergence, low_value, misled, nothing
from ppo_jax.attacks.perturbations import Fgsm, Noise, Pgd
from ppo_jax.component import component, replace_at
from ppo_jax.config import Config
from ppo_jax.critics import pessimistic
from ppo_jax.envs.probes import Target, TimeLimitChain
from ppo_jax.envs.probes.bandits import OneStep
from ppo_jax.errors import Misfit
from ppo_jax.normalization import observations
from ppo_jax.ppo import acting, learner
from ppo_jax.schedules import Progress, Ramp

EPS, ENVS, STEPS = 0.3, 4, 12
GRU = networks.ActorCritic(torso=networks.Mlp(hidden=(8,)), memory=networks.Gru(8))
MLP = dataclasses.replace(GRU, memory=None)
CLIMB = Pgd(EPS, steps=5, schedule=Ramp(initial=1.0, final=1.0))
AT_THE_BORDER = dataclasses.replace(CLIMB, step_size=2.0)
lived = jax.jit(learner.lived)
observe, seen_after = jax.jit(acting.observe), jax.jit(observations.update)


def first(opponent, **changes):
    """A run before its first update, whose statistics of observations are not empty."""
    config = Config(
        **{
            "env": TimeLimitChain(limit=5, negative=0.5),
            "num_envs": ENVS,
            "num_steps": STEPS,
            "num_epochs": 1,
            "num_minibatches": 2,
            "obs_clip": 10.0,
            "network": MLP,
            "opponent": opponent,
            "optimizer": optimizers.Sgd(learning_rate=0.1),
            "total_timesteps": 48_000,
        }
        | changes
    )
    run = tabular.drawn(config, seed=2)
    shape = jax.tree.map(lambda x: x[0], run.actor.obs).shape
    obs = np.random.default_rng(3).uniform(size=(50, 1, *shape))
    seen = seen_after(run.learner.obs_moments, np.float32(obs), np.ones((50, 1)))
    return run.replace(learner=run.learner.replace(obs_moments=seen))


def unroll(run):
    """The steps and carries of the rollout that the next update learns from."""
    return lived(run, Progress.at(0.0))[3:]


@jax.jit
def learned(run, progress, *experience):
    """The learner that an update leaves; metrics are not computed."""
    return learner.learned(run, progress, *experience)[0].learner


def after_an_update(run):
    progress = Progress.at(0.0)
    run, *experience = lived(run, progress)
    return learned(run, progress, *experience)


def any_harm(seen, honest):
    """All that there is to raise, together."""
    return sum(harm(seen, honest) for harm in (nothing, low_value, divergence, misled))


@jax.jit
def said(run, carry, obs, reset):
    return run.learner.config.build().apply(run.learner.params, carry, obs, reset)


def shifts(run, steps):
    """How far what was seen is from what was there, `[T, B]`."""
    true = observe(run.learner, steps.raw_obs)
    return np.abs(np.asarray(steps.obs) - true).max(axis=-1)


@pytest.mark.parametrize("share", [0.0, 0.5, 0.8, 1.0])
def test_it_plays_in_its_share_of_the_environments(share):
    """In the ball, at its border, and not at all in the others."""
    run = first(Opponent(AT_THE_BORDER, share=share))
    shift = shifts(run, unroll(run)[0])
    attacked = int(share * ENVS)
    chex.assert_trees_all_close(shift[:, :attacked], EPS, rtol=1e-4)
    chex.assert_trees_all_close(shift[:, attacked:], 0.0, rtol=0, atol=1e-6)


@component
class Overseen(OneStep):
    """Nothing but what is seen, and what only a simulator knows."""

    def observe(self, state):
        return {"sight": jnp.ones(1), "truth": jnp.ones(2)}

    def pay(self, key, state, action):
        return jnp.zeros(())


def test_what_only_critics_read_stays_true():
    """Its border is reached by all that the actor reads, whatever the critics read."""
    config = Config(
        Overseen(),
        **{"num_envs": ENVS, "num_steps": STEPS, "obs_clip": 10.0},
        network=dataclasses.replace(MLP, actor_obs=("sight",)),
        opponent=Opponent(AT_THE_BORDER, low_value, share=1.0),
    )
    steps, _ = unroll(tabular.drawn(config, seed=2))
    chex.assert_trees_all_close(np.abs(steps.obs["sight"] - 1), EPS, rtol=1e-4)
    chex.assert_trees_all_equal(steps.obs["truth"], steps.raw_obs["truth"])


@pytest.mark.parametrize(
    ("network", "harm"), [(MLP, low_value), (GRU, any_harm)], ids=["mlp", "gru"]
)
def test_the_agent_acts_on_what_it_is_shown(network, harm):
    """What is stored is replayed with the same log-probabilities and values."""
    run = first(Opponent(CLIMB, harm), network=network)
    steps, carries = unroll(run)
    carry = jax.tree.map(lambda x: x[0], carries)
    out = said(run, carry, steps.obs, steps.reset)
    log_prob = out.policy.log_prob(steps.action)
    chex.assert_trees_all_close(log_prob, steps.log_prob, rtol=0, atol=1e-5)
    chex.assert_trees_all_close(pessimistic(out.value), steps.value, rtol=0, atol=1e-5)


def test_it_lowers_what_the_critics_say():
    """Of every step, and of the one after the last, which bootstraps the rollout."""
    run = first(Opponent(CLIMB))
    steps, _ = unroll(run)
    obs = observe(run.learner, steps.raw_obs)
    clean = pessimistic(said(run, (), obs, steps.reset).value)
    assert (steps.value < clean).all()
    assert steps.last[4].all() and not steps.last[-1].any()
    for time in (4, -1):  # At an end at the time limit, and at that of the rollout.
        assert (steps.next_value[time] < clean[time] - 1e-3).all()


def test_statistics_of_observations_are_those_of_true_ones():
    """Whoever attacks, the same is there to be seen."""
    opponents = None, Opponent(AT_THE_BORDER)
    ends = [after_an_update(first(opponent)).obs_moments for opponent in opponents]
    chex.assert_trees_all_equal(*ends)


@pytest.mark.parametrize(
    ("share", "held_out", "counted"),
    [(0.5, 0, slice(2, 4)), (1.0, 0, slice(4)), (0.75, 1, slice(3))],
)
def test_statistics_are_those_of_environments_that_are_spared(share, held_out, counted):
    """An attack that leads far away does not widen its own ball.

    If none is spared that is learned from, they are those of all that are.
    """
    run = first(Opponent(AT_THE_BORDER, share=share), holdout_envs=held_out)
    steps, _ = unroll(run)
    raw = np.asarray(steps.raw_obs)[:, counted]
    expected = seen_after(run.learner.obs_moments, raw)
    found = after_an_update(run).obs_moments
    chex.assert_trees_all_close(found, expected, atol=1e-6)


OFF = {"opponent.share": 0.0, "opponent.attack.eps": 0.0}


@pytest.mark.parametrize("number", OFF)
def test_an_opponent_that_does_nothing_is_none(number):
    """Bit-identical, without another program."""
    run = first(Opponent(AT_THE_BORDER))
    config = replace_at(run.learner.config, number, jnp.float32(OFF[number]))
    off = run.replace(learner=run.learner.replace(config=config))
    params = [after_an_update(one).params for one in (off, first(None), run)]
    chex.assert_trees_all_equal(*params[:2])
    assert tabular.changed(*params[1:])


def test_its_radius_follows_progress():
    """By the schedule of its attack, to its end in the last update; in one program."""
    rising = Ramp(initial=0.0, final=1.0, begin=0.2, length=0.4)
    run = first(Opponent(dataclasses.replace(AT_THE_BORDER, schedule=rising)))
    compiled = set()
    for share, eps in ((0.1, 0.0), (0.4, EPS / 2), (0.9, EPS)):
        progress = Progress.at(0.0)._replace(course=np.float32(share))
        shift = shifts(run, lived(run, progress)[3])
        chex.assert_trees_all_close(shift, eps, rtol=0, atol=1e-5)
        compiled.add(lived._cache_size())
    assert len(compiled) == 1


def test_raw_observations_are_said():
    """Their units are those of ε; and whole numbers cannot be attacked."""
    with pytest.warns(
        UserWarning, match=r"Config\.opponent: observations are not norm"
    ):
        Config(env=TimeLimitChain(limit=5), opponent=Opponent())
    with pytest.raises(ValueError, match=r"Opponent\.share: expected a number in"):
        Opponent(share=1.5)


def test_an_opponent_that_cannot_begin_is_said():
    """A normal density is flat at its mode, the action that the agent would take."""
    fields = {"obs_clip": 10.0, "num_envs": ENVS, "num_steps": STEPS}
    with pytest.warns(UserWarning, match=r"^Opponent\.attack: the lead of a real act"):
        Config(Target(), opponent=Opponent(Fgsm(), misled), **fields)
    with warnings.catch_warnings(action="error"):
        for env, attack in ((Target(), Pgd()), (TimeLimitChain(limit=5), Fgsm())):
            Config(env, opponent=Opponent(attack, misled), **fields)


@pytest.mark.parametrize(
    "harm", [None, 1.0, jnp.zeros(()), jnp.zeros((ENVS, 1)), jnp.zeros(1)]
)
def test_a_harm_is_a_number_per_environment(harm, key):
    """A single one would be that of all together."""
    opponent = Opponent(Noise(), lambda seen, honest: harm)
    with pytest.raises(
        Misfit, match=r"^Opponent\.harm: expected the shape \(4,\), a n"
    ):
        opponent.show(lambda obs: obs, None, jnp.zeros((ENVS, 3)), key)
