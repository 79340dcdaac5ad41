"""Results of a run in Python: its agents, and the record of their training."""

import dataclasses
import functools
import json
from collections.abc import Sequence
from numbers import Integral
from pathlib import Path
from typing import Any

import jax
import numpy as np

from ppo_jax import component
from ppo_jax.component.suggestion import unknown
from ppo_jax.config import Config
from ppo_jax.envs import Env
from ppo_jax.errors import UserError
from ppo_jax.exports import folder, provenance
from ppo_jax.host.agents import elsewhere, video, watching
from ppo_jax.host.agents.watching import Watched
from ppo_jax.host.devices import streams
from ppo_jax.host.loop import beginning, evaluation
from ppo_jax.host.metrics.members import fittest
from ppo_jax.host.run_dir import claims, experiment, history, presence, source, storing
from ppo_jax.host.run_dir.description import describe
from ppo_jax.host.run_dir.history import Curves
from ppo_jax.host.run_dir.logger import Row
from ppo_jax.host.run_dir.recording import Folder, Past
from ppo_jax.host.run_dir.script import Texts
from ppo_jax.metrics.own import rows_of
from ppo_jax.policy import Policy
from ppo_jax.ppo import episodes
from ppo_jax.ppo.episodes import Game
from ppo_jax.state import Learner, Population
from ppo_jax.types import Params


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class Trained:
    """Agents that were trained: a single one, or the members of a population.

    Attributes:
        config: The experiment.
        population: The whole state of training, as arrays of the host.
        update: Updates done.
        ending: How the run ended: `finished`, `stopped` by a bound or a callback,
            `interrupted` or `failed`; empty for a checkpoint that was loaded.
        rows: Rows that the run logged.
        lineage: The generations of a population.
        streaks: Streaks of alerts, as in `Alarms`.
    """

    config: Config
    population: Population
    update: int
    ending: str = ""
    rows: Sequence[Row] = ()
    lineage: Sequence[dict[str, Any]] = ()
    streaks: dict[str, list[int]] = dataclasses.field(default_factory=dict)

    def __repr__(self) -> str:
        size = "" if self._alone else f", {self.config.num_members} members"
        return f"Trained({self.steps:,} steps{size})"

    @property
    def steps(self) -> int:
        """Environment steps done by each member."""
        return self.update * self.config.steps_per_update

    @property
    def learner(self) -> Learner:
        """The state that evaluations need; leaves `[members, ...]` of a population."""
        learner = self.population.runs.learner
        return jax.tree.map(lambda x: x[0], learner) if self._alone else learner

    @property
    def params(self) -> Params:
        """The parameters; leaves `[members, ...]` of a population."""
        return self.learner.params

    @functools.cached_property
    def curves(self) -> Curves:
        """Curves of the run's metrics, by name; see `history.curves`."""
        return history.curves(self.rows)

    @property
    def policy(self) -> Policy:
        """Policy that acts as evaluations do; of a population, the fittest member's."""
        return Policy.of(self.member(self.fittest).learner)

    @property
    def fittest(self) -> int:
        """The fittest member at its last evaluation; 0 if no evaluation is finite."""
        return fittest(np.asarray(self.population.fitness)) or 0

    def member(self, index: int) -> "Trained":
        """Returns one member by itself, with its own numbers.

        Raises:
            UserError: If there is no such member.
        """
        size = self.config.num_members
        if not (isinstance(index, int | np.integer) and 0 <= index < size):
            raise UserError(f"member: expected 0 to {size - 1}, got {index!r}")
        if self._alone:
            return self
        return Trained(
            _alone(self.config, self.population, index),
            member_of(self.population, index),
            self.update,
            self.ending,
            history.of_member(self.rows, index),
        )

    def evaluate(
        self,
        episodes: int = 128,
        seed: int | None = None,
        sample: bool | None = None,
        env: Env | str | None = None,
    ) -> dict[str, Any]:
        """Plays whole episodes, as `python -m ppo_jax.evaluate` does.

        Args:
            episodes: The number of episodes.
            seed: Seed of the episodes; None: that of the run.
            sample: Whether to sample actions instead of taking the most likely ones;
                None: as the run's evaluations do.
            env: The environment that is played, such as one of other days or costs, or
                its id; None: that of the run.

        Returns:
            Statistics of the returns by name; arrays `[members]` of a population, whose
            members all play the same episodes.

        Raises:
            UserError: If an argument is not possible, or the environment has other
                observations or actions than that of the run.
        """
        seed = self._seeded(episodes, seed)
        how = episodes, not evaluation.samples(self.config, sample)
        members = self._in(env).population
        returns, ended = evaluation.evaluate(members, seed, self.update, *how)
        each = [_figures(*played) for played in zip(returns, ended, strict=True)]
        if self._alone:
            return each[0]
        return {name: np.array([one[name] for one in each]) for name in each[0]}

    def watch(
        self,
        path: str | Path,
        episodes: int = 4,
        seed: int | None = None,
        sample: bool | None = None,
        steps: int = 1000,
        fps: int = 20,
        env: Env | str | None = None,
    ) -> Watched:
        """Plays whole episodes, as `python -m ppo_jax.watch` does, and makes a video.

        Args:
            path: The file; its name ends in .gif or .mp4.
            episodes: The number of episodes, which are shown side by side. Of a
                population, the fittest member plays them.
            seed: Seed of the episodes; None: that of the run.
            sample: Whether to sample actions instead of taking the most likely ones;
                None: as the run's evaluations do.
            steps: The most steps of an episode.
            fps: Steps per second.
            env: The environment that is played, or its id; None: that of the run.

        Returns:
            The return and the length of each episode, and whether it ended.

        Raises:
            UserError: If the environment cannot be drawn or has other observations or
                actions than that of the run, or the file cannot be made.
        """
        seed = self._seeded(episodes, seed)
        component.require(_whole(steps, 1), "steps", steps, "at least 1")
        component.require(fps in video.FPS, "fps", fps, "a whole number, 1 to 50")
        video.require(Path(path))
        how = episodes, not evaluation.samples(self.config, sample)
        game = Game(self.member(self.fittest)._in(env).learner, *how)
        key = streams.evaluation(seed, self.update)
        return watching.record(Path(path), game, key, steps, fps)

    def save(self, run_dir: str | Path) -> Path:
        """Writes a run directory, as if the run had been kept there.

        Raises:
            ExperimentError: If it cannot be written, or holds a run.
        """
        place = Path(run_dir)
        with presence.alone(place):
            self.keep(place, source.texts(self.config), [])
        return place

    def export(self, path: str | Path, kind: str = "all") -> Path:
        """Writes a folder as `python -m ppo_jax.export` does.

        Args:
            path: The folder.
            kind: The format of the export: `all`, `stablehlo` or `numpy`.

        Raises:
            UserError: If the folder holds anything but an unchanged export, or the
                policy cannot be exported in this format.
        """
        if kind not in folder.FORMATS:
            raise UserError(f"kind: {unknown('format', str(kind), folder.FORMATS)}")
        place, who = Path(path), self.fittest
        folder.require_free(place)
        own, size = self.member(who).config, self.config.num_members
        training = provenance.trained(None, own, self.update, who, size, self.rows)
        folder.write(place, self.policy, kind, training)
        return place

    def keep(self, run_dir: Path, texts: Texts, overrides: list[str]) -> None:
        """Writes a new run directory, which counts as one once it has a checkpoint.

        Args:
            run_dir: The directory.
            texts: The experiment's file and its modules, by path.
            overrides: Options that the experiment was loaded with.

        Raises:
            ExperimentError: If it cannot be written, or holds a run.
        """
        claims.require_new(run_dir)
        lines = "".join(json.dumps(row) + "\n" for row in self.rows)
        first = {experiment.UNSAVED: f"{claims.AGAIN}\n", claims.LOG: lines}
        before = {name: text.encode() for name, text in first.items()}
        storing.store(run_dir, before | texts, overrides, self.config)
        meta = {"config": describe(self.config), "id": beginning.identity()}
        past = Past(self.steps, list(self.lineage), {}, rows_of(self.config))
        fitness = evaluation.best(self.population)
        record = Folder(run_dir)
        with record.opened(), record.written(past):
            record.prepare()
            meta |= {"lineage": record.family.packed, "streaks": self.streaks}
            record.save(self.update, self.population, fitness, meta)
            record.ending.became(self.ending)
        (run_dir / experiment.UNSAVED).unlink()

    def _in(self, env: Env | str | None) -> "Trained":
        """Returns the agents in this environment, to be played; None: in their own."""
        if env is None:
            return self
        members = elsewhere.members(self.config, self.population, env)
        return dataclasses.replace(self, population=members)

    def _seeded(self, episodes: int, seed: int | None) -> int:
        """Checks a number of episodes and a seed; returns the seed, or the run's."""
        component.require(_whole(episodes, 1), "episodes", episodes, "at least 1")
        known = seed is None or (_whole(seed, 0) and seed < 2**32)
        component.require(known, "seed", seed, "0 to 2³² − 1, or None")
        return self.config.seed if seed is None else seed

    @property
    def _alone(self) -> bool:
        return self.config.pbt is None


def member_of(population: Population, index: int) -> Population:
    """Returns one member as a population of its own, given arrays of the host."""
    one = slice(index, index + 1)
    return dataclasses.replace(
        population,
        runs=jax.tree.map(lambda x: x[one], population.runs),
        fitness=population.fitness[one],
    )


def _alone(config: Config, population: Population, index: int) -> Config:
    """Returns the experiment of one member, with its own numbers."""
    numbers = component.numbers(population.runs.learner.config)
    for path, range_ in config.pbt.space.ranges if config.pbt else ():
        # The float32 number that is nearest to an end may lie beyond it.
        number = float(np.clip(float(numbers[path][index]), *range_.ends))
        config = component.replace_at(config, path, number)
    return dataclasses.replace(config, pbt=None)


def _whole(value: Any, least: int) -> bool:
    return isinstance(value, Integral) and int(value) >= least


def _figures(returns: np.ndarray, ended: np.ndarray) -> dict[str, Any]:
    return episodes.summarize(returns) | {"unfinished": int(np.sum(~ended))}
