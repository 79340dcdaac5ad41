"""Simulators of all members, and episodes that are played in them.

One program acts for all members, between two steps of the simulators.
"""

import dataclasses
import functools
from collections.abc import Generator, Iterator
from contextlib import closing, contextmanager
from typing import Any, NamedTuple

import jax
import numpy as np

from ppo_jax.arrays import devices, tree
from ppo_jax.attacks.opponents import Opponent
from ppo_jax.envs.opengl import NEEDED
from ppo_jax.envs.simulators import Answer, SimulatorError, Simulators
from ppo_jax.errors import UserError
from ppo_jax.host.programs.compiling import Compilation
from ppo_jax.ppo import episodes, stepped
from ppo_jax.ppo.episodes import Game
from ppo_jax.state import Actor, Learner, Run
from ppo_jax.types import Key, PyTree


class Score(NamedTuple):
    """The results of episodes so far, `[P, B]`."""

    total: np.ndarray
    """Returns so far; of an episode that has ended, its return."""
    ended: np.ndarray

    def after(self, answer: Answer) -> "Score":
        """Returns the score after one more step."""
        reward = np.where(self.ended, np.float32(0), answer.reward)
        over = answer.terminated | answer.truncated
        return Score(self.total + reward, self.ended | over)


class Fleet:
    """Simulators that are made when needed, and again if their environments change.

    Args:
        render_mode: Render mode of the simulators, if they are to be drawn.

    Attributes:
        simulators: The simulators, once they are `ready`.
    """

    simulators: Simulators

    def __init__(self, render_mode: str | None = None):
        self._known: Any = None
        self._render_mode = render_mode

    def started(self, learners: PyTree, key: Key, num_episodes: int) -> Simulators:
        """Returns simulators at the start of episodes, the same for all members."""
        self.ready(learners, num_episodes)
        seeds = np.asarray(_starts(key, num_episodes))
        self.simulators.reset(np.broadcast_to(seeds, self.simulators.shape))
        return self.simulators

    def ready(self, learners: PyTree, each: int) -> bool:
        """Makes `each` simulators per member if need be; returns whether it did."""
        env = jax.device_get(learners.config.env)
        size = jax.tree.leaves(learners.params)[0].shape[0]
        members = [jax.tree.map(lambda x, i=i: x[i], env) for i in range(size)]
        asked = (each, repr(members))
        if asked == self._known:
            return False
        self.close()
        processes = max(1, devices.cores() // 2)
        self.simulators = env.simulators(members, each, processes, self._render_mode)
        self._known = asked
        return True

    def close(self) -> None:
        """Ends the simulators."""
        if self._known is not None:
            self.simulators.close()
        self._known = None


def scenes(game: Game, key: Key) -> Generator[tuple[list[np.ndarray], Score]]:
    """Plays episodes of a learner, in simulators that draw.

    Yields:
        Pictures of the start of each step, and the score after it. Once an episode has
        ended, its picture shows another one.

    Raises:
        UserError: If the simulators cannot draw.
    """
    learners = jax.tree.map(lambda x: x[None], game.learner)
    with closing(Fleet("rgb_array")) as fleet:
        with _drawable():
            simulators = fleet.started(learners, key, game.num_episodes)
            pictures = simulators.render()
        for score in scores(simulators, learners, None, key, game.deterministic):
            yield pictures, Score(*(x[0] for x in score))
            pictures = simulators.render()


def scores(
    simulators: Simulators,
    learners: Learner,
    opponents: Opponent | None,
    key: Key,
    deterministic: bool,
) -> Iterator[Score]:
    """Plays episodes that simulators have begun; yields the score after each step."""
    learners = acting(learners)
    place = getattr(learners.config.gamma, "sharding", None)
    begin, go_on = _games(simulators.shape[1], deterministic, place)
    score = Score(
        np.zeros(simulators.shape, np.float32), np.zeros(simulators.shape, bool)
    )
    game, actions = begin(learners, key, simulators.shown, opponents)
    for time in range(episodes.limit(learners.config.env)):
        answer = simulators.step(actions)
        score = score.after(answer)
        yield score
        now = np.int32(time)
        game, actions = go_on(learners, key, now, game, answer, opponents)


def acting(learners: Learner) -> Learner:
    """Returns learners with only the parts that act: each array passed takes time."""
    return dataclasses.replace(learners, opt_state=(), memories=(), stop_memory=())


@contextmanager
def _drawable() -> Iterator[None]:
    """Raises a `UserError` that gives the reason if simulators cannot draw."""
    try:
        yield
    except SimulatorError as error:
        how = f"; {NEEDED}" if "GL" in str(error) else ""
        raise UserError(f"cannot be drawn: {error}{how}") from error


def programs(
    runs: Run, key: Key, num_episodes: int, deterministic: bool
) -> list[Compilation]:
    """Returns the programs of evaluations, given shapes of all members."""
    place = runs.key.sharding
    begin, go_on = _games(num_episodes, deterministic, place)
    learners, size = acting(runs.learner), len(runs.actor.reset)
    actor = jax.tree.map(
        lambda x: jax.ShapeDtypeStruct((size, num_episodes, *x.shape[2:]), x.dtype),
        runs.actor,
    )
    first = learners, key, shown_to(actor), None
    game, _ = described(jax.eval_shape(begin, *first), place)
    following = learners, key, np.int32(0), game, answer_of(actor), None
    return [
        Compilation("seeds of episodes", _starts, (key, num_episodes)),
        Compilation("first steps", begin, first),
        Compilation("steps", go_on, following),
    ]


def described(shapes: PyTree, place: Any = None) -> PyTree:
    """Returns shapes and types of arrays with their sharding; None: on the host."""
    return jax.tree.map(lambda x: x.update(sharding=place), shapes)


def shown_to(actor: Actor) -> tuple[PyTree, PyTree]:
    """Returns shapes and types of the observations and states of simulators."""
    return described((actor.obs, actor.env_state))


def answer_of(actor: Actor) -> Any:
    """Returns shapes and types of the simulators' answer to a step."""
    obs, state = shown_to(actor)
    like = actor.reset.shape
    number, flag = (jax.ShapeDtypeStruct(like, kind) for kind in (np.float32, bool))
    return Answer(obs, state, obs, number, flag, flag, number)


@functools.cache
def _games(num_episodes: int, deterministic: bool, place: Any) -> tuple[Any, Any]:
    """Returns programs that begin episodes of all members, and go on with them."""

    def begin(learner, key, shown, opponent):
        how = (num_episodes, deterministic)
        return stepped.open_game(learner, key, shown, opponent, *how)

    def go_on(learner, key, time, game, answer, opponent):
        given = (learner, key, time, game, answer, opponent)
        return stepped.play_on(*given, deterministic)

    first = tree.each(begin, (0, None, 0, 0))
    following = tree.each(go_on, (0, None, None, 0, 0, 0))
    return (
        jax.jit(first, out_shardings=place),
        jax.jit(following, donate_argnums=3, out_shardings=place),
    )


_starts = jax.jit(stepped.starts, static_argnums=1)
