"""Members with own settings and seeds, grouped into as few programs as possible."""

import dataclasses
import math
import warnings
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np
from jax.tree_util import Partial

from ppo_jax import component
from ppo_jax.config import Config
from ppo_jax.errors import UserError
from ppo_jax.host.devices import mesh, simulation, streams
from ppo_jax.host.loop import phases, readiness, stopping, training
from ppo_jax.host.loop.training import Ended, Steer
from ppo_jax.host.process.console import Console
from ppo_jax.host.run_dir import presence
from ppo_jax.host.run_dir.recording import Folder
from ppo_jax.ppo import population as populations
from ppo_jax.state import Population
from ppo_jax.types import Array


class Member(NamedTuple):
    """An agent to train."""

    setting: int
    """The number of its setting."""
    seed: int
    config: Config
    """The experiment with that setting."""

    @property
    def alone(self) -> Config:
        """The experiment of this member, with its seed."""
        return with_seed(self.config, self.seed)


def seeds(config: Config, count: int) -> range:
    """Returns the seeds of `count` runs, counted from that of an experiment.

    Raises:
        UserError: If fewer seeds are left.

    >>> list(seeds(Config("CartPole-v1", seed=5), 2))
    [5, 6]
    """
    found = range(config.seed, config.seed + count)
    if found.stop > 2**32:
        raise UserError(
            f"--seeds: {count} seeds from {config.seed} on reach {found[-1]}, but the "
            "last seed that there is is 2³² − 1"
        )
    return found


def with_seed(config: Config, seed: int) -> Config:
    """Returns an experiment with another seed."""
    with warnings.catch_warnings(action="ignore"):  # `config` has warned.
        return dataclasses.replace(config, seed=seed)


def group(members: Sequence[Member]) -> list[list[Member]]:
    """Groups members by structure; all members of a structure share a program.

    >>> import dataclasses
    >>> short, long = Config("CartPole-v1"), Config("CartPole-v1", num_epochs=8)
    >>> other = dataclasses.replace(short, gamma=0.5)
    >>> members = [Member(i, 0, x) for i, x in enumerate((short, long, other))]
    >>> [[member.setting for member in each] for each in group(members)]
    [[0, 2], [1]]
    """
    groups: dict[Any, list[Member]] = {}
    for member in members:
        groups.setdefault(jax.tree.structure(member.config), []).append(member)
    return list(groups.values())


def alike(one: Member, other: Member) -> bool:
    """Returns whether members share a structure."""
    return len(group([one, other])) == 1


def require_known(groups: Iterable[Sequence[Member]]) -> None:
    """Checks that each program will report the metrics that may stop its members.

    Raises:
        ExperimentError: If one will not; the message names the closest metric.
    """
    for members in groups:
        config = members[0].config
        size = len(members) * config.num_members
        stopping.require_known(_alone(config), size)


def split(members: list[Member], size: int) -> list[list[Member]]:
    """Splits members into batches of one size, so that one program serves all batches.

    The last batch is filled up by repeating its last member.

    >>> split([1, 2, 3, 4, 5], 3)
    [[1, 2, 3], [4, 5, 5]]
    """
    batches = [members[i : i + size] for i in range(0, len(members), size)]
    missing = size - len(batches[-1])
    return [*batches[:-1], batches[-1] + [members[-1]] * missing]


def even(config: Config, count: int) -> int:
    """Returns how many members, `count` at least, keep the devices busy most evenly.

    Devices take equal shares: of 5 members on 4 devices one would have all, of 6 three
    have two each. A bound that stops a run by the median counts each member once, so
    there nobody is repeated.
    """
    if config.stop_at:
        return count

    def share(count: int) -> float:
        layout = simulation.layout_of(config, count * config.num_members)
        return count / len(layout.devices)

    return min(range(count, count + jax.local_device_count()), key=share)


def largest_batch(members: list[Member], room: float) -> tuple[int, float]:
    """Returns how many members fit into memory at once.

    Compiles their program: once, if all of them fit. A compiler may refuse a program
    that is too large for its device; this counts as a need of twice the room.

    Args:
        members: Members of one structure.
        room: Bytes of a device.

    Returns:
        The size of equal batches, at least 1, and the bytes that one batch needs.

    Raises:
        JaxRuntimeError: If the compiler refuses the program of a single member.
    """
    size = even(members[0].config, len(members))
    while (needed := _needed(split(members, size)[0], room)) > room and size > 1:
        most = max(1, int(size * room / needed))
        size = math.ceil(len(members) / math.ceil(len(members) / most))
    return size, needed


def _needed(members: Sequence[Member], room: float) -> float:
    try:
        return memory(members)
    except jax.errors.JaxRuntimeError as error:
        if len(members) == 1 or "RESOURCE_EXHAUSTED" not in str(error):
            raise
        return 2 * room


def memory(members: Sequence[Member]) -> int:
    """Returns the bytes that a phase of these members needs on a device.

    The number comes from the compiled program, which training later finds compiled.
    Devices of a CPU share one memory, so their needs are added.
    """
    single = [
        member._replace(config=_alone(member.config).outline)
        for member in members
        for _ in range(member.config.num_members)
    ]
    config, shapes = single[0].config, jax.eval_shape(begin(single))
    layout = mesh.layout_of(config, shapes.fitness.size)
    phase = readiness.needed(config, layout, shapes)[0]
    bytes_of: Any = phase.lower().compile().memory_analysis()
    sharing = len(layout.devices) if layout.devices[0].platform == "cpu" else 1
    return sharing * (
        bytes_of.argument_size_in_bytes
        + bytes_of.output_size_in_bytes
        + bytes_of.temp_size_in_bytes
        - bytes_of.alias_size_in_bytes
    )


def begin(members: Sequence[Member]) -> Partial:
    """Returns a function that makes these members before their first update.

    Each member begins as if it were trained alone. A member whose experiment has a
    population stands for all of its members, one after the other.
    """
    configs = [component.program(member.config, "pbt") for member in members]
    config = jax.tree.map(lambda *each: np.array(each, np.float32), *configs)
    return Partial(_begun, config, np.array([x.seed for x in members], np.uint32))


def _begun(config: Config, seeds: Array, *_: Any) -> Population:
    """Makes the members of a structure, with numbers `[M]` and seeds `[M]`."""
    pbt, size = config.pbt, config.num_members
    config = jax.tree.map(lambda x: x.repeat(size), component.program(config))
    keys = jax.vmap(lambda seed: streams.members(seed, size))(seeds)
    if pbt is not None:
        first = jax.vmap(lambda seed: streams.generation(seed, 0, size))(seeds)
        config = pbt.space.write(config, jax.vmap(pbt.space.sample)(first.reshape(-1)))
    return populations.init(config, keys.reshape(-1))


def train(
    members: Sequence[Member],
    run_dir: Path,
    hint: str,
    console: Console,
    steer: Steer = training.UNSTEERED,
) -> Ended:
    """Trains members of one structure, or resumes them; see `training.train`.

    That function sees no populations here: `steer` has to evolve them.
    """
    record = Folder(run_dir, resumes=run_dir.exists())
    with presence.alone(run_dir):
        return training.train(
            _alone(members[0].config),
            record,
            console,
            hint,
            begin=begin(members),
            steer=steer,
        )


def endings(members: Sequence[Member], ended: Ended) -> list[str]:
    """Returns how each member ended, whose batch goes on while one of them learns."""
    counters = ended.layout.fetch(ended.population.runs.counters)
    failed = counters.failure_streak >= members[0].config.max_failures
    return [
        "failed" if all(each) else ended.ending
        for each in failed.reshape(len(members), -1)
    ]


def _alone(config: Config) -> Config:
    """Returns an experiment without its population, in phases of the same length."""
    if config.pbt is None:
        return config
    with warnings.catch_warnings(action="ignore"):  # `config` has warned.
        length = phases.length(config)
        return dataclasses.replace(config, pbt=None, phase_updates=length)
