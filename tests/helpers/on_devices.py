"""A population on devices of one process: `on_devices.py FILE`.

Writes the members after ten updates and two generations on each of `LAYOUTS`, and
prints the number of compilations and the communication of the programs.
"""

import dataclasses
import json
import sys

import jax
import numpy as np

from ppo_jax import PBT, Config, LogUniform, NearOne, controllers, networks, terms
from ppo_jax.envs import ResetPool
from ppo_jax.envs.probes import TimeLimitChain
from ppo_jax.host.devices import mesh, streams
from ppo_jax.host.loop import training
from ppo_jax.ppo import population
from ppo_jax.schedules import Progress

LAYOUTS = {"alone": (1, 1), "apart": (8, 1), "shared": (8, 4)}
"""The number of devices, and how many of them share a member."""
SIZE = 8
RATE = "optimizer.learning_rate"
COLLECTIVES = ("all-reduce", "all-gather", "all-to-all", "permute", "reduce-scatter")
CONFIG = Config(
    env=ResetPool(TimeLimitChain(limit=5, negative=0.5), size=1),
    num_envs=4,
    num_steps=8,
    num_epochs=2,
    num_minibatches=16,
    network=networks.ActorCritic(torso=networks.Mlp(hidden=())),
    terms=(terms.Surrogate(), terms.Value()),
    early_stop=controllers.KlStop(target=0.02),
    total_timesteps=3200,
    pbt=PBT({RATE: LogUniform(1e-4, 1e-2), "gamma": NearOne(0.9, 0.99)}, size=SIZE),
)
"""Minibatches have two steps, which four devices cannot share."""


def live(layout, members, compiled):
    """Runs ten updates and two generations, and gives members other numbers twice.

    Args:
        layout: The layout of the members.
        members: The members.
        compiled: Returns how many programs have been compiled so far.

    Returns:
        The members, and the number of programs after each phase.
    """
    counts = []
    for phase, updates in enumerate((3, 3, 3, 1)):
        progress = Progress.at(np.linspace(0.1 * phase, 0.5, 3))
        members, metrics = layout.advance(members, progress, np.int32(updates))
        layout.fetch(metrics)
        if phase < 2:
            fitness = layout.put(np.roll(np.arange(SIZE, dtype=np.float32), phase))
            members = dataclasses.replace(members, fitness=fitness)
            keys = streams.generation(CONFIG.seed, phase, CONFIG.num_members)
            members, generation = layout.evolve(CONFIG.pbt, members, keys)
            layout.fetch(generation)
            numbers = {
                RATE: 1e-3 * (1 + phase),
                "terms.surrogate.clip_eps": 0.1 + 0.1 * phase,
            }
            members = layout.place(population.with_numbers(members, numbers))
        counts.append(compiled())
    return members, counts


def communicates(program, *arguments):
    text = program.lower(*arguments).compile().as_text()
    return [name for name in COLLECTIVES if name in text]


def lives(devices, per_member, compiled):
    """Runs the same beginning twice; returns the members at the end, and findings."""
    config = dataclasses.replace(CONFIG, devices_per_member=per_member)
    layout = mesh.layout_of(config, SIZE) if devices > 1 else mesh.on_one_device()
    assert len(layout.devices) == devices
    begin = layout.making(training.start, config)
    members, progress = begin(), Progress.at(np.zeros(3))
    keys = streams.generation(CONFIG.seed, 0, SIZE)
    said = {
        "advance": communicates(layout.advance, members, progress, np.int32(3)),
        "evolve": communicates(layout.evolve, CONFIG.pbt, members, keys),
    }
    both = [live(layout, one, compiled) for one in (members, begin())]
    ends = [
        [plain(leaf) for leaf in jax.tree.leaves(layout.fetch(end))] for end, _ in both
    ]
    said["same again"] = all(map(np.array_equal, *ends))
    said["compiled"] = [counts for _, counts in both]
    return ends[0], said


def main(path):
    most = max(devices for devices, _ in LAYOUTS.values())
    jax.config.update("jax_num_cpu_devices", most)
    jax.config.update("jax_numpy_rank_promotion", "raise")
    names = []
    jax.monitoring.register_event_duration_secs_listener(
        lambda name, *_, **__: names.append(name)
    )

    def compiled():
        return names.count("/jax/core/compile/backend_compile_duration")

    ended, told = {}, {}
    for name, layout in LAYOUTS.items():
        arrays, told[name] = lives(*layout, compiled)
        ended |= {f"{name} {i}": x for i, x in enumerate(arrays)}
    np.savez(path, **ended)
    print(json.dumps(told))


def plain(leaf):
    key = jax.dtypes.issubdtype(leaf.dtype, jax.dtypes.prng_key)
    return np.asarray(jax.random.key_data(leaf) if key else leaf)


if __name__ == "__main__":
    main(*sys.argv[1:])
