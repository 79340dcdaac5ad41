"""Checkpoints of members, chosen by their earnings on validation alone."""

import dataclasses
import io
import math
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np

from ppo_jax.backtests import playing
from ppo_jax.backtests.folds import Span
from ppo_jax.config import Config
from ppo_jax.host.loop.phases import Rhythm
from ppo_jax.host.run_dir import batched, files
from ppo_jax.host.run_dir.experiment import ExperimentError
from ppo_jax.pbt.space import Space
from ppo_jax.state import Learner, Population

KEPT = batched.SELECTED


class Selected(NamedTuple):
    """Agents as they were at their best, `[A]`: one of every population."""

    learners: Learner
    scores: np.ndarray
    """Log growth on validation."""
    updates: np.ndarray
    """Updates after which each agent was at its best."""


class Selection:
    """The best state so far of each member, which is kept in a file too.

    It is shown the members after every phase (`training.train`'s `steer`), and does not
    change them. A run that is resumed shows it the same members again.

    Args:
        config: The experiment of the members; each agent has `num_members` of them.
        spans: The validation spans of agents.
        home: The directory of their run.

    Raises:
        ExperimentError: If what was selected before cannot be read.

    Attributes:
        fitness: Log growth on validation at the last look, float64 `[P]`.
        scores: Log growth of the best state so far, `[P]`.
        updates: Updates after which that state was reached, `[P]`.
    """

    def __init__(self, config: Config, spans: list[Span], home: Path):
        self._config, self._path = config, home / KEPT
        self._spans = spans = [x for x in spans for _ in range(config.num_members)]
        self._rhythm, self._every = Rhythm.of(config), config.eval_phases
        self._space = Space()
        if config.pbt is not None:
            generation = self._rhythm.count(config.pbt.interval)
            self._every = math.gcd(self._every, generation)
            self._space = config.pbt.space
        self._first = 0
        """Updates at the first look."""
        while self._rhythm.count(self._first) < self._every:
            self._first = self._rhythm.end(self._first)
        self._best: list[np.ndarray] = []
        self.fitness = np.full(len(spans), -np.inf)
        self.scores = np.full(len(spans), -np.inf)
        self.updates = np.zeros(len(spans), int)
        if self._path.exists():
            self._recall(files.arrays(self._path))

    def __call__(self, population: Population, done: int) -> Population:
        """Looks at the members after `done` updates, if it is time."""
        self._require_kept(done)
        if done and self._rhythm.count(done) % self._every == 0:
            self.look(population, done)
        return population

    def look(self, population: Population, done: int) -> None:
        """Keeps those members that are better now than they were before.

        Raises:
            ExperimentError: If those from before are missing.
        """
        self._require_kept(done)
        learners = jax.device_get(population.runs.learner)
        seen = playing.through(self._config, learners, self._spans)
        bars = max(span.bars for span in self._spans)
        growth = np.asarray(playing.play(seen, bars).track.growth, np.float64)
        self.fitness = scores = np.nan_to_num(growth.sum(axis=-1), nan=-np.inf)
        leaves = jax.tree.leaves(self._acting(learners))
        better = scores > self.scores
        better |= not self._best  # There is one to keep even if all are broken.
        self._best = self._best or leaves
        self._best = [
            np.where(better.reshape(-1, *(1,) * (new.ndim - 1)), new, old)
            for new, old in zip(leaves, self._best, strict=True)
        ]
        self.scores = np.where(better, scores, self.scores)
        self.updates = np.where(better, done, self.updates)
        if better.any():
            self._keep()

    def of(self, population: Population) -> Selected:
        """Returns the best agent of each population; `population` gives the types."""
        learners = jax.device_get(population.runs.learner)
        structure = jax.tree.structure(self._acting(learners))
        learners = self._with(learners, jax.tree.unflatten(structure, self._best))
        populations = self.scores.reshape(-1, self._config.num_members)
        first = self._config.num_members * np.arange(len(populations))
        chosen = first + populations.argmax(axis=1)
        whole = Selected(learners, self.scores, self.updates)
        return jax.tree.map(lambda leaf: leaf[chosen], whole)

    def _require_kept(self, done: int) -> None:
        if not self._best and done > self._first:
            raise lost(self._path, "is missing")

    def _recall(self, kept: dict[str, np.ndarray]) -> None:
        names = [f"leaf{i}" for i in range(len(kept) - 2)]
        if not names or kept.keys() != {"scores", "updates", *names}:
            raise lost(self._path, "is no selection")
        self.scores, self.updates = kept["scores"], kept["updates"]
        self._best = [kept[name] for name in names]

    def _keep(self) -> None:
        text = io.BytesIO()
        kept: Any = {f"leaf{i}": leaf for i, leaf in enumerate(self._best)}
        np.savez(text, scores=self.scores, updates=self.updates, **kept)
        files.write_bytes(self._path, text.getvalue())

    def _acting(self, learner: Learner) -> Any:
        """Returns the parts of a learner that training changes and acting needs."""
        searched = self._space.read(learner.config)
        return learner.params, learner.obs_moments, learner.return_scale, searched

    def _with(self, learner: Learner, acting: Any) -> Learner:
        params, moments, scale, searched = acting
        return dataclasses.replace(
            learner,
            config=self._space.write(learner.config, searched),
            params=params,
            obs_moments=moments,
            return_scale=scale,
        )


def lost(path: Path, how: str) -> ExperimentError:
    """Returns the error of a batch that cannot go on, as a file of it is lost."""
    return ExperimentError(
        f"{path}: {how}; nobody can go on without; remove {path.parent} to train its "
        "agents anew"
    )
