"""Members whose environments are simulators on the host, stepped in batches.

One program does all work between two steps of the simulators, for all members
(`ppo.stepped`). A layout of this kind has the methods of one for compiled environments.
Simulators are no part of a checkpoint: they begin new episodes when a run is resumed.
"""

import dataclasses
import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from ppo_jax.arrays import tree
from ppo_jax.arrays.packing import Packed
from ppo_jax.attacks.opponents import Opponent
from ppo_jax.config import Config
from ppo_jax.envs.simulators import Simulators
from ppo_jax.host.devices import fleet, mesh
from ppo_jax.host.devices.fleet import Fleet, acting
from ppo_jax.host.devices.mesh import Layout
from ppo_jax.host.process import distributed
from ppo_jax.host.programs.compiling import (
    COMPILER_OPTIONS,
    Compilation,
    TrainingProgram,
)
from ppo_jax.ppo import stepped
from ppo_jax.schedules import Progress
from ppo_jax.state import Learner, Population, Run
from ppo_jax.types import Array, Key, PyTree


def layout_of(config: Config, num_members: int) -> Layout:
    """Returns the layout of an experiment's members for its kind of environments.

    Raises:
        JobError: If devices and processes cannot share the members as asked.
    """
    if not config.env.simulated:
        return mesh.layout_of(config, num_members)
    processes, asked = jax.process_count(), config.devices_per_member
    if processes > 1:
        raise distributed.JobError(
            f"Config.env = {config.env!r}: simulators on the host need a single "
            f"process of a job, got {processes}"
        )
    if asked not in (None, 1):
        raise distributed.JobError(
            f"Config.devices_per_member = {asked}: expected 1 or None with "
            "simulators on the host"
        )
    return Simulation()


def on_one_device(config: Config) -> Layout:
    """Returns a layout on one device for an experiment's kind of environments."""
    return Simulation() if config.env.simulated else mesh.on_one_device()


class Simulation(Layout):
    """Layout of all members on the first device, with their simulators on the host."""

    anew = "the simulators begin new episodes"

    def __init__(self):
        super().__init__(jax.local_devices()[:1])
        self._training, self._evaluation = Fleet(), Fleet()

    def __str__(self) -> str:
        return f"{super().__str__()}, simulators on the host"

    @functools.cached_property
    def advance(self) -> Any:
        return self._phase

    def programs(
        self,
        members: Population,
        progress: Progress,
        key: Key,
        num_episodes: int,
        deterministic: bool,
    ) -> list[Compilation]:
        runs, now = members.runs, jax.tree.map(lambda x: x[0], progress)
        depart, proceed, arrive = self._rollouts
        anew = jax.ShapeDtypeStruct(runs.actor.reset.shape, bool)
        first = runs, now, fleet.shown_to(runs.actor), anew
        journey, _ = fleet.described(jax.eval_shape(depart, *first), runs.key.sharding)
        answer = fleet.answer_of(runs.actor)
        following = acting(runs.learner), now, np.int32(0), journey, answer
        return [
            Compilation("arrive", arrive, (runs, now, journey, answer)),
            Compilation("seeds", _seeds, (runs.key, runs.actor.reset)),
            Compilation("depart", depart, first),
            Compilation("proceed", proceed, following),
            *fleet.programs(runs, key, num_episodes, deterministic),
        ]

    @property
    def _rollouts(self) -> "_Rollouts":
        return _rollouts(self._lies.runs, self.platform)

    def run_episodes(
        self, learners: PyTree, key: Key, num_episodes: int, deterministic: bool
    ) -> tuple[Any, Any]:
        return self._played(learners, None, key, num_episodes, deterministic)

    def run_against(
        self, opponent: Opponent, radii: Array, learner: Learner, key: Key, *how: Any
    ) -> tuple[Any, Any]:
        many = jax.tree.map(lambda x: jnp.stack([x] * len(radii)), learner)
        return self._played(many, jax.vmap(opponent.of_radius)(radii), key, *how)

    def close(self) -> None:
        self._training.close()
        self._evaluation.close()

    def _phase(
        self, population: Population, progress: Progress, count: Any
    ) -> tuple[Population, Packed]:
        """Runs a phase as `population.phase` does; only updates done have metrics."""
        runs, history = population.runs, []
        fresh = self._training.ready(runs.learner, runs.actor.reset.shape[1])
        simulators = self._training.simulators
        if fresh:
            simulators.reset(np.asarray(_seeds(runs.key, runs.actor.reset)))
        for i in range(int(count)):
            now = jax.tree.map(lambda x, i=i: x[i], progress)
            anew = simulators.restart_broken() | (fresh and i == 0)
            runs, metrics = self._iteration(simulators, runs, now, anew)
            history.append(jax.device_get(metrics))
        stacked = jax.tree.map(lambda *each: np.stack(each), *history)
        return dataclasses.replace(population, runs=runs), stacked

    def _iteration(
        self, simulators: Simulators, runs: Run, progress: Progress, anew: np.ndarray
    ) -> tuple[Run, Packed]:
        """Runs an iteration as `learner.iteration` does, for all members."""
        programs, learners = self._rollouts, acting(runs.learner)
        journey, actions = programs.depart(runs, progress, simulators.shown, anew)
        for time in range(learners.config.num_steps - 1):
            answer, now = simulators.step(actions), np.int32(time)
            journey, actions = programs.proceed(
                learners, progress, now, journey, answer
            )
        return programs.arrive(runs, progress, journey, simulators.step(actions))

    def _played(
        self,
        learners: PyTree,
        opponents: Opponent | None,
        key: Key,
        num_episodes: int,
        deterministic: bool,
    ) -> tuple[np.ndarray, np.ndarray]:
        """Plays as `episodes.run_episodes` does, for all members."""
        simulators = self._evaluation.started(learners, key, num_episodes)
        score: Any = None
        for score in fleet.scores(simulators, learners, opponents, key, deterministic):
            if score.ended.all():
                break
        return score.total, score.ended


class _Rollouts(NamedTuple):
    """Programs of a rollout of all members; see `ppo.stepped`."""

    depart: Any
    proceed: Any
    arrive: Any


@functools.cache
def _rollouts(lies: Run, platform: str) -> _Rollouts:
    """Returns programs that all runs of a process share, so each is traced once.

    Args:
        lies: Shardings of the members.
        platform: Platform of their device.
    """

    def mapped(function, *axes, **options):
        return jax.jit(tree.each(function, axes), out_shardings=lies.key, **options)

    return _Rollouts(
        mapped(stepped.depart, 0, None, 0, 0),
        mapped(stepped.proceed, 0, None, None, 0, 0, donate_argnums=3),
        TrainingProgram(
            tree.each(stepped.arrive, (0, None, 0, 0)),
            COMPILER_OPTIONS.get(platform),
            donate_argnums=0,
            out_shardings=(lies, lies.key),
        ),
    )


@jax.jit
def _seeds(keys: Key, like: Array) -> Array:
    """Returns the seeds of all members' simulators, as many as of `like`, `[P, B]`."""
    return jax.vmap(lambda key: stepped.seeds(key, like.shape[1]))(keys)
