"""Simulators of all members, and episodes that are played in them.

What acts is one program for all members, between two steps of the simulators.
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
    """What is counted of episodes, `[P, B]`."""

    total: np.ndarray
    """Returns so far; of an episode that has ended, its return."""
    ended: np.ndarray

    def after(self, answer: Answer) -> "Score":
        """What is counted after one more step."""
        reward = np.where(self.ended, np.float32(0), answer.reward)
        over = answer.terminated | answer.truncated
        return Score(self.total + reward, self.ended | over)


class Fleet:
    """Simulators that are made when they are needed, and anew for other numbers.

    Args:
        render_mode: What they are made with, to be drawn.

    Attributes:
        simulators: Once they are `ready`.
    """

    simulators: Simulators

    def __init__(self, render_mode: str | None = None):
        self._known: Any = None
        self._render_mode = render_mode

    def started(self, learners: PyTree, key: Key, num_episodes: int) -> Simulators:
        """Simulators at the start of episodes, the same for all members."""
        self.ready(learners, num_episodes)
        seeds = np.asarray(_starts(key, num_episodes))
        self.simulators.reset(np.broadcast_to(seeds, self.simulators.shape))
        return self.simulators

    def ready(self, learners: PyTree, each: int) -> bool:
        """Whether they had to be made, `each` of them for every member."""
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
        """Ends them."""
        if self._known is not None:
            self.simulators.close()
        self._known = None


def scenes(game: Game, key: Key) -> Generator[tuple[list[np.ndarray], Score]]:
    """Episodes of a learner, in simulators that draw.

    Yields:
        Pictures of what each step begins with, and what is counted after it; of an
        episode that has ended, the picture is of another one.

    Raises:
        UserError: If they cannot draw.
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
    """Episodes of all members in simulators that have begun them, step by step."""
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
    """What of learners acts: every array that a program is given takes its time."""
    return dataclasses.replace(learners, opt_state=(), memories=(), stop_memory=())


@contextmanager
def _drawable() -> Iterator[None]:
    """Says why there are no pictures."""
    try:
        yield
    except SimulatorError as error:
        how = f"; {NEEDED}" if "GL" in str(error) else ""
        raise UserError(f"cannot be drawn: {error}{how}") from error


def programs(
    runs: Run, key: Key, num_episodes: int, deterministic: bool
) -> list[Compilation]:
    """The programs of evaluations, given shapes of all members."""
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
    """Shapes and types of arrays, and how they lie; None: on the host."""
    return jax.tree.map(lambda x: x.update(sharding=place), shapes)


def shown_to(actor: Actor) -> tuple[PyTree, PyTree]:
    """Shapes and types of what simulators show."""
    return described((actor.obs, actor.env_state))


def answer_of(actor: Actor) -> Any:
    """Shapes and types of what a step of simulators leads to."""
    obs, state = shown_to(actor)
    like = actor.reset.shape
    number, flag = (jax.ShapeDtypeStruct(like, kind) for kind in (np.float32, bool))
    return Answer(obs, state, obs, number, flag, flag, number)


@functools.cache
def _games(num_episodes: int, deterministic: bool, place: Any) -> tuple[Any, Any]:
    """Programs of all members that begin episodes and go on with them."""

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
