"""One number that is not finite, in a run that learns: it goes on, and says why."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from ppo_jax import networks, optimizers, terms
from ppo_jax.component import component, replace_at
from ppo_jax.config import Config
from ppo_jax.envs.env import NEVER, Discrete, Env, outcome
from ppo_jax.envs.faults import Faulty
from ppo_jax.networks.distributions import Categorical
from ppo_jax.normalization.advantages import OverAll
from ppo_jax.ppo import population
from ppo_jax.schedules import Progress

NAN, INF = float("nan"), float("inf")
ENVS, STEPS, EPOCHS, MINIBATCHES = 4, 8, 2, 4


@component
class Clock(Env):
    """Shows the time, which never ends, and pays for the action 1."""

    @property
    def action_space(self):
        return Discrete(2)

    @property
    def min_steps_to_truncation(self):
        return NEVER

    def reset(self, key):
        return jnp.zeros(2), jnp.zeros((), jnp.int32)

    def transition(self, key, state, action):
        obs = jnp.stack([(state + 1) / 8, jnp.sin(state + 1.0)])
        reward = action + 0.5 * jax.random.normal(key)
        return outcome(obs, reward), state + 1


@component
class Struck(OverAll):
    """Adds to the advantage of one step."""

    amount: float = 0.0

    def __call__(self, advantage, weight, group):
        advantage, flat = super().__call__(advantage, weight, group)
        return advantage.at[2, 1].add(self.amount), flat


@component
class Crossed(Config):
    """Adds to a logit at one time: when acting, in sequences of 1, or in learning."""

    acting: float = 0.0
    learning: float = 0.0

    def build(self):
        network = super().build()

        def apply(params, carry, obs, reset, action_mask=None):
            out = network.apply(params, carry, obs, reset, action_mask)
            amount = self.acting if obs.shape[0] == 1 else self.learning
            struck = jnp.abs(obs[..., 0] - 5 / 8) < 1e-3
            added = jnp.where(struck, amount, 0.0)
            logits = out.policy.logits.at[..., 0].add(added)
            return out._replace(policy=Categorical(logits))

        return network._replace(apply=apply)


CONFIG = Crossed(
    env=Faulty(Clock(), reward=NAN, rate=0.0),
    num_envs=ENVS,
    num_steps=STEPS,
    num_epochs=EPOCHS,
    num_minibatches=MINIBATCHES,
    chunk_length=4,
    network=networks.ActorCritic(torso=networks.Mlp(hidden=(8,))),
    standardization=Struck(),
    terms=(terms.Surrogate(), terms.Value(), terms.Entropy()),
    optimizer=optimizers.Adam(learning_rate=1e-2),
)


def lived(numbers=(), broken=None, updates=3):
    """Parameters before and after, and metrics `[updates]`, of a run with a fault."""
    config = CONFIG
    for path, number in dict(numbers).items():
        config = replace_at(config, path, number)
    members = population.init(config, jax.random.split(jax.random.key(0), 1))
    runs = members.runs
    if broken is not None:
        state = runs.actor.env_state
        state = state._replace(start=state.start.at[0, broken].set(5))
        runs = runs.replace(actor=runs.actor.replace(env_state=state))
        members = members.replace(runs=runs)
    before = jax.tree.map(np.asarray, runs.learner.params)
    members, said = population.advance(
        members, Progress.at(np.zeros(updates)), jnp.int32(updates)
    )
    learner, said = jax.device_get((members.runs.learner, said))
    kept = (learner.params, learner.opt_state, learner.return_scale)
    assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(kept))
    return before, learner.params, {name: x[:, 0] for name, x in said.items()}


def assert_learned(before, after):
    for old, new in zip(jax.tree.leaves(before), jax.tree.leaves(after), strict=True):
        assert (old != new).any()


ERRORS = (
    "error/quarantined_steps",
    "error/skipped_steps",
    "error/nonfinite_loss",
    "error/nonfinite_grad",
    "error/log_ratio_nan_count",
    "error/log_ratio_inf_count",
    "error/failure_streak",
)


def counted(said):
    """What is not 0, over the updates."""
    return {name: said[name].tolist() for name in ERRORS if said[name].any()}


def test_a_healthy_run_counts_nothing():
    before, after, said = lived()
    assert_learned(before, after)
    assert counted(said) == {}


def test_one_reward_that_is_nan():
    """R-D19: its step is left out and counted; every optimiser step is taken."""
    before, after, said = lived(broken=2)
    assert_learned(before, after)
    assert counted(said) == {"error/quarantined_steps": [1, 0, 0]}
    assert (said["train/n_minibatches_done"] == EPOCHS * MINIBATCHES).all()


@pytest.mark.parametrize("amount", [NAN, INF])
def test_one_logit_that_is_not_finite_when_acting(amount):
    """R-D19: what a broken policy did at one time is learned by nobody."""
    before, after, said = lived({"acting": amount})
    assert_learned(before, after)
    assert counted(said) == {"error/quarantined_steps": [ENVS, 0, 0]}


def test_one_logit_that_is_nan_in_learning():
    """R-D6, R-D19: steps with such an example are no-ops, one per example counted."""
    before, after, said = lived({"learning": NAN})
    assert_learned(before, after)
    found = counted(said)
    skipped = found.pop("error/skipped_steps")
    assert found.pop("error/log_ratio_nan_count") == [ENVS * EPOCHS, 0, 0]
    assert 0 < skipped[0] <= EPOCHS * MINIBATCHES and skipped[1:] == [0, 0]
    assert found.keys() <= {
        "error/nonfinite_loss",
        "error/nonfinite_grad",
        "error/failure_streak",
    }
    done = said["train/n_minibatches_done"] + said["error/skipped_steps"]
    assert (done == EPOCHS * MINIBATCHES).all()


@pytest.mark.parametrize("amount", [NAN, INF, -INF])
def test_one_advantage_that_is_not_finite(amount):
    """R-D19: the one optimiser step of each epoch that it is in is a no-op."""
    before, after, said = lived({"standardization.amount": amount})
    assert_learned(before, after)
    assert (said["error/nonfinite_loss"] == EPOCHS).all()
    assert (said["error/skipped_steps"] == EPOCHS).all()
    assert (said["train/n_minibatches_done"] == EPOCHS * (MINIBATCHES - 1)).all()
    assert not said["error/failure_streak"].any()
    assert not said["error/quarantined_steps"].any()
