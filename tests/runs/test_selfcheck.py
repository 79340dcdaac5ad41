"""The replay check passes on this build and fails on a wrong one."""

import re
from pathlib import Path

import jax
import pytest
from runs import EXPERIMENT, command

from ppo_jax import networks, selfcheck
from ppo_jax.config import Config
from ppo_jax.envs.probes import RecallCue, TimeLimitChain
from ppo_jax.ppo import acting, rollout


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
    report = selfcheck.check(experiment())
    assert len(report.findings) == 5
    assert report.ok, report.findings


def test_it_counts_what_occurred(fresh):
    """By hand: episodes of 5 steps, of which 16 are behind; each environment breaks.

    So the second rollout ends episodes at its steps 3, 8 and 13. Environments break at
    its steps 0, 4, 8 and 12, the third one at an end.
    """
    found = selfcheck.check(experiment(env=TimeLimitChain(limit=9)))
    assert found.seen == selfcheck.Seen(
        num_steps=16,
        num_envs=4,
        chunk=8,
        resets=12,
        truncations=12,
        faults=3,
        memory=True,
    )


def test_a_stored_carry_after_the_step_is_found(fresh, monkeypatch):
    """PROP-1.1: the carry stored must be the one before the step."""
    unroll = rollout.unroll

    def late(learner, actor, key):
        actor, steps, carries = unroll(learner, actor, key)
        _, _, after = acting.evaluate(
            learner.config.build(),
            learner.params,
            jax.tree.map(lambda x: x[1], carries),
            jax.tree.map(lambda x: x[8], steps.obs),
            steps.reset[8],
        )
        return actor, steps, jax.tree.map(lambda c, a: c.at[1].set(a), carries, after)

    monkeypatch.setattr(rollout, "unroll", late)
    assert not selfcheck.check(experiment()).findings[0].ok


FORGETFUL = """
from ppo_jax.ppo import rollout

step = rollout._step

def without_reset(*args):
    (actor, slots), (transition, slot) = step(*args)
    return (actor.replace(reset=transition.last), slots), (transition, slot)

rollout._step = without_reset
"""


@pytest.mark.parametrize(
    ("build", "status", "verdict"), [("", 0, "ok    "), (FORGETFUL, 1, "FAIL  ")]
)
def test_a_memory_that_outlives_a_fault_is_found(tmp_path, build, status, verdict):
    """PROP-1.1, R-A20: as a user runs it, by the replay with faults and no other."""
    experiments = Path(__file__).parents[2] / "experiments"
    path = tmp_path / "experiment.py"
    path.write_text((experiments / "memory.py").read_text() + build)
    done = command("selfcheck", path, "--num-envs", 16, "--num-steps", 32)
    assert done.returncode == status, done.stderr
    figures, said = done.stdout.split("\n\n")
    lines = figures.splitlines()
    assert len(lines) == 5
    faults = "largest |ratio − 1| of a replay with faults"
    assert [line for line in lines if line.startswith(verdict + faults)]
    assert [line[:4] for line in lines].count("ok  ") == 5 - status
    assert "Traceback" not in done.stderr
    over = (
        r"Shown over 32 steps of 16 environments, .* \d+ resets .* \d+ faults .*:\n- "
    )
    assert re.match(over, said, re.DOTALL) and "no memory" not in said
    broken = "- NOT SO: after a step that broke, agent and replay begin anew"
    assert (broken in said) == ("Look at `reset` in the network" in said) == status
    assert said.count("\n- ") == 4


def test_of_a_memory_that_is_not_there_nothing_is_shown(tmp_path):
    path = tmp_path / "experiment.py"
    path.write_text(EXPERIMENT.format(memory=""))
    done = command("selfcheck", path, "--chunk-length", 4)
    assert done.returncode == 0, done.stderr
    assert "NOT SO" not in done.stdout
    assert done.stdout.endswith(
        "The network has no memory, so nothing was shown of one.\n"
    )


@pytest.mark.parametrize(
    ("num_steps", "missing"), [(2, "a reset in mid-rollout"), (7, "a fault in mid-ep")]
)
def test_it_refuses_to_report_on_what_did_not_occur(fresh, num_steps, missing):
    with pytest.raises(selfcheck.Unseen, match=missing):
        selfcheck.check(experiment(num_steps=num_steps, num_envs=1, num_minibatches=1))
