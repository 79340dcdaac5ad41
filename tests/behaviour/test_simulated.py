"""What simulators say beside rewards: what is allowed, and what a step costs."""

import dataclasses

import jax
import numpy as np

import ppo_jax
from ppo_jax import Config, networks, optimizers, terms

LIMIT = 0.25
CONSTRAINT = terms.CVaRConstraint(
    alpha=1.0, quantity=terms.Costs(), limit=-LIMIT, learning_rate=0.1, max_dual=0.0
)
CONFIG = Config(
    "gymnasium/gyms:Tolls-v0",
    num_envs=32,
    num_steps=8,
    num_epochs=2,
    num_minibatches=2,
    network=networks.ActorCritic(torso=networks.Mlp(hidden=(8,)), shared=True),
    terms=(terms.Surrogate(), terms.Value(), CONSTRAINT),
    optimizer=optimizers.Adam(learning_rate=1e-2),
    phase_updates=5,
    eval_episodes=8,
)


def trained(max_dual, updates):
    """A training in which nobody was lost."""
    constraint = dataclasses.replace(CONSTRAINT, max_dual=max_dual)
    changed = (terms.Surrogate(), terms.Value(), constraint)
    config = dataclasses.replace(CONFIG, terms=changed, total_timesteps=256 * updates)
    ended = ppo_jax.fit(config, quiet=True)
    assert ended.ending == "finished"
    return ended


def costs(ended):
    """The mean cost of a step in each phase."""
    return [row["rollout/cost_mean"] for row in ended.rows]


def test_a_constraint_on_what_steps_cost_is_kept():
    """Whoever minds no cost pays at every step, for that is what pays."""
    heedless = trained(max_dual=0.0, updates=20)
    assert costs(heedless)[-1] > 0.9
    assert heedless.rows[-1]["train/cvar_lambda"] == 0
    bound = trained(max_dual=1.0, updates=60)
    assert max(costs(bound)) > 0.8 and max(costs(bound)[-2:]) < LIMIT
    assert bound.rows[-1]["train/cvar_lambda"] > 0


def test_what_is_forbidden_is_never_done():
    """While learning, sampling and playing; agents say themselves what they may do."""
    begun = trained(max_dual=0.0, updates=4)
    assert begun.evaluate(64, sample=True)["episodes"] == 64
    policy = begun.policy
    allowed = np.tile([False, False, True], (4, 1))
    state, obs = policy.init(n=4), np.ones((4, 1), np.float32)
    action, _ = jax.jit(policy.act)(state, obs, mask=allowed)
    assert action.tolist() == [2] * 4
