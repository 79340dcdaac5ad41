"""A process of some simulators, which a parent process steps.

It is run as a file: without importing this package, and so without JAX, it starts at
once. It ends when its parent does, however the parent ends and whatever a simulator is
doing. It ignores signals that interrupt the parent.
"""

import contextlib
import io
import os
import pickle
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from multiprocessing.connection import Connection
from types import FrameType
from typing import Any, TextIO

import numpy as np

Read = tuple[tuple[Any, ...], tuple[int, ...], Any, tuple[int, ...], str]
"""A leaf of observations: the path to it, the numbers of choices if it holds whole
numbers, the first of these choices, and the shape and type that it is converted to."""

MASK, COST = "action_mask", "cost"
"""Keys of gymnasium's info for the allowed actions and for the cost of a step."""
STEP = "an observation, a reward, terminated, truncated and an info"
"""What a step of gymnasium returns."""
IGNORED = ("SIGINT", "SIGTERM", "SIGHUP")
"""Signals that interrupt the parent, and come to all processes of a terminal."""
BY_VALUE = "<dynamic-code>"
"""What cloudpickle calls the file of code that it pickles."""
PATIENCE = 1.0
"""Seconds in which simulators have to end by themselves."""


class Share:
    """Some simulators, stepped one after the other.

    An episode that has ended is followed by the next one at once.

    Args:
        makers: Functions that make the simulators, which are environments of gymnasium.
        reads: The leaves of their observations.
        choices: Number of choices for each part of an action if there are masks of the
            allowed ones, otherwise none.

    A *view* is a list of the leaves of observations `[n, ...]`, then masks. It is read
    at once, as a simulator may write into an observation that it gave before.
    """

    def __init__(
        self,
        makers: Sequence[Callable[[], Any]],
        reads: Sequence[Read],
        choices: tuple[int, ...] = (),
    ):
        with _quiet():
            self._envs = [make() for make in makers]
        self._reads, self._choices = reads, choices

    def reset(self, seeds: Sequence[int | None]) -> list[np.ndarray]:
        """Starts an episode in each simulator, and returns their view."""
        pairs = zip(self._envs, seeds, strict=True)
        return _stacked([self._seen(*env.reset(seed=seed)) for env, seed in pairs])

    def restart(self, which: Sequence[int]) -> list[np.ndarray]:
        """Starts an episode in some of the simulators, and returns their view."""
        return _stacked([self._seen(*self._envs[i].reset()) for i in which])

    def step(self, moves: np.ndarray) -> tuple[Any, ...]:
        """Takes a step in each simulator.

        Returns:
            The view after the step and any new start; the observations that the steps
            led to, or None if no episode ended; rewards, whether episodes terminated,
            whether they were truncated, and costs.
        """
        led, shown, scalars = [], [], []
        for env, move in zip(self._envs, moves, strict=True):
            obs, reward, terminated, truncated, info = _taken(env, move)
            flags = _flag("terminated", terminated), _flag("truncated", truncated)
            scalars.append((float(reward), *flags, _cost(info)))
            led.append(self._observed(obs))
            shown.append(
                self._seen(*env.reset())
                if any(flags)
                else [*led[-1], *self._allowed(info)]
            )
        reward, terminated, truncated, cost = map(np.array, zip(*scalars, strict=True))
        ended = (terminated | truncated).any()
        final = _stacked(led) if ended else None
        paid = reward.astype(np.float32), terminated, truncated, cost.astype(np.float32)
        return _stacked(shown), final, *paid

    def render(self, _: tuple[()]) -> list[Any]:
        """Returns a picture of each simulator."""
        with _quiet():
            return [env.render() for env in self._envs]

    def close(self) -> None:
        """Closes all simulators; errors that they raise then are ignored."""
        for env in self._envs:
            with contextlib.suppress(Exception):
                env.close()

    def _seen(self, obs: Any, info: Mapping[str, Any]) -> list[np.ndarray]:
        """Returns the view of one simulator."""
        return [*self._observed(obs), *self._allowed(info)]

    def _observed(self, obs: Any) -> list[np.ndarray]:
        return [_leaf(obs, read) for read in self._reads]

    def _allowed(self, info: Mapping[str, Any]) -> list[np.ndarray]:
        return [mask(info, self._choices)] if self._choices else []


def _stacked(each: Sequence[Sequence[np.ndarray]]) -> list[np.ndarray]:
    """Stacks the leaves of all simulators."""
    return [np.stack(leaf) for leaf in zip(*each, strict=True)]


def mask(info: Mapping[str, Any], choices: Sequence[int]) -> np.ndarray:
    """Returns the mask of allowed actions, part after part, bool `[sum(choices)]`.

    Raises:
        ValueError: If there is no mask, if it does not fit, or if it allows no action.
    """
    given = info.get(MASK)
    if given is None:
        raise ValueError(f"info[{MASK!r}]: expected one, as after the first reset")
    parts = given if isinstance(given, list | tuple) else (given,)
    flat = np.concatenate([np.ravel(part) for part in parts])
    if flat.shape != (sum(choices),) or not ((flat == 0) | (flat == 1)).all():
        expected = f"{sum(choices)} zeros and ones"
        raise ValueError(f"info[{MASK!r}]: expected {expected}, got {given!r}")
    allowed = flat.astype(bool)
    if not np.logical_or.reduceat(allowed, np.cumsum([0, *choices[:-1]])).all():
        raise ValueError(f"info[{MASK!r}]: no action is allowed, got {given!r}")
    return allowed


def _taken(env: Any, move: Any) -> tuple[Any, ...]:
    """Takes a step; says what it has to return if that is not what it is."""
    try:
        obs, reward, terminated, truncated, info = env.step(move)
    except ValueError as error:
        if "to unpack (expected 5" not in str(error):
            raise
        raise ValueError(f"step: expected {STEP}; {error}") from error
    return obs, reward, terminated, truncated, info


def _flag(name: str, given: Any) -> bool:
    """Returns whether a step ended the episode in a way."""
    flag = np.asarray(given)
    if flag.shape or flag.dtype.kind not in "biuf" or flag not in (0, 1):
        raise ValueError(f"{name}: expected True or False, got {given!r}")
    return bool(flag)


def _cost(info: Mapping[str, Any]) -> float:
    """Returns the cost of a step; 0, if the info has none."""
    given = info.get(COST, 0.0)
    try:
        return float(given)
    except (TypeError, ValueError) as error:
        message = f"expected a number, got {given!r}"
        raise ValueError(f"info[{COST!r}]: {message}") from error


def _leaf(obs: Any, read: Read) -> np.ndarray:
    """Returns a leaf of an observation, converted for the agent."""
    path, choices, first, shape, dtype = read
    for key in path:
        obs = obs[key]
    given = np.asarray(obs)
    if choices:
        given = _one_hot(given, choices, first)
    if given.shape == shape and given.dtype == dtype:
        return given.copy()
    at = "".join(["observation", *(f"[{key!r}]" for key in path), ": expected"])
    if given.shape != shape:
        raise ValueError(f"{at} the shape {shape}, as before, got {given.shape}")
    with np.errstate(invalid="ignore"):
        seen = given.astype(dtype)
    if seen.dtype.kind in "iu" and not np.array_equal(seen, given):
        raise ValueError(f"{at} numbers of type {dtype}, got {given}")
    return seen


def _one_hot(given: np.ndarray, choices: tuple[int, ...], first: Any) -> np.ndarray:
    """Returns the one-hot vectors of choices, one after the other, `[sum(choices)]`."""
    chosen = given.ravel() - np.ravel(first)
    possible = chosen.shape == (len(choices),) and (chosen >= 0).all()
    if not (possible and (chosen < choices).all() and (chosen % 1 == 0).all()):
        raise ValueError(f"observation: expected one of {choices}, got {given}")
    hot = np.zeros(sum(choices), np.float32)
    hot[np.cumsum([0, *choices[:-1]]) + chosen.astype(int)] = 1.0
    return hot


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Drops all output to stdout and stderr, also output not printed by Python."""
    sys.stdout.flush()
    kept, nothing = [os.dup(1), os.dup(2)], os.open(os.devnull, os.O_WRONLY)
    try:
        for number in (1, 2):
            os.dup2(nothing, number)
        yield
    finally:
        sys.stdout.flush()
        for number, before in zip((1, 2), kept, strict=True):
            os.dup2(before, number)
            os.close(before)
        os.close(nothing)


class _Heedless(io.FileIO):
    """A stream of output that nobody may read any more, or a disk not take."""

    def write(self, data: Any) -> int:
        """Writes data; drops it if that fails."""
        try:
            return super().write(data)
        except OSError:
            return len(data)


def _outliving(stream: TextIO) -> TextIO:
    """Returns a stream that shows each line at once, whoever reads it."""
    raw = _Heedless(stream.fileno(), "w", closefd=False)
    how = stream.encoding, "backslashreplace"
    return io.TextIOWrapper(io.BufferedWriter(raw), *how, line_buffering=True)


def _told(error: BaseException) -> tuple[str, list[tuple[str, int, str]]]:
    """Returns an error's message, and files, lines and functions of its traceback."""
    passed = traceback.walk_tb(error.__traceback__)
    message = "".join(traceback.format_exception_only(error)).strip()
    return message, [(_file(x), line, x.f_code.co_name) for x, line in passed]


def _file(frame: FrameType) -> str:
    """Returns the file of a function, also of one that came by value."""
    name = frame.f_code.co_filename
    return frame.f_globals.get("__file__", name) if name == BY_VALUE else name


def _serve(parent: Connection) -> None:
    """Serves requests of the parent until it closes the connection."""
    share: Any = None
    with contextlib.suppress(EOFError, OSError):
        while True:
            share = _served(parent, share)
    if share is not None:
        share.close()


def _served(parent: Connection, share: Any) -> Any:
    """Serves one request of the parent; the first one makes the share of simulators."""
    name, argument = parent.recv()
    try:
        if share is None:
            sys.path[:], payload = argument
            share, given = Share(*pickle.loads(payload)), None
        else:
            given = getattr(share, name)(argument)
        parent.send((given, None))
    except Exception as error:
        parent.send((None, _told(error)))
    return share


def _end_with_the_parent() -> None:
    """Ends the process when the parent has ended, which closes the pipe at stdin."""
    os.read(0, 1)
    time.sleep(PATIENCE)
    os._exit(0)


def main() -> None:
    """Serves the parent at the other end of a connection."""
    for name in IGNORED:
        if hasattr(signal, name):  # On Windows, there is no SIGHUP.
            signal.signal(getattr(signal, name), signal.SIG_IGN)
    sys.stdout, sys.stderr = map(_outliving, (sys.stdout, sys.stderr))
    sys.unraisablehook = lambda _: None  # Failures while tidying up do not matter.
    threading.Thread(target=_end_with_the_parent, daemon=True).start()
    _serve(Connection(int(sys.argv[1])))
    sys.stdout.flush()
    os._exit(0)  # There is nothing to tidy up, which would take a while.


if __name__ == "__main__":
    main()
