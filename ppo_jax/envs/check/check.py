"""`check`, which finds defects of an environment before training does.

Defects of environments are seldom loud. A state that is not reset, an observation from
the wrong side of a reset or a limit that is not kept train an agent all the same,
towards something else.
"""

import dataclasses
import functools
from collections.abc import Iterator
from typing import Any

import jax
import numpy as np

from ppo_jax.component import is_component, require
from ppo_jax.envs.check import traces
from ppo_jax.envs.check.behaviour import NUM_RESETS, play, read
from ppo_jax.envs.env import ActionSpace, Box, Discrete, Env, MultiDiscrete
from ppo_jax.envs.suites import make
from ppo_jax.errors import Misfit, brief, own_lines

MIN_STEPS, MAX_STEPS = 256, 10_000
"""Bounds on the steps to play, if `check` is not given a number."""
FACTS = ("action_space", "min_steps_to_truncation", "max_episode_steps")


def check(
    env: Env | str,
    steps: int | None = None,
    num_envs: int = 4,
    seed: int = 0,
    carried: tuple[str, ...] = (),
) -> None:
    """Plays an environment with random actions and reports all that is wrong with it.

    By tracing it finds: settings that cannot be hashed or that depend on numbers;
    types, shapes and structures that change between `reset` and a step; weak types;
    rewards and flags of the wrong type or shape; masks of the wrong shape; callbacks to
    the host; results that differ from trace to trace; code that cannot be traced with
    its numbers as arrays, or mapped by `jax.vmap`.

    By playing it finds: observations, rewards or weights that are not finite; no
    allowed action; truncations and ends at times that the environment rules out;
    `final_obs` that differs from `obs` within an episode, or that is taken after the
    reset; observations and states after an end that no reset would give; episodes that
    all begin alike; the same keys with other results.

    It cannot know which beginnings are right, only which ones `reset` gives: after an
    end, a number is wrong if it lies outside of the range of 1024 resets by ten times
    that range's width. So it misses a state that is not reset but stays in that range,
    a `final_obs` that is wrong in an environment where every episode begins alike, and
    whatever random actions do not reach. An environment that inherits `Env.step` resets
    correctly by construction.

    Args:
        env: An `Env`, or the id of one.
        steps: Steps to play. It should be as many as an episode can have: if no episode
            ends, resets go unchecked, which gives a warning. None: the environment's
            `max_episode_steps`, but at least 256 and at most 10,000.
        num_envs: Environments side by side.
        seed: Seed of the random actions and of everything in the environment.
        carried: Parts of the state that outlive episodes on purpose, such as a count
            of them, by their names in findings: bsuite's deep sea passes with
            `("state.total_bad_episodes", "state.denoised_return")`.

    Raises:
        Misfit: If anything was found; the message lists all of it.
        ValueError: If there is nothing to play.
        TypeError: If `env` is neither an `Env` nor an id.

    >>> from ppo_jax.envs.probes import RiskyBandit
    >>> check(RiskyBandit(), steps=8)
    """
    env = make(env)
    judge = "one that programs step; gymnasium.utils.env_checker checks those of others"
    require(not env.simulated, "env", env, judge)
    given = steps is None or (isinstance(steps, int) and steps >= 1)
    require(given, "steps", steps, "a whole number, at least 1")
    require(1 <= num_envs <= NUM_RESETS, "num_envs", num_envs, f"1 to {NUM_RESETS}")
    findings = _settings(env)
    if not findings:
        methods, findings = traces.trace_methods(env)
        fits = not findings
        findings += _not_static(env)
        for method in methods:
            findings += traces.habits(method)
        if fits:
            for method in methods:
                findings += traces.weak_types(method)
            findings += _played(env, steps, num_envs, seed, carried)
    _refuse(env, findings)


def check_types(env: Env) -> None:
    """Checks settings, types, shapes and structures, as `check` does by tracing once.

    It takes less than a second, so training begins with it.

    Raises:
        Misfit: If anything was found; the message lists all of it.

    >>> from ppo_jax.envs.probes import RiskyBandit
    >>> check_types(RiskyBandit())
    """
    env = env.outline
    _refuse(env, _settings(env) or [*traces.misfits(env), *_not_static(env)])


def _refuse(env: Env, findings: list[str]) -> None:
    """Raises an error that lists the findings, if there are any."""
    if findings:
        count = f"{len(findings)} problem{'s' * (len(findings) > 1)}"
        raise Misfit("\n- ".join([f"{env!r:.80}: {count}", *findings]))


def _settings(env: Env) -> list[str]:
    """Checks that facts about episodes and actions exist and are in range."""
    return list(_unanswered(env)) or list(_out_of_range(*_facts(env)))


def _unanswered(env: Env) -> Iterator[str]:
    for name in FACTS:
        try:
            traces.attempted(name, functools.partial(getattr, env, name))
        except traces.Untraceable as error:
            yield str(error)


def _out_of_range(space: ActionSpace, least: int, most: int | None) -> Iterator[str]:
    _, *limits = FACTS
    for name, value in zip(limits, (least, 1 if most is None else most), strict=True):
        if not isinstance(value, int) or value < 1:
            yield f"{name}: got {value!r}, expected an int from 1 up"
    if not _valid(space):
        yield (
            f"action_space: got {space!r}{_origin(space)}, expected Discrete(n) with "
            "n ≥ 1, MultiDiscrete of such, or Box with low < high, as "
            "Box((-1.0,), (1.0,)), all of ppo_jax.envs"
        )


def _not_static(env: Env) -> Iterator[str]:
    """Checks that static parts can be hashed, and are the same for all numbers."""
    yield from _unhashable(env, type(env).__name__)
    facts, (numbers, rebuild) = _facts(env), traces.opened(env)

    def compare(numbers):
        if _facts(rebuild(numbers)) != facts:
            raise ValueError

    try:
        jax.eval_shape(compare, numbers)
    except Exception:  # Among them JAX's own, for a comparison of traced numbers.
        yield (
            f"{', '.join(FACTS)}: got some that depend on a number, or are arrays of "
            "jax; expected static ones, computed from static fields (int, tuple)"
        )


def _played(
    env: Env, steps: int | None, num_envs: int, seed: int, carried: tuple[str, ...]
) -> list[str]:
    if steps is None:
        steps = min(max(MIN_STEPS, env.max_episode_steps or 0), MAX_STEPS)
    try:
        played, again = play(env, steps, num_envs, seed)
    except Exception as error:
        message = f"step: got {brief(error)}, expected code that jax.vmap can map"
        return [message + own_lines(error)]
    return read(env, played, again, carried)


def _facts(env: Env) -> tuple[ActionSpace, int, int | None]:
    return tuple(getattr(env, name) for name in FACTS)


def _valid(space: ActionSpace) -> bool:
    match space:
        case Discrete() | MultiDiscrete():
            return _is_row(space.nvec) and all(map(_is_count, space.nvec))
        case Box(low, high):
            paired = _is_row(low) and _is_row(high) and len(low) == len(high)
            return paired and all(a < b for a, b in zip(low, high, strict=True))
    return False


def _origin(space: Any) -> str:
    """Returns the package of a space that is of another one than these are."""
    package = type(space).__module__.split(".")[0]
    return "" if package in ("ppo_jax", "builtins") else f" of {package}"


def _is_row(given: Any) -> bool:
    return np.ndim(given) == 1 and len(given) > 0


def _is_count(given: Any) -> bool:
    return isinstance(given, int | np.integer) and bool(given >= 1)


def _unhashable(node: Any, path: str) -> Iterator[str]:
    """Yields static fields that cannot be part of a jit signature, at any depth."""
    children, _ = jax.tree_util.tree_flatten_with_path(
        node, is_leaf=lambda x: x is not node
    )
    data = {path[0].name: value for path, value in children}
    for name in (field.name for field in dataclasses.fields(node)):
        if name in data:
            if is_component(data[name]):
                yield from _unhashable(data[name], f"{path}.{name}")
            continue
        value = getattr(node, name)
        try:
            hash(value)
        except TypeError:
            yield (
                f"{path}.{name}: got an unhashable {type(value).__name__}, expected "
                "what can be a key of a dict; use a tuple, or an object of your own"
            )
