"""Agents that devices share: `crew.py DEVICES FILE`.

Trains each of `CONFIGS` for three updates over so many devices of this process, plays
some episodes, and writes what members, metrics and episodes came to.
"""

import dataclasses
import sys

import jax
import jax.numpy as jnp
import numpy as np
import on_devices

from ppo_jax import controllers, critics, networks, terms
from ppo_jax.attacks import adversaries, opponents
from ppo_jax.envs import Faulty, ResetPool
from ppo_jax.envs.probes import RecallCue, Target, TimeLimitChain
from ppo_jax.host import mesh, streams
from ppo_jax.metrics.explained import Appraisal
from ppo_jax.normalization.return_scale import ReturnNormalization
from ppo_jax.ppo import population
from ppo_jax.schedules import Progress

SMALL = networks.Mlp(hidden=(8,))
PLAIN = dataclasses.replace(
    on_devices.CONFIG, num_envs=8, early_stop=controllers.EarlyStop(), pbt=None
)
MEMORY = networks.ActorCritic(torso=SMALL, memory=networks.Lstm(size=4))
CONFIGS = {
    "all at once": dataclasses.replace(
        PLAIN,
        env=Faulty(TimeLimitChain(limit=3), reward=jnp.nan, rate=0.5, after=4),
        network=MEMORY,
        chunk_length=4,
        num_microbatches=4,
        obs_clip=5.0,
        return_scale=ReturnNormalization(),
        critic=critics.Quantile(4),
        num_critics=2,
        terms=(terms.Surrogate(), terms.Value(), terms.Entropy()),
        early_stop=controllers.KlStop(target=0.5),
        holdout_envs=2,
        appraisal=Appraisal(),
    ),
    "minibatches of two sequences": dataclasses.replace(
        PLAIN, env=ResetPool(RecallCue(), size=1), network=MEMORY, num_minibatches=4
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
EPISODES = {name: (8,) for name in CONFIGS} | {"all at once": (8, 6)}
"""How many are played at once; six have no equal shares of four devices."""


def live(config, episodes):
    """Two members after three updates, the metrics of them, and returns of episodes."""
    keys = streams.members(config.seed, MEMBERS)
    layout = mesh.layout_of(config, len(keys))
    members = layout.making(lambda config, _: population.init(config, keys), config)()
    progress = Progress.at(np.linspace(0.0, 0.5, 3))
    members, metrics = layout.advance(members, progress, np.int32(3))
    returns = [
        layout.run_episodes(members.runs.learner, jax.random.key(5), count, False)[0]
        for count in episodes
    ]
    return layout.fetch((members, metrics.unpack(), *returns))


def main(devices, path):
    jax.config.update("jax_num_cpu_devices", int(devices))
    jax.config.update("jax_numpy_rank_promotion", "raise")
    ended = {}
    for name, config in CONFIGS.items():
        config = dataclasses.replace(config, devices_per_member=int(devices))
        came_to = live(config, EPISODES[name])
        for place, leaf in jax.tree_util.tree_leaves_with_path(came_to):
            ended[f"{name}: {jax.tree_util.keystr(place)}"] = on_devices.plain(leaf)
    np.savez(path, **ended)


if __name__ == "__main__":
    main(*sys.argv[1:])
