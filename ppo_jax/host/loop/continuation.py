"""Runs that begin with the parameters and statistics of an agent."""

import dataclasses
import re
from typing import Any

import jax
import numpy as np
from jax.typing import ArrayLike

from ppo_jax.arrays.tree import by_path
from ppo_jax.config import Config
from ppo_jax.errors import UserError, kind
from ppo_jax.host.loop import training
from ppo_jax.state import Learner, Population

HEADS = {
    "head of the policy": re.compile(r"(^|\.)actor\.(?!trunk\.)"),
    "heads of the critics": re.compile(r"(^|\.)critic\.heads\.head\."),
}
"""Patterns of the paths of heads, which may differ from task to task."""
PARTS = ("params", "obs_moments", "return_scale")


class Continuation:
    """Members that begin with the parameters and statistics of an agent.

    All members begin with the same ones. Heads that do not fit begin from scratch. So
    do memories of terms, counts and, unless it is asked for, the state of the
    optimiser.

    Args:
        config: The experiment.
        agent: The agent that the members continue.
        optimizer: Whether to take over the state of its optimiser.

    Attributes:
        anew: The parts that begin from scratch, in words.

    Raises:
        UserError: If other shapes differ; the message names both.
    """

    def __init__(self, config: Config, agent: Learner, optimizer: bool = False):
        fresh = jax.eval_shape(training.start, config).runs.learner
        self.anew: list[str] = []
        self._taken: dict[str, Any] = {}
        for part in (*PARTS, "opt_state") if optimizer else PARTS:
            old, new = getattr(agent, part), getattr(fresh, part)
            if part == "return_scale" and self._unscaled(config):
                self.anew += ["scale of returns"] if agent.config.return_scale else []
                continue
            if part == "obs_moments" and () in (old, new):
                self.anew += ["statistics of observations"] if old != new else []
                continue
            one = {path: _one(leaf) for path, leaf in by_path(new).items()}
            self._take(part, by_path(old), one)

    def __call__(self, config: Config, seed: ArrayLike | None = None) -> Population:
        """Returns the members before their first update; see `training.start`."""
        members = training.start(config, seed)

        def taken(keys: Any, leaf: Any) -> Any:
            old = self._taken.get(_path(keys))
            return leaf if old is None else np.broadcast_to(old, leaf.shape)

        learner = jax.tree.map_with_path(taken, members.runs.learner)
        runs = dataclasses.replace(members.runs, learner=learner)
        return dataclasses.replace(members, runs=runs)

    def _unscaled(self, config: Config) -> bool:
        """Returns whether the critics begin from scratch, and predict raw returns."""
        return config.return_scale is None and "heads of the critics" in self.anew

    def _take(self, part: str, old: dict[str, Any], new: dict[str, Any]) -> None:
        """Takes over the leaves of a part, except those of heads that differ."""
        differing = {
            path: f"{_shown(old, path)} there, {_shown(new, path)} here"
            for path in old | new
            if _shown(old, path) != _shown(new, path)
        }
        fresh = {
            k: head for k, head in HEADS.items() if any(map(head.search, differing))
        }

        def begins(path: str) -> bool:
            return any(head.search(path) for head in fresh.values())

        wrong = [f"\n  {part}.{k}: {x}" for k, x in differing.items() if not begins(k)]
        if wrong:
            message = "expected an agent with the shapes of this experiment, got"
            raise UserError(f"{message}{''.join(wrong)}")
        self.anew += [name for name in fresh if name not in self.anew]
        self._taken |= {f"{part}.{k}": x for k, x in old.items() if not begins(k)}


def _path(keys: Any) -> str:
    return jax.tree_util.keystr(keys, simple=True, separator=".")


def _one(leaf: Any) -> Any:
    """Returns the shape of one member's leaf, given that of all members."""
    return jax.ShapeDtypeStruct(leaf.shape[1:], leaf.dtype)


def _shown(leaves: dict[str, Any], path: str) -> str:
    return kind(leaves[path]) if path in leaves else "absent"
