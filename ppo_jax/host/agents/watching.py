"""Episodes of an agent as pictures, step by step."""

import itertools
from collections.abc import Callable, Generator, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np

from ppo_jax.arrays import tree
from ppo_jax.envs.env import Env
from ppo_jax.errors import Misfit, kind
from ppo_jax.host.agents import video
from ppo_jax.host.agents.video import Frame
from ppo_jax.host.devices import fleet
from ppo_jax.host.process.console import figure
from ppo_jax.ppo import episodes
from ppo_jax.ppo.episodes import Game, Play
from ppo_jax.types import Key

Turns = Generator[tuple[Callable[[int], Any], Any, Any]]
"""For every step: a function that draws an episode by its index, as the step begins;
then the returns and which episodes have ended after the step, `[episodes]` each."""


class Watched(NamedTuple):
    """Results of episodes that were played."""

    returns: np.ndarray
    """Returns of the episodes as far as they were played, `[episodes]`."""
    lengths: np.ndarray
    """Steps of each episode, `[episodes]`."""
    ended: np.ndarray
    """Whether each episode came to its end, bool `[episodes]`."""


def record(path: Path, game: Game, key: Key, most: int, fps: int) -> Watched:
    """Plays episodes as evaluations do, and writes a video of all side by side.

    Args:
        path: File of the video; see `video.require`.
        game: The player, the number of episodes, and the way of playing.
        key: Key of the episodes, as in `episodes.run_episodes`.
        most: Steps after which episodes that have not ended are broken off.
        fps: Steps per second.

    Raises:
        UserError: If the environment cannot be drawn.
    """
    played = Watched(*(np.zeros(game.num_episodes, t) for t in (float, int, bool)))
    video.write(path, _frames(game, key, most, played), fps)
    return played


def _frames(game: Game, key: Key, most: int, played: Watched) -> Iterator[Frame]:
    """Yields a frame of every step: its start as pictures, its results as captions.

    Results are also noted in `played`.
    """
    env: Any = jax.device_get(game.learner.config.env)
    turns = _simulated(game, key) if env.simulated else _compiled(env, game, key)
    pictures: list[Frame] = [np.empty(0)] * game.num_episodes
    with closing(turns):
        for draw, total, ended in itertools.islice(turns, most):
            over = played.ended.copy()
            for i in np.flatnonzero(~over):
                pictures[i] = _picture(env, draw(int(i)))
            played.returns[:], played.ended[:] = total, ended
            played.lengths[:] += ~over
            yield video.side_by_side(pictures, _captions(played), over.tolist())
            if played.ended.all():
                break


def _simulated(game: Game, key: Key) -> Turns:
    """Plays episodes in simulators on the host."""
    with closing(fleet.scenes(game, key)) as scenes:
        for pictures, (total, ended) in scenes:
            yield pictures.__getitem__, total, ended


def _compiled(env: Env, game: Game, key: Key) -> Turns:
    """Plays episodes in environments whose steps are compiled."""
    begin = jax.jit(
        lambda learner, key: episodes.begin(game._replace(learner=learner), key)
    )
    advance = jax.jit(
        lambda learner, play: episodes.advance(game._replace(learner=learner), play)
    )
    play = begin(game.learner, key)
    for _ in range(episodes.limit(env)):
        before, play = play, advance(game.learner, play)

        def draw(i, before=before):
            return env.render(jax.device_get(_of(before, i)))

        yield draw, play.total, play.ended


@jax.jit
def _of(play: Play, index: int) -> Any:
    """Returns the state of one environment."""
    return tree.take(play.actor.env_state, index)


def _picture(env: Env, found: Any) -> Frame:
    """Checks that `env.render` returned a picture, and returns it."""
    fits = isinstance(found, np.ndarray) and found.dtype == np.uint8
    if not (fits and found.ndim == 3 and found.shape[-1] == 3):
        name = type(env).__name__
        raise Misfit(f"{name}.render: expected uint8[H, W, 3], got {kind(found)}")
    return found


def _captions(played: Watched) -> list[str]:
    return [
        f"episode {number}  step {length}  return {figure(total)}"
        for number, (total, length, _) in enumerate(zip(*played, strict=True), start=1)
    ]
