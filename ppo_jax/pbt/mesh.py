"""The axis of a population laid over devices, of one process or of many.

Members are independent between two generations, so every device runs the program of
its own members and waits for no other: `advance` and evaluations communicate nothing.
A generation is a gather over all of them, which the compiler turns into communication.
"""

import functools
from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as Axes
from jax.typing import ArrayLike

from ppo_jax import episodes, job
from ppo_jax.pbt import population as populations
from ppo_jax.state import Population
from ppo_jax.types import Array, Key, PyTree

MEMBERS: Any = Axes("population")
TOGETHER: Any = Axes()
PLACES = Population(runs=MEMBERS, fitness=TOGETHER, waited=TOGETHER)
"""Of a population's leaves: with their members, or whole on every device."""


class Layout:
    """Members in equal shares over a row of devices, in order.

    A population that a function returns lies as the one it was given, so that nothing
    is compiled twice.

    Args:
        devices: The devices.
    """

    def __init__(self, devices: Sequence[Any]):
        self.devices = tuple(devices)
        self._mesh = Mesh(np.array(self.devices), ("population",))
        whole, lies = self._on(TOGETHER), self._on(PLACES)
        self._lies = lies
        self._evolve = jax.jit(
            populations.evolve, donate_argnums=1, out_shardings=(lies, whole)
        )
        self._advance = jax.jit(
            self._each(
                populations.advance,
                (PLACES, TOGETHER, TOGETHER),
                (PLACES, Axes(None, "population")),
            ),
            donate_argnums=0,
        )
        self._everywhere = jax.jit(_same, out_shardings=whole)

    def __str__(self) -> str:
        device, processes = self.devices[0], jax.process_count()
        text = f"{device.platform} ({device.device_kind})"
        text += f", {len(self.devices)} devices" if len(self.devices) > 1 else ""
        return text + (f" of {processes} processes" if processes > 1 else "")

    def make(self, function: Callable[[], Population]) -> Population:
        """What a function makes, made where it lies."""
        if len(self.devices) == 1:
            return self.place(function())
        return jax.jit(function, out_shardings=self._lies)()

    def advance(
        self, population: Population, progress: ArrayLike, count: ArrayLike
    ) -> tuple[Population, PyTree]:
        """As `population.advance`; the population is donated."""
        return self._advance(population, progress, count)

    def evolve(
        self, pbt: Any, population: Population, keys: Key
    ) -> tuple[Population, populations.Generation]:
        """As `population.evolve`; the population is donated."""
        return self._evolve(pbt, population, keys)

    def run_episodes(
        self, learners: PyTree, key: Key, num_episodes: int, deterministic: bool
    ) -> tuple[Array, Array]:
        """As `episodes.run_episodes` for every member, the same episodes for all."""
        return self._player(num_episodes, deterministic)(learners, key)

    def place(self, population: Population) -> Population:
        """The same members; those leaves are moved that do not lie as they should."""
        return jax.device_put(population, self._lies)

    def fetch(self, tree: PyTree) -> PyTree:
        """The whole of every leaf, on the host of every process."""
        if self._mesh.is_multi_process:
            tree = self._everywhere(tree)
        return jax.device_get(tree)

    def put(self, values: np.ndarray) -> Array:
        """A host's values on all devices: those of process 0, if they differ."""
        return jax.device_put(job.agreed(values), self._on(TOGETHER))

    def _on(self, places: PyTree) -> PyTree:
        return jax.tree.map(lambda axes: NamedSharding(self._mesh, axes), places)

    def _each(self, function: Any, in_specs: Any, out_specs: Any) -> Any:
        """The same function on every device, of what lies there."""
        return jax.shard_map(
            function,
            mesh=self._mesh,
            in_specs=in_specs,
            out_specs=out_specs,
            check_vma=False,
        )

    @functools.cache  # noqa: B019  A layout lives as long as its process.
    def _player(self, num_episodes: int, deterministic: bool) -> Any:
        def play(learners, key):
            return jax.vmap(
                lambda one: episodes.run_episodes(one, key, num_episodes, deterministic)
            )(learners)

        return jax.jit(self._each(play, (MEMBERS, TOGETHER), MEMBERS))


def _same(tree: PyTree) -> PyTree:
    return tree


def spread(make: Callable[[], Population]) -> tuple[Layout, Population]:
    """What a function makes, over all devices that take equal shares of it.

    Raises:
        JobError: If the processes cannot take equal shares.
    """
    layout = over_all_devices(jax.eval_shape(make).fitness.size)
    return layout, layout.make(make)


@functools.cache
def over_all_devices(num_members: int) -> Layout:
    """As many devices as take equal shares of the members, equally many per process.

    Raises:
        JobError: If the processes cannot take equal shares.
    """
    processes = jax.process_count()
    if num_members % processes:
        raise job.JobError(
            f"{num_members} members: expected a multiple of the {processes} processes"
        )
    share = num_members // processes
    most = max(n for n in range(1, jax.local_device_count() + 1) if share % n == 0)
    devices: dict[int, list] = {}
    for device in jax.devices():
        devices.setdefault(device.process_index, []).append(device)
    return Layout([device for mine in devices.values() for device in mine[:most]])


@functools.cache
def on_one_device() -> Layout:
    """All members on the first device of this process."""
    return Layout(jax.local_devices()[:1])
