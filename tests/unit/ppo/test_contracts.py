"""The contracts of a replay hold in this build, and are seen to be broken in others."""

import dataclasses
import functools

import built
import jax
import jax.numpy as jnp
import pytest

from ppo_jax import PBT, LogUniform, Uniform, envs, networks
from ppo_jax.component import component
from ppo_jax.config import Config
from ppo_jax.envs.probes import RecallCue, TimeLimitChain
from ppo_jax.ppo import acting, contracts, learner

LINEAR = networks.ActorCritic(torso=networks.Mlp(hidden=()))


def experiment(**changes):
    settings = {
        "env": RecallCue(delay=6),
        "num_envs": 4,
        "num_steps": 16,
        "num_minibatches": 2,
        "network": dataclasses.replace(LINEAR, memory=networks.Gru(size=8)),
        "total_timesteps": 64,
    }
    return Config(**settings | changes)


@pytest.fixture(autouse=True, scope="module")
def drawn():
    """Any parameters will do: those that NumPy draws take no compiling."""
    build = Config.build

    def known(config):
        network = build(config)
        return network._replace(init=lambda key: built.drawn(network))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Config, "build", known)
        yield


def test_this_build_replays_what_it_lived():
    """PROP-1.1, PROP-1.3, PROP-1.4, R-A21, R-B5, X5, R-C1, R-D18.

    Ratio 1, and nothing leaks.
    """
    report = contracts.check(experiment())
    assert len(report.findings) == 5
    assert report.ok, report.findings


@pytest.fixture
def begun(monkeypatch):
    """The experiments that a check begins with; it goes no further."""
    init, seen = learner.init, []

    def begin(config, key):
        seen.append((config, jax.config.jax_default_matmul_precision))
        init(config, key)
        raise Begun

    monkeypatch.setattr(learner, "init", begin)
    return seen


class Begun(Exception):
    pass


def test_it_computes_as_exactly_as_the_device_can(begun):
    """Whatever the experiment computes in: rounding would hide what is looked for."""
    network = dataclasses.replace(LINEAR, compute_dtype="bfloat16")
    with pytest.raises(Begun):
        contracts.check(experiment(network=network))
    ((config, precision),) = begun
    assert config.network.compute_dtype == "float32"
    assert precision == "highest"


def test_it_checks_an_experiment_that_searches_numbers_of_its_environment(begun):
    """Of which another one is the inner one."""
    env = envs.Gymnax("CartPole-v1", params={"gravity": 9.8})
    space = {
        "env.params.gravity": Uniform(5.0, 15.0),
        "optimizer.learning_rate": LogUniform(1e-4, 1e-2),
    }
    with pytest.raises(Begun):
        contracts.check(experiment(env=env, pbt=PBT(space, interval=1)))


def test_a_stored_carry_after_the_step_is_found(monkeypatch):
    """PROP-1.1: the carry stored must be the one before the step."""
    lived = contracts._lived

    @jax.jit
    def stepped(learner, carries, steps):
        network, before = learner.config.build(), jax.tree.map(lambda x: x[1], carries)
        obs, reset = steps.obs[8], steps.reset[8]
        _, _, after = acting.evaluate(network, learner.params, before, obs, reset)
        return jax.tree.map(lambda c, a: c.at[1].set(a), carries, after)

    def late(learner, actor, key):
        actor, steps, carries = lived(learner, actor, key)
        return actor, steps, stepped(learner, carries, steps)

    monkeypatch.setattr(contracts, "_lived", late)
    assert not contracts.check(experiment()).findings[0].ok


@component
class Crowd(networks.GaussianHead):
    """Does what all environments together make it do."""

    def policy(self, outputs, free, space, mask):
        together = outputs + outputs.mean(axis=1, keepdims=True)
        return super().policy(together, free, space, mask)


def test_a_policy_that_looks_at_other_environments_is_found():
    """PROP-1.3: though critics see only their own."""
    network = dataclasses.replace(LINEAR, head=Crowd())
    crowded = experiment(network=network, env=TimeLimitChain())
    findings = contracts.check(crowded).findings
    ok = {finding.what: finding.ok for finding in findings}
    assert not ok["effect of one environment on the others"]


@component
class Unending(networks.Gru):
    """Keeps what it remembers when an episode ends."""

    def __call__(self, carry, x, reset):
        return super().__call__(carry, x, jnp.zeros_like(reset))


@functools.cache
def unending():
    """A report on a memory that outlives the episodes of a chain."""
    network = dataclasses.replace(LINEAR, memory=Unending(size=8))
    return contracts.check(experiment(network=network, env=TimeLimitChain(limit=9)))


def test_a_memory_that_outlives_an_episode_is_found():
    """Though it replays what it lived, and sees no other environment."""
    ok = {finding.what: finding.ok for finding in unending().findings}
    assert not ok["effect of an episode on the next"]
    assert ok["effect of one environment on the others"]
    assert ok["largest |ratio − 1| of the replay"]


def test_it_counts_what_occurred():
    """By hand: episodes of 5 steps, of which 16 are behind; each environment breaks.

    So the second rollout ends episodes at its steps 3, 8 and 13. Environments break at
    its steps 0, 4, 8 and 12, the third one at an end.
    """
    assert unending().seen == contracts.Seen(
        num_steps=16,
        num_envs=4,
        chunk=8,
        resets=12,
        truncations=12,
        faults=3,
        memory=True,
    )


@pytest.mark.parametrize(
    ("num_steps", "missing"), [(2, "a reset in mid-rollout"), (7, "a fault in mid-ep")]
)
def test_it_refuses_to_report_on_what_did_not_occur(num_steps, missing):
    sizes = {"num_steps": num_steps, "num_envs": 1, "num_minibatches": 1}
    advice = "another num_steps or more num_envs may show it"
    with pytest.raises(contracts.Unseen, match=f"{missing}.*; {advice}"):
        contracts.check(experiment(network=LINEAR, env=TimeLimitChain(), **sizes))


def test_of_one_environment_nothing_is_said_of_others():
    sizes = {"num_steps": 16, "num_envs": 1, "num_minibatches": 1}
    report = contracts.check(experiment(network=LINEAR, env=TimeLimitChain(), **sizes))
    assert report.ok and report.seen.num_envs == 1
    shown = {finding.contract for finding in report.findings}
    assert contracts.SIDE_BY_SIDE not in shown
    assert len(shown) == 3
