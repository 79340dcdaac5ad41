"""The replay check passes on this build and fails on a wrong one."""

import jax
import pytest

from ppo_jax import networks, rollout, selfcheck
from ppo_jax.config import Config
from ppo_jax.envs.probes import RecallCue


def experiment(**changes):
    settings = {
        "env": RecallCue(delay=6),
        "num_envs": 4,
        "num_steps": 16,
        "num_minibatches": 2,
        "network": networks.ActorCritic(
            torso=networks.Mlp(hidden=(8,)), memory=networks.Gru(size=8)
        ),
        "total_timesteps": 64,
    }
    return Config(**settings | changes)


@pytest.fixture
def fresh():
    """Builds that differ must not share compiled programs."""
    jax.clear_caches()
    yield
    jax.clear_caches()


def test_this_build_replays_what_it_lived(fresh):
    """PROP-1.1, PROP-1.3, PROP-1.4, R-A21, R-B5, X5, R-C1, R-D18.

    Ratio 1, and nothing leaks.
    """
    findings = selfcheck.check(experiment())
    assert len(findings) == 4
    assert all(finding.ok for finding in findings), findings


def test_a_stored_carry_after_the_step_is_found(fresh, monkeypatch):
    """PROP-1.1: the carry stored must be the one before the step."""
    unroll = rollout.unroll

    def late(learner, actor, key):
        actor, steps, carries = unroll(learner, actor, key)
        _, _, after = rollout.evaluate(
            learner.config.build(),
            learner.params,
            jax.tree.map(lambda x: x[1], carries),
            jax.tree.map(lambda x: x[8], steps.obs),
            steps.reset[8],
        )
        return actor, steps, jax.tree.map(lambda c, a: c.at[1].set(a), carries, after)

    monkeypatch.setattr(rollout, "unroll", late)
    findings = selfcheck.check(experiment())
    assert not findings[0].ok


def test_it_refuses_to_report_on_what_did_not_occur(fresh):
    with pytest.raises(selfcheck.Unseen, match="reset in mid-rollout"):
        selfcheck.check(experiment(num_steps=2, num_envs=1, num_minibatches=1))
