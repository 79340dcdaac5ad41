"""Real updates through the public functions."""

import dataclasses
import functools

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tabular
from brief import signs

from ppo_jax import (
    adversaries,
    attacks,
    controllers,
    critics,
    networks,
    optimizers,
    standardization,
    terms,
)
from ppo_jax.component import as_arrays, component, program
from ppo_jax.config import Config
from ppo_jax.envs.probes import RecallCue, Target, TimeLimitChain
from ppo_jax.errors import Misfit
from ppo_jax.optimizers import VGS, AdaptiveUPGD
from ppo_jax.ppo import learner, population, rollout
from ppo_jax.ppo.batch import chunks
from ppo_jax.ppo.objective import forward
from ppo_jax.schedules import Progress

LINEAR = networks.ActorCritic(torso=networks.Mlp(hidden=()))


def small(**changes):
    """An experiment of a few steps."""
    settings = {
        "env": TimeLimitChain(limit=5),
        "num_envs": 4,
        "num_steps": 16,
        "num_epochs": 2,
        "num_minibatches": 2,
        "network": LINEAR,
        "total_timesteps": 6400,
    }
    return Config(**settings | changes)


def recurrent(memory, **changes):
    return small(network=dataclasses.replace(LINEAR, memory=memory), **changes)


def begun(config):
    return population.init(config, jax.random.split(jax.random.key(1), 1))


def advance(config):
    return three_updates(begun(config))


def three_updates(members):
    progress = Progress.of(np.arange(3), 3)
    return population.advance(members, progress, jnp.int32(3))


@jax.jit
def replay(run):
    """A run after a rollout, the steps, and the log-ratios of replaying its chunks."""
    actor, steps, carries = rollout.unroll(run.learner, run.actor, run.key)
    zeros = jnp.zeros_like(steps.reward)
    batch = chunks(run.learner.config, steps, zeros, zeros, carries)
    batch = batch._replace(carry=())
    batch = jax.tree.map(lambda x: x.swapaxes(0, 1), batch)
    batch = batch._replace(
        carry=jax.tree.map(lambda x: x.reshape(-1, *x.shape[2:]), carries)
    )
    out = forward(run.learner.config.build(), run.learner.params, batch)
    return run.replace(actor=actor), steps, out.log_ratio


@pytest.mark.parametrize(
    ("memory", "chunk"),
    [
        (networks.Lstm(size=8), 4),
        (networks.Lstm(size=8), 16),
        (networks.Gru(size=8, layers=2), 4),
    ],
)
def test_replay_reproduces_the_rollout(memory, chunk):
    """PROP-1.1: ratio 1 for every step, chunks that start mid-episode included."""
    env = RecallCue(delay=4)
    run = tabular.drawn(recurrent(memory, env=env, chunk_length=chunk))
    run, _, _ = replay(run)
    _, steps, log_ratio = jax.device_get(replay(run))
    assert steps.reset[1:].any(), "no reset in mid-rollout"
    chex.assert_trees_all_close(log_ratio, 0.0, rtol=0, atol=1e-5)


def test_a_run_may_be_donated_from_the_first_iteration():
    """XLA refuses an array that is given to it twice."""
    run = learner.init(as_arrays(small()), jax.random.key(0))
    kept = jax.jit(lambda run: jax.tree.map(jnp.copy, run), donate_argnums=0)(run)
    assert kept.counters.updates == 0


def test_a_run_keeps_its_types_where_numbers_are_long_by_default():
    """With `jax_enable_x64`: it goes on, and nothing that is learned is long."""
    with jax.enable_x64(True):
        config = program(small(env=Target()))
        run = jax.eval_shape(learner.init, config, jax.random.key(0))
        after, metrics = jax.eval_shape(learner.iteration, run, Progress.at(0.0))
    chex.assert_trees_all_equal_shapes_and_dtypes(after, run)
    learned = jax.tree.leaves((run.learner.params, run.learner.opt_state))
    assert {str(leaf.dtype) for leaf in learned} == {"float32", "int32"}
    assert metrics["train/loss"].dtype == jnp.float32


def test_same_seed_same_parameters():
    """R-D20."""
    first, _ = advance(small())
    second, _ = advance(small())
    for a, b in zip(
        jax.tree.leaves(first.runs.learner),
        jax.tree.leaves(second.runs.learner),
        strict=False,
    ):
        chex.assert_trees_all_equal(a, b)


def test_a_number_changes_without_compiling():
    """A number is an array of the run; only structure is compiled for."""
    config = small()
    advance(config)
    before = population.advance._cache_size()
    slower = dataclasses.replace(
        config, gamma=0.5, optimizer=dataclasses.replace(config.optimizer, b1=0.5)
    )
    advance(slower)
    assert population.advance._cache_size() == before


@pytest.mark.parametrize("vgs", [None, optimizers.VGS(warmup_steps=1)], ids=["", "VGS"])
def test_microbatches_add_up(vgs):
    """V1, PROP-15.1, R-C2: gradients do not depend on the number of microbatches.

    Nor does what is followed of them; the mean of a head's is rounding alone.
    """
    config = small()
    config = dataclasses.replace(
        config, optimizer=dataclasses.replace(config.optimizer, vgs=vgs)
    )
    whole, _ = advance(config)
    members = begun(config)
    cut = dataclasses.replace(members.runs.learner.config, num_microbatches=4)
    runs = members.runs.replace(learner=members.runs.learner.replace(config=cut))
    parts, _ = three_updates(members.replace(runs=runs))
    chex.assert_trees_all_close(
        whole.runs.learner.params, parts.runs.learner.params, rtol=0, atol=1e-5
    )


@pytest.mark.parametrize(
    ("memory", "platform", "rows"),
    [
        (None, "cpu", 4096),
        (None, "cuda", 16384),
        (networks.Gru(size=16), "cpu", 16384),
    ],
)
def test_a_cpu_works_through_a_large_minibatch_in_parts(memory, platform, rows):
    """A minibatch of 16384 steps; a memory works through all at once, as a GPU does."""
    network = networks.ActorCritic(torso=networks.Mlp(hidden=(24,)), memory=memory)
    sizes = {"num_envs": 512, "num_steps": 128, "num_minibatches": 4}
    config = small(network=network, total_timesteps=2**16, **sizes)
    run = jax.eval_shape(lambda: learner.init(program(config), jax.random.key(0)))
    traced = jax.jit(learner.iteration).trace(run, Progress.at(0.0))
    lowered = traced.lower(lowering_platforms=(platform,)).as_text()
    sizes = (2048, 4096, 8192, 16384)
    assert [size for size in sizes if f"<{size}x24x" in lowered] == [rows]


MOST = 2**31 - 1


def nearly_full(state):
    """A state all of whose counts are one below the largest number."""
    return jax.tree.map(
        lambda x: np.full_like(x, MOST - 1) if x.dtype == jnp.int32 else x, state
    )


def after_full_counts(config, learns=True):
    """A member that began with nearly full counts, three updates later."""
    members = begun(config)
    learner, counters = members.runs.learner, nearly_full(members.runs.counters)
    params = jax.tree.map(
        lambda x: x if learns else np.full_like(x, np.nan), learner.params
    )
    full = nearly_full((learner.memories, learner.opt_state))
    learner = learner.replace(params=params, memories=full[0], opt_state=full[1])
    runs = members.runs.replace(learner=learner, counters=counters)
    members, metrics = jax.device_get(three_updates(members.replace(runs=runs)))
    return jax.tree.map(lambda x: x[0], members.runs), {
        name: said[-1, 0] for name, said in metrics.items()
    }


def test_counts_stop_at_the_largest_number():
    """R-A8: of a run, of what terms remember and of optimisers; learning goes on."""
    schedule = controllers.EntropySchedule(plateau=controllers.Plateau(window=4))
    run, metrics = after_full_counts(
        small(
            terms=(terms.Surrogate(), terms.Value(), terms.AdaptiveEntropy(schedule)),
            optimizer=AdaptiveUPGD(sampler=signs, vgs=VGS(warmup_steps=2)),
        )
    )
    assert run.counters.updates == run.counters.episodes == MOST
    _, value, entropy = run.learner.memories
    assert value.updates == entropy.updates == MOST
    assert metrics["vgs/step_count"] == metrics["vgs/skipped_leaves"] + 1 == MOST
    learned = run.learner
    counts = jax.tree.leaves((run.counters, learned.memories, learned.opt_state))
    assert all(x >= 0 for x in counts if x.dtype == jnp.int32)
    assert metrics["train/n_minibatches_done"] == 4


def test_counts_of_what_fails_stop_at_the_largest_number():
    """R-A8: a run without a finite parameter."""
    run, metrics = after_full_counts(small(), learns=False)
    assert jax.tree.leaves(run.counters) == [MOST] * 5
    assert metrics["error/failure_streak"] == MOST


def test_truncation_is_bootstrapped():
    """R-D8: the value of the final observation, from the carry after the step."""
    run = tabular.drawn(recurrent(networks.Lstm(size=8)))
    _, steps, _ = jax.jit(rollout.unroll)(run.learner, run.actor, run.key)
    steps = jax.device_get(steps)
    assert steps.last.sum() >= 4 and not steps.terminated.any()
    inside = ~steps.last[:-1]
    chex.assert_trees_all_equal(steps.next_value[:-1][inside], steps.value[1:][inside])
    network = run.learner.config.build()
    say = jax.jit(functools.partial(network.apply, run.learner.params))
    end = int(np.argmax(steps.last[:, 0]))
    final = _final_observations(run, steps)[end : end + 1]
    seen = np.concatenate([steps.obs[: end + 1, :1], final])
    reset = np.append(steps.reset[: end + 1, :1], [[False]], axis=0)
    value = say(network.initial_carry(1), seen, reset).value.outputs.ravel()[-1]
    chex.assert_trees_all_close(steps.next_value[end, 0], value, rtol=0, atol=1e-6)


def _final_observations(run, steps):
    """Plays the chain again; its observations do not depend on actions or keys."""
    env = run.learner.config.env
    _, state = jax.jit(env.reset)(jax.random.key(0))
    step, seen = jax.jit(env.step), []
    for _ in range(steps.reward.shape[0]):
        timestep, state = step(jax.random.key(0), state, jnp.int32(0))
        seen.append(timestep.final_obs)
    return np.stack(seen)[:, None]


@component
class Chain(TimeLimitChain):
    def metrics(self, state):
        return {"a": jnp.zeros(()), 1: jnp.zeros(())}


@component
class Critic(critics.Scalar):
    def target_metrics(self, target):
        return {"step": target}


@component
class Stop(controllers.EarlyStop):
    def metrics(self, memory, state, metrics):
        return {"eval/mean_reward": metrics["train/loss"]}


@component
class Steps(optimizers.Adam):
    def metrics(self, opt_state):
        return {"episodes/count": jnp.zeros(())}


@component
class Opponent(adversaries.Mixed):
    def forward(self, replay, batch, perturbed):
        out = super().forward(replay, batch, perturbed)
        metrics = {"time/fps": batch.weight}
        return out._replace(attacked=out.attacked._replace(metrics=metrics))


@component
class Alone(standardization.Standardization):
    def __call__(self, advantage, weight, group):
        return advantage


def test_a_standardisation_is_asked_for_advantages_and_flags():
    config = as_arrays(program(small(standardization=Alone())))
    run = jax.eval_shape(learner.init, config, jax.random.key(0))
    with pytest.raises(Misfit, match=r"^Alone: expected \(advantages, flags\), got "):
        jax.eval_shape(learner.iteration, run, Progress.at(0.0))


OPPOSED = Opponent(attacks.Fgsm(0.1))


@pytest.mark.parametrize(
    ("part", "said"),
    [
        ({"env": Chain(limit=5)}, "env.metrics: .*, got 1"),
        ({"critic": Critic()}, "critic.target_metrics: .*, got 'step'"),
        ({"early_stop": Stop()}, "early_stop.metrics: .*, got 'eval/mean_reward'"),
        ({"optimizer": Steps()}, "optimizer.metrics: .*, got 'episodes/count'"),
        ({"adversary": OPPOSED}, "adversary.forward: .*, got 'time/fps'"),
    ],
)
def test_a_part_s_metric_has_no_name_of_what_is_measured_anyway(part, said):
    config = as_arrays(program(small(obs_clip=10.0, **part)))
    run = jax.eval_shape(learner.init, config, jax.random.key(0))
    with pytest.raises(Misfit, match=rf"^Config\.{said}"):
        jax.eval_shape(learner.iteration, run, Progress.at(0.0))
