"""Members, and the environments of a member, over devices of one process or of many.

Members are independent between two generations, so every device runs the program of
its own members and waits for no other: `advance` and evaluations communicate nothing.
A generation is a gather over all of them, which the compiler turns into communication.
Devices that share a member do communicate: after its rollouts and evaluations, and at
every optimiser step (`arrays.sharding`).
"""

import copy
import functools
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Self

import jax
import numpy as np
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as Axes
from jax.tree_util import Partial

from ppo_jax import component
from ppo_jax.arrays import counting, tree
from ppo_jax.arrays.sharding import ENVS
from ppo_jax.attacks.opponents import Opponent
from ppo_jax.config import Config
from ppo_jax.host.process import distributed
from ppo_jax.host.programs import compiling
from ppo_jax.host.programs.compiling import Compilation
from ppo_jax.ppo import episodes
from ppo_jax.ppo import population as populations
from ppo_jax.schedules import Progress
from ppo_jax.state import Learner, Population, Run
from ppo_jax.types import Array, Key, PyTree

Begin = Callable[[Config, Array], Population]
"""Function that makes members from an experiment and its seed. Of the fields for the
host, the experiment has only its population. Arguments that JAX's `Partial` binds are
no part of the program that makes the members, which is the same for other numbers."""

MEMBERS: Any = Axes("population")
"""Place of leaves that are whole on the devices of their member."""
TOGETHER: Any = Axes()
"""Place of leaves that are whole on all devices."""
SHARED: Any = Axes("population", ENVS)
"""Place of leaves that a member's devices share by environments."""
PLACES = Population(
    runs=Run(MEMBERS, actor=SHARED, key=MEMBERS, counters=MEMBERS),
    fitness=TOGETHER,
    waited=TOGETHER,
)
"""Places of a population's leaves."""
HISTORY: Any = Axes(None, "population")
"""Place of metrics."""
STEPS = 64
"""Minibatch steps of a core, per core of its member, below which sharing costs more."""
FEWEST_STEPS = {"cpu": 256}
"""Fewest minibatch steps to learn from at once, by platform; more leave the caches."""
PHASE, EPISODES = "phase", "{} episodes, the likeliest actions: {}"
"""Names of a run's programs."""


class Layout:
    """Layout of members in equal shares over devices, in order.

    A population that a function returns is placed as the one it was given, so that
    nothing is compiled twice.

    Args:
        devices: The devices.
        per_member: Number of consecutive devices that share a member.
        steps: Steps of a minibatch on one device, in training.

    Attributes:
        platform: Platform of the programs, as JAX calls it.
        evolve: Evolves as `population.evolve` does; the population is donated.
        anew: Note on parts that begin from scratch in a resumed run; empty: none do.
    """

    anew = ""

    def __init__(
        self, devices: Sequence[Any], per_member: int = 1, steps: float = math.inf
    ):
        self.devices, self._steps = tuple(devices), steps
        self.platform = self.devices[0].platform
        self._compiled: Mapping[str, Any] = {}
        grid = np.array(self.devices).reshape(-1, per_member)
        self._mesh = Mesh(grid, ("population", ENVS))
        whole, self._lies = self._on(TOGETHER), self._on(PLACES)
        self.evolve = jax.jit(
            populations.evolve, donate_argnums=1, out_shardings=(self._lies, whole)
        )
        self._everywhere = jax.jit(_same, out_shardings=whole)

    def __str__(self) -> str:
        device, processes = self.devices[0], jax.process_count()
        text = f"{device.platform} ({device.device_kind})"
        text += f", {len(self.devices)} devices" if len(self.devices) > 1 else ""
        return text + (f" of {processes} processes" if processes > 1 else "")

    @property
    def whereabouts(self) -> str:
        """The places of members in words, as far as their programs depend on them."""
        numbers, grid = [device.id for device in self.devices], dict(self._mesh.shape)
        return f"{numbers} as {grid}, {self._steps} steps each"

    def making(self, begin: Begin, config: Config) -> Compilation:
        """Returns the program that makes an experiment's members in their places."""
        how = compiling.quick_options(self.platform)
        begin = begin if isinstance(begin, Partial) else Partial(begin)
        given = begin, component.program(config, "pbt"), np.uint32(config.seed)
        make = jax.jit(compiling.start, out_shardings=self._lies, compiler_options=how)
        return Compilation(compiling.name_of(begin.func), make, given)

    def described(self, shapes: Population) -> Population:
        """Returns the shapes of a population with their shardings."""
        lies = jax.tree.broadcast(self._lies, shapes)
        return jax.tree.map(
            lambda x, place: jax.ShapeDtypeStruct(x.shape, x.dtype, sharding=place),
            shapes,
            lies,
        )

    @property
    def advance(self) -> Any:
        """The program of `population.phase`; the population is donated."""
        return self._compiled.get(PHASE) or self._advance

    @functools.cached_property
    def _advance(self) -> Any:
        fewest = FEWEST_STEPS.get(self.platform, 0)
        phase = functools.partial(populations.phase, fewest_steps=fewest)
        places = (PLACES, TOGETHER, TOGETHER), (PLACES, HISTORY)
        return compiling.TrainingProgram(
            self._each(phase, *places),
            compiling.training_options(self.platform, self._steps),
            donate_argnums=0,
            out_shardings=(self._lies, self._on(HISTORY)),
        )

    def programs(
        self,
        members: Population,
        progress: Progress,
        key: Key,
        num_episodes: int,
        deterministic: bool,
    ) -> list[Compilation]:
        """Returns the programs of phases and of evaluations, the longest first."""
        how = num_episodes, deterministic
        phase, game = (members, progress, np.int32(0)), (members.runs.learner, key)
        return [
            Compilation(PHASE, self.advance, phase),
            Compilation(EPISODES.format(*how), self.player(*how), game),
        ]

    def having(self, compiled: Mapping[str, Any]) -> Self:
        """Returns the same layout with compiled programs of one run, by name."""
        ready = copy.copy(self)
        ready._compiled = compiled
        return ready

    def run_episodes(
        self, learners: PyTree, key: Key, num_episodes: int, deterministic: bool
    ) -> tuple[Array, Array]:
        """Plays as `episodes.run_episodes` does, the same episodes for every member."""
        return self.player(num_episodes, deterministic)(learners, key)

    def player(self, num_episodes: int, deterministic: bool) -> Any:
        """Returns the program of `run_episodes`, a function of learners and a key."""
        how = num_episodes, deterministic
        return self._compiled.get(EPISODES.format(*how)) or self._player(*how)

    @functools.cache  # noqa: B019  A layout lives as long as its process.
    def _player(self, num_episodes: int, deterministic: bool) -> Any:
        def play(learners, key):
            def one(learner):
                return episodes.run_episodes(learner, key, num_episodes, deterministic)

            return tree.each(one, (0,))(learners)

        return jax.jit(self._each(play, (MEMBERS, TOGETHER), MEMBERS))

    def run_against(
        self, opponent: Opponent, radii: Array, learner: Learner, key: Key, *how: Any
    ) -> tuple[Array, Array]:
        """Plays as `episodes.returns_against` does, with all radii in one program."""
        return episodes.returns_at(radii, opponent, learner, key, *how)

    def close(self) -> None:
        """Ends the simulators beside the devices, if there are any."""

    def place(self, population: Population) -> Population:
        """Returns the members; leaves that are out of place are moved."""
        return jax.device_put(population, self._lies)

    def fetch(self, values: PyTree) -> PyTree:
        """Returns every leaf whole, on the host of every process."""
        if self._mesh.is_multi_process:
            values = self._everywhere(values)
        return jax.device_get(values)

    def put(self, values: np.ndarray) -> Array:
        """Puts a host's values on all devices: those of process 0, if they differ."""
        return jax.device_put(distributed.agreed(values), self._on(TOGETHER))

    def _on(self, places: PyTree) -> PyTree:
        return jax.tree.map(lambda axes: NamedSharding(self._mesh, axes), places)

    def _each(self, function: Any, in_specs: Any, out_specs: Any) -> Any:
        """Maps a function over the devices, each with its share of the members."""
        return jax.shard_map(
            function,
            mesh=self._mesh,
            in_specs=in_specs,
            out_specs=out_specs,
            check_vma=False,
        )


def _same(values: PyTree) -> PyTree:
    return values


def layout_of(config: Config, num_members: int) -> Layout:
    """Returns the layout of an experiment over all devices that take equal shares.

    Raises:
        JobError: If devices and processes cannot take equal shares.
    """
    per_member = config.devices_per_member or worthwhile(config, num_members)
    steps = config.steps_per_update // config.num_minibatches // per_member
    return over_all_devices(num_members, per_member, steps)


def worthwhile(config: Config, num_members: int) -> int:
    """Returns the number of devices of a member, for experiments that give none.

    On a CPU these are cores that would be left over. More cores communicate longer, so
    each needs `STEPS` of a minibatch per core of its member. The randomness of attacks
    depends on how a member is shared: if there are attacks, it has one device.
    """
    attacked = config.opponent is not None or config.adversary is not None
    if attacked or jax.default_backend() != "cpu":
        return 1
    cores = jax.local_device_count()
    most = cores // math.gcd(cores, num_members // jax.process_count())
    steps = config.steps_per_update // config.num_minibatches
    chunks = steps // config.chunk

    def pays(devices: int) -> bool:
        equal = config.num_envs % devices == 0 and chunks % devices == 0
        return equal and steps >= STEPS * devices**2

    return max([n for n in range(2, most + 1) if pays(n)], default=1)


@functools.cache
def over_all_devices(
    num_members: int, per_member: int = 1, steps: float = math.inf
) -> Layout:
    """Returns a layout over all devices that take equal shares, as many per process.

    Args:
        num_members: The size of the population.
        per_member: Devices that share the environments of a member; they are of several
            processes if one process has too few.
        steps: Steps of a minibatch on one device.

    Raises:
        JobError: If devices and processes cannot take equal shares.
    """
    own, processes = jax.local_device_count(), jax.process_count()
    crew = -(-per_member // own)
    """Number of processes that share a member, or 1."""
    if processes % crew or (crew > 1 and per_member % own):
        raise distributed.JobError(
            f"Config.devices_per_member = {per_member}: expected up to {own}, or a "
            f"multiple of it, of the {processes * own} devices that there are"
        )
    crews = processes // crew
    if num_members % crews:
        raise distributed.JobError(
            f"{num_members} members: expected a multiple of the {crews} processes"
            + (f" of {crew} each" if crew > 1 else "")
        )
    groups = counting.divisors(num_members // crews)
    most = max(n for n in groups if n * per_member <= crew * own)
    devices: dict[int, list] = {}
    for device in jax.devices():
        devices.setdefault(device.process_index // crew, []).append(device)
    used = [device for ours in devices.values() for device in ours[: most * per_member]]
    return Layout(used, per_member, steps)


@functools.cache
def on_one_device() -> Layout:
    """Returns a layout of all members on the first device of this process."""
    return Layout(jax.local_devices()[:1])
