"""What is watched is what evaluations play, and every step of it is shown."""

import agents
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from ppo_jax import envs, networks
from ppo_jax.component import component
from ppo_jax.errors import Misfit
from ppo_jax.host.agents import video, watching
from ppo_jax.ppo import episodes
from ppo_jax.ppo.episodes import Game

Image = pytest.importorskip("PIL.Image")
SHADE = 16
"""How much brighter a picture is with each step."""


@component
class Countup(envs.Env):
    """Ends after a number of steps that is drawn; pictures show how many were done.

    What is paid depends on luck and on the action.
    """

    action_space = envs.Discrete(3)
    max_episode_steps = 12

    def reset(self, key):
        until = jax.random.randint(key, (), 3, 9)
        return jnp.zeros(2), (jnp.int32(0), until)

    def transition(self, key, state, action):
        done, until = state[0] + 1, state[1]
        reward = action + jax.random.normal(key)
        obs = jax.random.normal(key, (2,))
        return envs.outcome(obs, reward, done == until), (done, until)

    def render(self, state):
        assert all(isinstance(x, np.ndarray | np.generic) for x in state)
        return np.full((16, 240, 3), SHADE * int(state[0]), np.uint8)


@pytest.fixture(scope="module")
def agent():
    """One with a memory, and statistics."""
    network = networks.ActorCritic(networks.Mlp((4,)), memory=networks.Gru(4))
    return agents.agent(Countup(), obs_clip=5.0, network=network)


def watched(path, game, most=100):
    return watching.record(path, game, jax.random.key(3), most, fps=20)


@pytest.mark.parametrize("deterministic", [True, False])
def test_the_episodes_are_those_of_an_evaluation(agent, tmp_path, deterministic):
    """As many frames as the longest has steps; each shows what its step begins with."""
    played = watched(tmp_path / "x.gif", Game(agent, 3, deterministic))
    run = jax.jit(
        lambda: episodes.run_episodes(agent, jax.random.key(3), 3, deterministic)
    )
    returns, ended = run()
    np.testing.assert_allclose(played.returns, returns, rtol=1e-5)
    assert ended.all() and played.ended.all()
    lengths = played.lengths
    assert (
        len({*lengths.tolist()}) > 1 and (lengths >= 3).all() and (lengths <= 8).all()
    )
    with Image.open(tmp_path / "x.gif") as found:
        assert found.n_frames == lengths.max()
        assert found.size == (2 * 240, 2 * (16 + video.STRIP))
        for step in range(found.n_frames):
            found.seek(step)
            pixels = np.asarray(found.convert("RGB"), int)
            for i, length in enumerate(lengths):
                seen = pixels[(i // 2) * (16 + video.STRIP), (i % 2) * 240, 0]
                shade = SHADE * min(step, length - 1)
                if step >= length:  # It is over, and pale.
                    shade = 0.4 * shade + 0.6 * 255
                assert seen == pytest.approx(shade, abs=4)


def test_what_has_not_ended_is_left(agent, tmp_path):
    played = watched(tmp_path / "x.gif", Game(agent, 2), most=2)
    assert played.lengths.tolist() == [2, 2] and not played.ended.any()


def test_captions_say_what_evaluations_count():
    played = watching.Watched(
        np.array([1.5, -12000.0]), np.array([7, 12]), np.array([True, False])
    )
    assert watching._captions(played) == [
        "episode 1  step 7  return 1.5",
        "episode 2  step 12  return -12,000",
    ]


@component
class Wrong(Countup):
    def render(self, state):
        return np.zeros((4, 4))


def test_a_picture_of_another_kind_is_said(agent, tmp_path):
    one = agents.agent(Wrong())
    with pytest.raises(
        Misfit, match=r"Wrong.render: expected uint8\[H, W, 3\], got fl"
    ):
        watched(tmp_path / "x.gif", Game(one, 1))
    assert not [*tmp_path.iterdir()]
