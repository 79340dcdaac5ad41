"""Simulators on the host, stepped side by side in processes of their own."""

import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from multiprocessing import Pipe
from typing import Any, NamedTuple

import cloudpickle
import numpy as np

from ppo_jax.envs import worker
from ppo_jax.envs.spaces import Observations
from ppo_jax.errors import shown
from ppo_jax.types import PyTree


class SimulatorError(OSError):
    """Raised if a simulator cannot go on; the message says why."""


class Answer(NamedTuple):
    """The results of a step of simulators, `[P, B, ...]`; fields as of a `Timestep`."""

    obs: PyTree
    state: PyTree
    """The state that `Env.action_mask` reads: masks of the allowed actions, or `()`."""
    final_obs: PyTree
    reward: Any
    terminated: Any
    truncated: Any
    cost: Any


class Simulators:
    """B simulators for each of P members, in processes that end with this one.

    Args:
        name: Name of the simulators in messages.
        makers: Functions that make a simulator, one for each member.
        each: B, simulators per member.
        observations: Observations that agents see.
        moves: Function that converts actions `[n, ...]` to those that simulators take.
        processes: Largest number of processes.
        choices: Number of choices of each part of an action, if simulators report masks
            of the allowed ones.

    Attributes:
        shape: `[P, B]`.

    Raises:
        SimulatorError: Here and later, if a simulator cannot be made or stepped, or its
            results cannot be understood.
    """

    def __init__(
        self,
        name: str,
        makers: Sequence[Callable[[], Any]],
        each: int,
        observations: Observations,
        moves: Callable[[np.ndarray], np.ndarray],
        processes: int,
        choices: tuple[int, ...] = (),
    ):
        self.shape, self._observations = (len(makers), each), observations
        self._moves = moves
        every = [make for make in makers for _ in range(each)]
        count = min(processes, len(every))
        self._ends = [len(every) * i // count for i in range(1, count)]
        self._leaves: list[np.ndarray] = []
        self._workers = [Worker(name) for _ in range(count)]
        seen = observations.reads, choices
        self._asked("make", [(own, *seen) for own in self._cut(every)])

    @property
    def shown(self) -> tuple[PyTree, PyTree]:
        """Observations and states, `[P, B, ...]`; as resets of environments give them.

        A state is the mask of the allowed actions, or `()` if there are no masks.
        """
        count = len(self._observations.reads)
        masks = self._shaped(self._leaves[count:])
        return self._observed(self._leaves), masks[0] if masks else ()

    def reset(self, seeds: np.ndarray) -> None:
        """Begins new episodes, each with its seed `[P, B]`."""
        given = [int(seed) for seed in seeds.ravel()]
        self._leaves = _joined(self._asked("reset", self._cut(given)))

    def restart_broken(self) -> np.ndarray:
        """Begins new episodes where observations are not finite.

        Returns:
            Whether each simulator began a new episode, bool `[P, B]`.
        """
        broken = ~np.logical_and.reduce(
            [np.isfinite(x.reshape(len(x), -1)).all(axis=1) for x in self._leaves]
        )
        if broken.any():
            which = [np.flatnonzero(own).tolist() or None for own in self._cut(broken)]
            found = _joined(self._asked("restart", which))
            self._leaves = [leaf.copy() for leaf in self._leaves]
            for leaf, new in zip(self._leaves, found, strict=True):
                leaf[broken] = new
        return broken.reshape(self.shape)

    def step(self, actions: Any) -> Answer:
        """Steps all simulators, by actions `[P, B, ...]`."""
        actions = np.asarray(actions)
        moves = self._moves(actions.reshape(-1, *actions.shape[2:]))
        answers = self._asked("step", self._cut(moves))
        self._leaves = _joined([seen for seen, *_ in answers])
        count = len(self._observations.reads)
        final = [seen[:count] if led is None else led for seen, led, *_ in answers]
        scalars = zip(*(scalars for _, _, *scalars in answers), strict=True)
        return Answer(
            *self.shown,
            self._observed(_joined(final)),
            *(np.concatenate(x).reshape(self.shape) for x in scalars),
        )

    def render(self) -> list[np.ndarray]:
        """Returns pictures of the present states of all simulators, in their order."""
        shares = self._asked("render", [()] * len(self._workers))
        return [picture for share in shares for picture in share]

    def close(self) -> None:
        """Ends the processes."""
        for one in self._workers:
            one.close()

    def _asked(self, name: str, arguments: Sequence[Any]) -> list[Any]:
        """Calls a method in all workers side by side; returns their results.

        A worker whose argument is None is left out.
        """
        pairs = zip(self._workers, arguments, strict=True)
        asked = [(one, argument) for one, argument in pairs if argument is not None]
        try:
            for one, argument in asked:
                one.ask(name, argument)
            return [one.answer() for one, _ in asked]
        except BaseException:
            self.close()
            raise

    def _cut(self, every: Any) -> list[Any]:
        """Returns each worker's share of a sequence with an item per simulator."""
        starts, ends = [0, *self._ends], [*self._ends, len(every)]
        return [every[i:j] for i, j in zip(starts, ends, strict=True)]

    def _observed(self, leaves: Sequence[np.ndarray]) -> PyTree:
        """Returns the observations, which are the first of the simulators' leaves."""
        own = leaves[: len(self._observations.reads)]
        return self._observations.structure.unflatten(self._shaped(own))

    def _shaped(self, leaves: Sequence[np.ndarray]) -> list[np.ndarray]:
        return [x.reshape(*self.shape, *x.shape[1:]) for x in leaves]


class Worker:
    """A process of simulators, which leaves GPUs and TPUs to this process.

    Args:
        name: Name of the simulators in messages.
    """

    def __init__(self, name: str):
        self._name = name
        self._connection, theirs = Pipe()
        with theirs:
            self._process = subprocess.Popen(
                # -P: the folder of that file is no place to look for modules.
                [sys.executable, "-P", worker.__file__, str(theirs.fileno())],
                stdin=subprocess.PIPE,
                pass_fds=(theirs.fileno(),),
                env=os.environ | {"JAX_PLATFORMS": "cpu"},
            )

    def ask(self, name: str, argument: Any) -> None:
        """Begins a call of a method of the worker's share of simulators."""
        if name == "make":
            argument = (list(sys.path), cloudpickle.dumps(argument))
        try:
            self._connection.send((name, argument))
        except OSError as error:
            raise self._died() from error

    def answer(self) -> Any:
        """Waits for the method's result, and returns it.

        Raises:
            SimulatorError: If the method failed, or the process has ended.
        """
        try:
            given, failure = self._connection.recv()
        except (EOFError, OSError) as error:
            raise self._died() from error
        if failure is not None:
            message, passed = failure
            raise SimulatorError(f"{self._name}: {message}{shown(passed)}")
        return given

    def close(self) -> None:
        """Ends the process, whatever it is doing."""
        self._connection.close()
        try:
            self._process.wait(worker.PATIENCE)
        except subprocess.TimeoutExpired:
            self._process.kill()
        self._process.communicate()

    def _died(self) -> SimulatorError:
        status = self._process.wait()
        how = f"by signal {-status}" if status < 0 else f"with status {status}"
        return SimulatorError(f"{self._name}: a process of simulators ended {how}")


def _joined(shares: Sequence[Sequence[np.ndarray]]) -> list[np.ndarray]:
    """Concatenates the leaves of all shares."""
    return [np.concatenate(leaf) for leaf in zip(*shares, strict=True)]
