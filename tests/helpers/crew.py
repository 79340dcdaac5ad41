"""Agents that devices share: `crew.py FILE`.

Trains the same members of each of `CONFIGS` for three updates, on one device of this
process and over four each, plays some episodes, writes members, metrics and returns of
episodes, and prints the communication of the programs.
"""

import dataclasses
import json
import sys

import jax
import jax.numpy as jnp
import numpy as np
import on_devices

from ppo_jax import controllers, networks, terms
from ppo_jax.attacks import adversaries, opponents
from ppo_jax.envs import Faulty
from ppo_jax.envs.probes import Target, TimeLimitChain
from ppo_jax.host.devices import mesh, streams
from ppo_jax.metrics.explained import Appraisal
from ppo_jax.normalization.return_scale import ReturnNormalization
from ppo_jax.ppo import population
from ppo_jax.schedules import Progress

PLAIN = dataclasses.replace(
    on_devices.CONFIG,
    num_envs=8,
    num_minibatches=2,
    early_stop=controllers.EarlyStop(),
    pbt=None,
)
MEMORY = networks.ActorCritic(
    torso=networks.Mlp(hidden=()), memory=networks.Lstm(size=4)
)
CONFIGS = {
    "all at once": dataclasses.replace(
        PLAIN,
        env=Faulty(
            TimeLimitChain(limit=3, negative=0.5), reward=jnp.nan, rate=0.5, after=4
        ),
        network=MEMORY,
        chunk_length=4,
        num_microbatches=4,
        obs_clip=5.0,
        return_scale=ReturnNormalization(),
        num_critics=2,
        terms=(terms.Surrogate(), terms.Value(), terms.Entropy()),
        early_stop=controllers.KlStop(target=0.5),
        holdout_envs=2,
        appraisal=Appraisal(),
    ),
    "attackers that draw nothing": dataclasses.replace(
        PLAIN,
        env=Target(),
        obs_clip=5.0,
        num_microbatches=4,
        opponent=opponents.Opponent(share=0.5),
        adversary=adversaries.Mixed(),
    ),
}
MEMBERS = 2
LAYOUTS = {"alone": (1, 1), "shared": (4 * MEMBERS, 4)}
"""The number of devices, and how many of them share a member."""
EPISODES = {"all at once": (8, 6)}
"""Numbers that are played at once; four devices cannot share six equally."""


def lives(config, episodes):
    """Returns what two members became on each layout, and what they communicated."""
    keys = streams.members(config.seed, MEMBERS)
    layouts = {
        name: mesh.Layout(jax.devices()[:devices], per_member)
        for name, (devices, per_member) in LAYOUTS.items()
    }
    begin = layouts["alone"].making(
        lambda config, _: population.init(config, keys), config
    )
    return {
        name: live(layout, layout.place(begin()), episodes)
        for name, layout in layouts.items()
    }


def live(layout, members, episodes):
    """Returns members after three updates, their metrics, and returns of episodes."""
    phase = Progress.at(np.linspace(0.0, 0.5, 3)), np.int32(3)
    said = on_devices.communicates(layout.advance, members, *phase)
    members, metrics = layout.advance(members, *phase)
    returns = [
        layout.run_episodes(members.runs.learner, jax.random.key(5), count, False)[0]
        for count in episodes
    ]
    members, metrics, *returns = layout.fetch((members, metrics, *returns))
    return (members, metrics.unpack(), *returns), said


def main(path):
    most = max(devices for devices, _ in LAYOUTS.values())
    jax.config.update("jax_num_cpu_devices", most)
    jax.config.update("jax_numpy_rank_promotion", "raise")
    ended, told = {}, {}
    for name, config in CONFIGS.items():
        for layout, (end, said) in lives(config, EPISODES.get(name, ())).items():
            told[f"{layout}: {name}"] = said
            for place, leaf in jax.tree_util.tree_leaves_with_path(end):
                where = f"{layout}: {name}: {jax.tree_util.keystr(place)}"
                ended[where] = on_devices.plain(leaf)
    np.savez(path, **ended)
    print(json.dumps(told))


if __name__ == "__main__":
    main(*sys.argv[1:])
