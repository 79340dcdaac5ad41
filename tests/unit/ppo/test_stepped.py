"""Rollouts in simulators, held against gymnasium's own steps."""

from contextlib import closing

import chex
import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from ppo_jax import Config, envs, networks
from ppo_jax.component import as_arrays, program
from ppo_jax.critics import pessimistic
from ppo_jax.ppo import acting, learner, stepped
from ppo_jax.schedules import Progress

LIMIT, STEPS = 3, 8
CONFIG = Config(
    envs.Gymnasium("Pendulum-v1", params={"max_episode_steps": LIMIT}),
    num_envs=2,
    num_steps=STEPS,
    network=networks.ActorCritic(torso=networks.Mlp(hidden=(8,))),
)
PROGRESS = Progress.at(jnp.float32(0))
depart, proceed = jax.jit(stepped.depart), jax.jit(stepped.proceed)


@pytest.fixture(scope="module")
def run():
    return jax.jit(learner.init)(as_arrays(program(CONFIG)), jax.random.key(0))


def first(tree):
    return jax.tree.map(lambda x: np.asarray(x)[0], tree)


def lived(monkeypatch, run, seeds):
    """What is learned from, and the actions of all steps `[T, B, 1]`."""
    done = []

    def learned(run, progress, key, actor, steps, carries):
        return steps, {}

    monkeypatch.setattr(learner, "learned", learned)
    with closing(CONFIG.env.simulators([CONFIG.env], 2, 1)) as simulators:
        simulators.reset(seeds[None])
        journey, actions = depart(
            run, PROGRESS, first(simulators.shown), np.ones(2, bool)
        )
        for time in range(STEPS):
            done.append(np.asarray(actions))
            answer = first(simulators.step(actions[None]))
            if time < STEPS - 1:
                given = (run.learner, PROGRESS, time, journey, answer)
                journey, actions = proceed(*given)
        kept, _ = jax.jit(stepped.arrive)(run, PROGRESS, journey, answer)
    return jax.device_get(kept), np.stack(done)


def test_what_is_kept_is_what_gymnasium_steps(run, monkeypatch):
    """And the value of a truncated episode is that of where it truly ended."""
    seeds = np.array([3, 5])
    steps, actions = lived(monkeypatch, run, seeds)
    network = CONFIG.build()

    @jax.jit
    def value(obs):
        out = acting.evaluate(network, run.learner.params, (), obs, jnp.zeros(2, bool))
        return pessimistic(out.value)

    singles = [gymnasium.make("Pendulum-v1", max_episode_steps=LIMIT) for _ in seeds]
    starts = zip(singles, seeds, strict=True)
    obs = np.stack([env.reset(seed=int(x))[0] for env, x in starts])
    for time in range(STEPS):
        chex.assert_trees_all_close(steps.obs[time], obs, rtol=1e-6)
        moved = zip(singles, actions[time], strict=True)
        said = [env.step(move) for env, move in moved]
        led = np.stack([each[0] for each in said])
        chex.assert_trees_all_close(
            steps.reward[time], np.float32([each[1] for each in said]), rtol=1e-6
        )
        ended = np.array([each[3] for each in said])
        assert ended.all() == ended.any() == (time % LIMIT == LIMIT - 1)
        chex.assert_trees_all_equal(steps.last[time], ended)
        chex.assert_trees_all_close(steps.next_value[time], value(led), rtol=1e-5)
        obs = np.stack([env.reset()[0] for env in singles]) if ended.any() else led
    assert not steps.terminated.any() and steps.valid.all()
    assert steps.reset[0].all() and steps.reset.sum() == 2 * 3


def test_episodes_of_before_are_forgotten_where_others_began(run):
    """A run that is resumed: flags, returns and lengths are those of a beginning."""
    actor = run.actor.replace(
        reset=np.zeros(2, bool),
        episode_return=np.float32([5.0, np.nan]),
        episode_length=np.int32([2, 1]),
    )
    obs, anew = np.ones((2, 3), np.float32), np.array([False, True])
    journey, _ = depart(run.replace(actor=actor), PROGRESS, (obs, ()), anew)
    after = journey.actor
    assert after.reset.tolist() == anew.tolist()
    assert after.episode_return.tolist() == [5.0, 0.0]
    assert after.episode_length.tolist() == [2, 0]
    chex.assert_trees_all_equal(after.obs, obs)


@pytest.mark.parametrize("drawn", [stepped.seeds, stepped.starts])
def test_seeds_are_the_same_where_numbers_are_long_by_default(drawn):
    key = jax.random.key(0)
    with jax.enable_x64(True):
        long = drawn(key, 3)
    chex.assert_trees_all_equal(long, drawn(key, 3), strict=True)
