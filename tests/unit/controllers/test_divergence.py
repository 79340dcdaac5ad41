"""The divergence in closed form, of every kind of policy, through real updates."""

from typing import Any, NamedTuple

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from tabular import drawn

from ppo_jax import networks, optimizers, terms
from ppo_jax.component import component, replace_at
from ppo_jax.config import Config
from ppo_jax.controllers import ClosedForm, KlPid, KlStop
from ppo_jax.envs.faults import Faulty
from ppo_jax.envs.probes import RecallCue, Target, TwoDigits
from ppo_jax.networks.distributions import Categorical, MultiCategorical
from ppo_jax.ppo import learner
from ppo_jax.ppo.batch import assemble
from ppo_jax.ppo.objective import forward
from ppo_jax.ppo.update import update
from ppo_jax.schedules import Progress


@component
class Patient(RecallCue):
    """Cues are allowed one after the other."""

    def action_mask(self, state):
        return jnp.arange(self.num_cues) <= state.time


def broken(rate):
    nan = float("nan")
    return Faulty(Target(size=2), reward=nan, obs=nan, rate=rate)


POLICIES = {
    "some actions forbidden, and a memory": (
        Patient(delay=2, num_cues=3),
        {"memory": networks.Gru(size=4)},
    ),
    "several choices": (TwoDigits(), {}),
    "real actions": (broken(rate=0.0), {}),
    "squashed actions": (Target(size=2), {"head": networks.TanhHead()}),
}


def experiment(env, **network):
    """Two full-batch steps in an update; a target below 0 ends it after the first."""
    penalty = terms.KlPenalty(KlPid(0.02, initial=0.5), ClosedForm())
    return Config(
        env,
        num_steps=8,
        num_epochs=2,
        num_minibatches=1,
        network=networks.ActorCritic(torso=networks.Mlp(hidden=()), **network),
        terms=(terms.Surrogate(), penalty),
        early_stop=KlStop(1e9, absolute=1.0, share=None, divergence=ClosedForm()),
        optimizer=optimizers.Sgd(learning_rate=3.0, max_grad_norm=None),
    )


class Update(NamedTuple):
    learner: Any
    metrics: Any
    acted: Any
    """The policies of its rollout, per example."""
    others: Any
    """Those of the parameters in question."""
    quarantined: Any
    """How many of its steps were not finite."""


@jax.jit
def updated(run, params):
    """An update, and what the policies of some parameters are in it."""
    progress = Progress.at(0.0)
    begun, key, _, steps, carries = learner.lived(run, progress)
    batch, *_ = assemble(begun.learner, key, steps, carries)
    after, result = update(begun.learner, batch, key, progress)
    swap = jax.tree.map(lambda x: x.swapaxes(0, 1), batch._replace(carry=()))
    rows = swap._replace(carry=batch.carry)
    others = forward(run.learner.config.build(), params, rows).policy
    quarantined = jnp.sum(~steps.valid)
    return Update(after, result.metrics, rows.old_policy, others, quarantined)


def divergence(old, new):
    """KL(old ‖ new) per example, in float64 from the definition."""
    if isinstance(old, MultiCategorical):
        pairs = zip(old.logits, new.logits, strict=True)
        return sum(divergence(Categorical(p), Categorical(q)) for p, q in pairs)
    if isinstance(old, Categorical):
        p, q = (np.exp(np.asarray(x.logits, np.float64)) for x in (old, new))
        p, q = (x / x.sum(axis=-1, keepdims=True) for x in (p, q))
        return np.sum(p * np.log(np.where(p > 0, p, 1) / np.where(p > 0, q, 1)), -1)
    m, s, mu, sigma = (
        np.asarray(x, np.float64) for x in (old.loc, old.scale, new.loc, new.scale)
    )
    apart = (s**2 + (m - mu) ** 2) / (2 * sigma**2)
    return np.sum(np.log(sigma / s) + apart - 0.5, axis=-1)


@pytest.mark.parametrize("name", POLICIES)
def test_the_divergence_of_every_policy(name):
    """PROP-7.6: 0 in the first step, in the second that of what the first made."""
    env, network = POLICIES[name]
    begun = drawn(experiment(env, **network))
    config = replace_at(begun.learner.config, "early_stop.target", jnp.float32(-1.0))
    alone = begun.replace(learner=begun.learner.replace(config=config))
    short = updated(alone, begun.learner.params)
    assert short.metrics["train/n_minibatches_done"] == 1
    chex.assert_trees_all_close(short.metrics["train/kl"], 0.0, rtol=0, atol=1e-6)
    whole = updated(begun, short.learner.params)
    assert whole.metrics["train/n_minibatches_done"] == 2
    kl = divergence(whole.acted, whole.others).mean()
    assert kl > 1e-4
    chex.assert_trees_all_close(whole.metrics["train/kl"], kl / 2, rtol=2e-3)


def test_a_quarantined_step_has_no_divergence():
    """R-A20: a penalty in closed form learns beside steps that are not finite."""
    begun = drawn(experiment(broken(rate=0.3)), seed=1)
    after, metrics, *_, quarantined = updated(begun, begun.learner.params)
    assert quarantined > 0 and metrics["error/skipped_steps"] == 0
    assert metrics["train/n_minibatches_done"] == 2 and metrics["train/kl"] > 0
    chex.assert_tree_all_finite(after.params)
