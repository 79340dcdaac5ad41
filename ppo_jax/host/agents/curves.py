"""Curves of returns over the radius of attacks, which show the cost of attacks."""

from collections.abc import Mapping, Sequence
from contextlib import closing

import jax
import jax.numpy as jnp
import numpy as np

from ppo_jax.attacks.opponents import OPPONENTS
from ppo_jax.host.devices.simulation import on_one_device
from ppo_jax.host.metrics.figures import Line
from ppo_jax.host.process import tables
from ppo_jax.ppo import episodes
from ppo_jax.state import Learner

Curves = dict[str, list[dict[str, float]]]
"""Curves of one agent: by opponent, the statistics of its returns for each ε."""


def play(
    learner: Learner, eps: Sequence[float], num_episodes: int, deterministic: bool
) -> Curves:
    """Returns an agent's curves; starts are the same, all radii are one program."""
    found, key = {}, jax.random.key(0)
    with closing(on_one_device(learner.config)) as layout:
        for name, opponent in OPPONENTS.items():
            radii, how = jnp.asarray(eps, jnp.float32), (num_episodes, deterministic)
            returns, ended = layout.fetch(
                layout.run_against(opponent, radii, learner, key, *how)
            )
            found[name] = [
                episodes.summarize(total) | {"unfinished": int(np.sum(~over))}
                for total, over in zip(returns, ended, strict=True)
            ]
    return found


def table(agents: Mapping[str, Curves], eps: Sequence[float]) -> str:
    """Returns mean and CVaR of the returns as Markdown, a row per agent and opponent.

    >>> curves = {"PGD": [{"mean": 9.0, "cvar_5": 7.5}]}
    >>> print(table({"runs/x": curves}, [0.1]), end="")
    | agent | attack | ε = 0.1 |
    |---|---|---|
    | runs/x | PGD | 9 (7.5) |
    """
    rows = [
        (agent, name, *(f"{x['mean']:.4g} ({x['cvar_5']:.4g})" for x in by_radius))
        for agent, curves in agents.items()
        for name, by_radius in curves.items()
    ]
    return tables.markdown(("agent", "attack", *(f"ε = {x:g}" for x in eps)), rows)


def grid(
    agents: Mapping[str, Curves], eps: Sequence[float]
) -> list[list[tuple[str, dict[str, Line]]]]:
    """Returns panels with titles: an agent per column, means above and CVaR below."""
    return [
        [
            (
                f"{agent}: {title}",
                {
                    name: Line(list(eps), [x[key] for x in by_radius])
                    for name, by_radius in curves.items()
                },
            )
            for agent, curves in agents.items()
        ]
        for key, title in (("mean", "mean return"), ("cvar_5", "CVaR 5 %"))
    ]
