"""Agents under attack in whole episodes, and the command that tells what it costs."""

import dataclasses
import json
import shutil
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from brief import experiment
from reported import unnamed
from runs import called

from ppo_jax import networks
from ppo_jax.attacks.opponents import OPPONENTS, Opponent, nothing
from ppo_jax.attacks.perturbations import Attack
from ppo_jax.component import component
from ppo_jax.config import Config
from ppo_jax.critics import Scalar, ValueDist
from ppo_jax.envs.env import Discrete, Env, outcome
from ppo_jax.envs.probes import TimeLimitChain
from ppo_jax.errors import UserError
from ppo_jax.host.agents import curves
from ppo_jax.host.agents import runs as restoring
from ppo_jax.host.agents.trained import Trained
from ppo_jax.host.loop import training
from ppo_jax.networks.distributions import Categorical
from ppo_jax.ppo import episodes, population
from ppo_jax.ppo.episodes import returns_at

EPISODES = 400
ASKED = ("--eps", 0.5, 0.25, 0.5, "--episodes", 3)


@component
class Sign(Env):
    """A sign is seen once, then zeros; naming it at the last step is paid with 1."""

    delay: int = 0

    @property
    def action_space(self):
        return Discrete(2)

    @property
    def max_episode_steps(self):
        return self.delay + 1

    def reset(self, key):
        sign = jax.random.bernoulli(key).astype(jnp.int32)
        return (2.0 * sign - 1).reshape(1), (sign, jnp.int32(0))

    def transition(self, key, state, action):
        sign, time = state
        over = time >= self.delay
        reward = jnp.where(over & (action == sign), 1.0, 0.0)
        return outcome(jnp.zeros(1), reward, terminated=over), (sign, time + 1)


@component
class Known(Config):
    """An agent that adds up what it sees, x, with logits ∓x and a value of x."""

    def build(self):
        def apply(params, carry, obs, reset, action_mask=None):
            def add(carry, inputs):
                obs, reset = inputs
                carry = jnp.where(reset, 0.0, carry) + obs[..., 0]
                return carry, carry

            carry, x = jax.lax.scan(add, carry["x"], (obs, reset))
            policy = Categorical(jnp.stack([-x, x], axis=-1))
            value = ValueDist(x[..., None, None], Scalar())
            return networks.Output(policy, value, {"x": carry})

        return networks.Network(
            init=lambda key: {"nothing": jnp.zeros(())},
            initial_carry=lambda num_envs: {"x": jnp.zeros(num_envs)},
            apply=apply,
        )


def agent(delay):
    config = Known(env=Sign(delay), total_timesteps=10_000)
    members = population.init(config, jax.random.split(jax.random.key(0), 1))
    return jax.tree.map(lambda x: x[0], members.runs.learner)


@pytest.fixture(scope="module")
def returns():
    """Mean return of the agent that answers at once, by opponent, at ε = 0, .9, 1.5."""
    found, learner, radii = {}, agent(delay=0), jnp.array([0.0, 0.9, 1.5])
    for name, opponent in OPPONENTS.items():
        total, ended = returns_at(radii, opponent, learner, jax.random.key(1), EPISODES)
        assert ended.all()
        found[name] = np.asarray(total).mean(axis=1)
    return found


def test_a_sign_cannot_be_turned_within_its_margin(returns):
    """A3: nobody leaves the ball; without a radius nobody does anything."""
    for found in returns.values():
        np.testing.assert_array_equal(found[:2], 1.0)


def test_opponents_by_hand(returns):
    """At ε = 1.5 and signs ±1.

    Noise turns one in six, the critic fears −1, and whoever misleads turns all. The
    divergence has a hill on both sides: from a start on the wrong one it stays there,
    which is a half of them.
    """
    beyond = {name: found[2] for name, found in returns.items()}
    assert beyond["FGSM"] == beyond["PGD"] == 0
    deviation = 0.5 / np.sqrt(EPISODES)
    np.testing.assert_allclose(beyond["random"], 5 / 6, atol=4 * deviation)
    np.testing.assert_allclose(beyond["critic"], 0.5, atol=4 * deviation)
    np.testing.assert_allclose(beyond["MAD"], 0.5, atol=4 * deviation)


@component
class Turned(Attack):
    """Shows the contrary, however far that is."""

    def perturbation(self, problem, key):
        return [-2 * x for x in problem.floats]


def test_a_memory_keeps_what_was_shown(key):
    """An attack on the sign is remembered when the time to answer comes.

    It is in all environments, whatever their share in training.
    """
    learner = agent(delay=3)

    def play(opponent):
        return jax.jit(
            lambda key: episodes.run_episodes(learner, key, 16, True, opponent)
        )(key)

    opponent = Opponent(Turned(), nothing, share=0.5)
    (honest, _), (misled, ended) = play(None), play(opponent)
    assert ended.all() and (honest == 1).all() and (misled == 0).all()


@pytest.mark.parametrize("name", ["FGSM", "PGD"])
def test_a_memory_that_is_turned_stays_turned(name, key):
    """Four steps of 0.4 against a sign of 1: the last do not make good the first."""
    radii = jnp.array([0.2, 0.4])
    (kept, turned), _ = returns_at(radii, OPPONENTS[name], agent(delay=3), key, 16)
    assert (kept == 1).all() and (turned == 0).all()


# The command.


@pytest.fixture(scope="module")
def run_dirs(tmp_path_factory):
    """A run whose agent has a memory, the same somewhere else, and a normalised one."""
    home = tmp_path_factory.mktemp("robustness")
    torso, memory = networks.Mlp(hidden=()), networks.Gru(size=2)
    network = networks.ActorCritic(torso=torso, memory=memory)
    config = experiment(TimeLimitChain(limit=5), network=network)
    clipped = dataclasses.replace(config, obs_clip=10.0)
    one, normalised = (
        Trained(config, training.start(config), update=6).save(home / name)
        for name, config in (("one", config), ("normalised", clipped))
    )
    return one, shutil.copytree(one, home / "other"), normalised


def test_what_attacks_cost_is_told_in_three_ways(run_dirs):
    pytest.importorskip("matplotlib")
    one, other, _ = run_dirs
    compiled = returns_at._cache_size()
    done = called("robustness", one, "--against", other, *ASKED)
    assert done.returncode == 0, done.stderr
    assert returns_at._cache_size() == compiled + 5  # A program for both agents.
    said = json.loads((one / "robustness.json").read_text())
    assert said["checkpoints"] == {str(one): 6, str(other): 6}
    assert said["deterministic"]
    assert said["unit"] == "observations as the environment gives them"
    assert done.stdout.startswith(f"ε is in units of {said['unit']}.\n\n| agent ")
    assert said["eps"] == [0.0, 0.25, 0.5]
    assert list(said["agents"]) == [str(one), str(other)]
    for agents in said["agents"].values():
        assert list(agents) == ["random", "FGSM", "critic", "MAD", "PGD"]
        for by_radius in agents.values():
            assert len(by_radius) == 3
            for figures in by_radius:
                assert figures["mean"] == figures["cvar_5"] == 5.0
                assert figures["episodes"] == 3 and figures["unfinished"] == 0
    assert (one / "robustness.md").read_text() == done.stdout
    assert f"| {other} | PGD | 5 (5) | 5 (5) | 5 (5) |" in done.stdout
    assert "| agent | attack | ε = 0 | ε = 0.25 | ε = 0.5 |" in done.stdout
    assert (one / "robustness.png").read_bytes().startswith(b"\x89PNG")
    assert unnamed(one, "A run") == set()


def test_radii_of_different_units_are_not_compared(run_dirs):
    one, _, normalised = run_dirs
    done = called("robustness", one, "--against", normalised, *ASKED)
    assert done.returncode == 2 and done.stderr == (
        f"error: {normalised}: ε is in normalised observations there, not observations "
        "as the environment gives them: expected an obs_clip of both runs, or of "
        "neither\n"
    )


def test_a_member_that_the_other_run_lacks_is_told_at_once(run_dirs, monkeypatch):
    """Not once the first agent has played."""
    one, other, _ = run_dirs
    sizes = iter((4, 1))

    def choose(run, asked):
        if asked < next(sizes):
            return 0
        raise UserError("--member: expected 0 to 0, got 3")

    monkeypatch.setattr(restoring, "choose", choose)
    monkeypatch.delattr(curves, "play")
    done = called("robustness", one, "--against", other, *ASKED, "--member", 3)
    assert done.returncode == 2
    assert done.stderr.startswith("error: --member: expected 0 to 0, got 3\n")


def test_no_picture_without_matplotlib(run_dirs, tmp_path, monkeypatch):
    for name in ("matplotlib", *sys.modules):
        if name.partition(".")[0] == "matplotlib":
            monkeypatch.setitem(sys.modules, name, None)
    one, out = run_dirs[0], tmp_path / "new" / "folder"
    done = called("robustness", one, *ASKED, "--out", out)
    assert done.returncode == 0 and "Traceback" not in done.stderr
    assert "pip install 'ppo_jax[report]'" in done.stderr
    assert sorted(path.name for path in out.iterdir()) == [
        "robustness.json",
        "robustness.md",
    ]
