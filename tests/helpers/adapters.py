"""Checks of suites' environments against the suites' own stepping, and in training."""

import dataclasses
import functools

import chex
import jax
import jax.numpy as jnp
import numpy as np
from brief import experiment
from runs import rows
from tabular import drawn

from ppo_jax import PBT, LogUniform, envs, fit, networks, optimizers, train
from ppo_jax.ppo import rollout
from ppo_jax.schedules import Constant


@functools.partial(jax.jit, static_argnums=(0, 1))
def played(env, method, state, actions, key):
    """Returns timesteps `[T]` of a method of an environment, from a state."""

    def once(state, chosen):
        key, action = chosen
        timestep, state = getattr(env, method)(key, state, action)
        return state, timestep

    keys = jax.random.split(key, len(actions))
    return jax.lax.scan(once, state, (keys, jnp.asarray(actions)))[1]


FILE = """
from ppo_jax import Config
from ppo_jax.envs.{module} import {kind}
config = Config({kind}({env_id!r}, {params!r}))
"""


def refused(kind, env_id, params, tmp_path, capsys):
    """Returns the error of `train` for an invalid environment; it has no traceback."""
    path = tmp_path / "experiment.py"
    module = kind.__module__.rpartition(".")[2]
    said = dict(module=module, kind=kind.__name__, env_id=env_id, params=params)
    path.write_text(FILE.format(**said))
    assert train.main([str(path), "--run-dir", str(tmp_path / "run")]) == 2
    text = capsys.readouterr().err
    assert "Traceback" not in text and not (tmp_path / "run").exists()
    return text


def owed(env, final):
    """Checks that truncations use the value of the suite's final observation.

    Args:
        env: An environment that truncates the episodes of a rollout of 8 steps once.
        final: Maps the state before a rollout and the actions to the final observation.
    """
    linear = networks.ActorCritic(torso=networks.Mlp(hidden=()))
    config = experiment(env, num_envs=4, network=linear)
    run = jax.jit(lambda: drawn(config, 1, scale=0.1))()
    lived = jax.jit(rollout.unroll)(run.learner, run.actor, run.key)
    begun, kept = jax.device_get((run.actor.env_state, lived[1]))
    cut = kept.last & ~kept.terminated
    assert cut.sum(axis=0).tolist() == [1] * 4
    apply = jax.jit(run.learner.config.build().apply)
    others = []
    for i, t in enumerate(np.argmax(cut, axis=0)):
        before = jax.tree.map(lambda x, i=i: x[i], begun)
        obs = final(before, kept.action[: t + 1, i])
        one = jax.tree.map(lambda x: np.asarray(x)[None, None], obs)
        out = apply(run.learner.params, (), one, np.zeros((1, 1), bool))
        expected = np.squeeze(out.value.mean())
        chex.assert_trees_all_close(kept.next_value[t, i], expected, rtol=0, atol=1e-6)
        around = kept.value[t : t + 2, i]  # Of what was seen before, and at first.
        others.append(np.abs(around - expected) > 1e-5)
    assert np.any(others, axis=0).all()


def goes_on(env, tmp_path, **space):
    """Checks that a population of four, with pools, resumes to the same bits."""
    search = {"optimizer.learning_rate": LogUniform(1e-4, 1e-2)} | space
    config = experiment(
        envs.ResetPool(env, 2),
        num_envs=2,
        total_timesteps=16 * 6,
        optimizer=optimizers.Adam(schedule=Constant()),
        pbt=PBT(search, size=4, interval=2),
        eval_phases=1,
    )
    half = dataclasses.replace(config, total_timesteps=16 * 2)
    fit(config, tmp_path / "whole", quiet=True)
    fit(half, tmp_path / "parts", quiet=True)
    fit(config, tmp_path / "parts", resume=True, quiet=True)
    whole, parts = (rows(tmp_path / name) for name in ("whole", "parts"))
    assert whole == parts and whole[-1]["step"] == config.total_timesteps
