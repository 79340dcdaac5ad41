"""Agents that devices share: `crew.py FILE`.

Trains the same members of each of `CONFIGS` for three updates, on one device of this
process and over four, plays some episodes, and writes what members, metrics and
episodes came to.
"""

import dataclasses
import sys

import jax
import jax.numpy as jnp
import numpy as np
import on_devices

from ppo_jax import controllers, networks, terms
from ppo_jax.attacks import adversaries, opponents
from ppo_jax.envs import Faulty, ResetPool
from ppo_jax.envs.probes import Target, TimeLimitChain
from ppo_jax.host import mesh, streams
from ppo_jax.metrics.explained import Appraisal
from ppo_jax.normalization.return_scale import ReturnNormalization
from ppo_jax.ppo import population
from ppo_jax.schedules import Progress

PLAIN = dataclasses.replace(
    on_devices.CONFIG, num_envs=8, early_stop=controllers.EarlyStop(), pbt=None
)
MEMORY = networks.ActorCritic(
    torso=networks.Mlp(hidden=(8,)), memory=networks.Lstm(size=4)
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
    "minibatches of two steps": dataclasses.replace(
        PLAIN, env=ResetPool(PLAIN.env, size=1), num_minibatches=32
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
DEVICES = (1, 4)
EPISODES = {"all at once": (8, 6)}
"""How many are played at once; six have no equal shares of four devices."""


def lives(config, episodes):
    """Two members after three updates, the metrics of them, and returns of episodes.

    By the number of devices.
    """
    keys = streams.members(config.seed, MEMBERS)
    layouts = {n: mesh.Layout(jax.devices()[:n], per_member=n) for n in DEVICES}
    begin = layouts[1].making(lambda config, _: population.init(config, keys), config)
    return {
        n: live(layout, layout.place(begin()), episodes)
        for n, layout in layouts.items()
    }


def live(layout, members, episodes):
    progress = Progress.at(np.linspace(0.0, 0.5, 3))
    members, metrics = layout.advance(members, progress, np.int32(3))
    returns = [
        layout.run_episodes(members.runs.learner, jax.random.key(5), count, False)[0]
        for count in episodes
    ]
    return layout.fetch((members, metrics.unpack(), *returns))


def main(path):
    jax.config.update("jax_num_cpu_devices", max(DEVICES))
    jax.config.update("jax_numpy_rank_promotion", "raise")
    ended = {}
    for name, config in CONFIGS.items():
        for devices, came_to in lives(config, EPISODES.get(name, ())).items():
            for place, leaf in jax.tree_util.tree_leaves_with_path(came_to):
                where = f"{devices}: {name}: {jax.tree_util.keystr(place)}"
                ended[where] = on_devices.plain(leaf)
    np.savez(path, **ended)


if __name__ == "__main__":
    main(*sys.argv[1:])
