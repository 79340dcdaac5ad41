"""One update through the public function, against an update done by hand."""

import dataclasses
import functools
from typing import Any, NamedTuple

import chex
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from tabular import drawn

from ppo_jax import networks, optimizers, terms
from ppo_jax.attacks.adversaries import Mixed
from ppo_jax.attacks.perturbations import Attack
from ppo_jax.component import component, replace_at
from ppo_jax.config import Config
from ppo_jax.controllers.early_stop import EarlyStop
from ppo_jax.critics import Scalar, ValueDist
from ppo_jax.envs.env import Discrete, Env, outcome
from ppo_jax.networks.distributions import Categorical
from ppo_jax.ppo import diagnostics, learner
from ppo_jax.ppo.batch import advantages, chunks
from ppo_jax.ppo.objective import objective
from ppo_jax.ppo.update import contexts, gather
from ppo_jax.schedules import Bounded, Linear, Progress, Warmup

LINEAR = networks.ActorCritic(torso=networks.Mlp(hidden=()))
FEED_FORWARD = networks.ActorCritic(torso=networks.Mlp(hidden=(8,)))
LSTM = dataclasses.replace(LINEAR, memory=networks.Lstm(size=8))
GRU = dataclasses.replace(LINEAR, memory=networks.Gru(size=8))
ENDS_AT = 5
WEIGHTS = (1.0, 0.5, 0.0)


@component
class Course(Env):
    """Episodes of 2 to 4 steps that terminate, and of 5 that do, are cut, or both.

    Observations are the time / 4 and the length / 8; weights repeat 1, ½, 0.
    """

    @property
    def action_space(self):
        return Discrete(3)

    @property
    def min_steps_to_truncation(self):
        return ENDS_AT

    def reset(self, key):
        length = jax.random.randint(key, (), 2, 8)
        return self.observe(length, 0), (length, jnp.int32(0))

    def observe(self, length, time):
        return jnp.stack([jnp.float32(time) / 4, length / 8])

    def transition(self, key, state, action):
        length, time = state
        timestep = outcome(
            self.observe(length, time + 1),
            reward=action - 0.3 * time,
            terminated=time + 1 >= length,
            truncated=time + 1 >= ENDS_AT,
            weight=jnp.array(WEIGHTS)[time % 3],
        )
        return timestep, (length, time + 1)


def experiment(env, **changes):
    fields = {
        "env": env,
        "num_envs": 4,
        "num_steps": 8,
        "num_epochs": 1,
        "num_minibatches": 1,
        "network": LINEAR,
        "optimizer": optimizers.Sgd(learning_rate=0.1, max_grad_norm=None),
        "total_timesteps": 32_000,
    }
    return Config(**fields | changes)


def three_steps(**changes):
    """An experiment that takes three steps on each rollout."""
    return experiment(
        Course(),
        num_epochs=3,
        gamma=0.9,
        gae_lambda=0.8,
        terms=(terms.Surrogate(0.05), terms.Value(0.7), terms.Entropy(0.3)),
        optimizer=optimizers.Sgd(learning_rate=0.4, max_grad_norm=0.6),
        **changes,
    )


first = functools.partial(drawn, scale=0.3)
live, learn = jax.jit(learner.lived), jax.jit(learner.learned)


@functools.cache
def course():
    """The key and steps of an iteration of `Course`."""
    _, key, _, steps, _ = live(
        first(three_steps(network=FEED_FORWARD, obs_clip=10.0)), Progress.at(0.0)
    )
    return key, steps


def learned(run, progress=0.0, **changes):
    """An update on that, whatever is learned from it; leaves of steps may be others."""
    key, steps = course()
    return learned_from(run, key, steps._replace(**changes), progress)


def learned_from(run, key, steps, progress=0.0):
    """An update on these steps, in one chunk, as if the run's actor had lived them."""
    carries = jax.tree.map(lambda x: x[None], run.actor.carry)
    return learn(run, Progress.at(progress), key, run.actor, steps, carries)


def change(before, after):
    """What became of parameters."""
    runs = jax.device_get((after.learner.params, before.learner.params))
    return jax.tree.map(np.subtract, *runs)


def norm(grads):
    return np.sqrt(sum(np.sum(np.square(x)) for x in jax.tree.leaves(grads)))


@jax.jit
def apply(config, *args):
    return config.build().apply(*args)


@jax.jit
def log_prob(policy, action):
    return policy.log_prob(action)


class Part(NamedTuple):
    """A chunk of a rollout, and what is known of it before the first step."""

    carry: Any
    obs: Any
    reset: Any
    action: Any
    log_prob: Any
    advantage: Any
    target: Any
    weight: Any


@jax.jit
@jax.grad
def gradient(params, config, parts):
    """Of the loss of a rollout, from its definition."""
    losses = jax.vmap(lambda part: _loss(apply(config, params, *part[:3]), part))
    return losses(parts).sum() / parts.weight.sum()


def _loss(out, part):
    ratio = jnp.exp(out.policy.log_prob(part.action) - part.log_prob)
    adv, eps = part.advantage, 0.05
    bounded = jnp.where(adv > 0, jnp.minimum(ratio, 1 + eps), ratio)
    bounded = jnp.where(adv < 0, jnp.maximum(ratio, 1 - eps), bounded)
    policy = out.policy.logits - jax.nn.logsumexp(
        out.policy.logits, axis=-1, keepdims=True
    )
    entropy = -jnp.sum(jnp.exp(policy) * policy, axis=-1)
    error = jnp.mean((out.value.mean() - part.target[..., None]) ** 2, axis=-1)
    each = -adv * bounded + 0.7 * 0.5 * error - 0.3 * entropy
    return jnp.sum(part.weight * each)


def least(out):
    """The lesser of the critics' values, `[T, B]`."""
    return np.asarray(out.value.outputs, np.float64)[..., 0].min(axis=-1)


class ByHand:
    """PPO over a rollout of `Course`, from its definition."""

    def __init__(self, run, steps):
        self.config = run.learner.config
        self.moments = run.learner.obs_moments
        self.steps = steps = jax.device_get(steps)
        old, self.carries = self.play(run.learner.params, run.actor.carry)
        self.old_log_prob = log_prob(old.policy, steps.action)
        self.advantage, self.target = self.advantages(run.learner.params, old)

    def play(self, params, carry):
        """The rollout, observation by observation, and the carry before each."""
        outs, carries = [], []
        for t in range(self.config.num_steps):
            carries.append(carry)
            now = jax.tree.map(lambda x, t=t: x[t : t + 1], self.seen())
            reset = self.steps.reset[t : t + 1]
            out = jax.device_get(apply(self.config, params, carry, now, reset))
            carry = out.carry
            outs.append(out._replace(carry=()))
        carries.append(carry)
        return jax.tree.map(lambda *x: np.concatenate(x), *outs), carries

    def seen(self):
        return self.normalize(self.observed())

    @property
    def normalizes(self):
        return self.config.obs_clip is not None

    def observed(self):
        return self.steps.raw_obs if self.normalizes else self.steps.obs

    def normalize(self, obs):
        if not self.normalizes:
            return obs
        mean, var = self.moments.mean, self.moments.var
        scaled = (np.asarray(obs) - np.asarray(mean)) / np.sqrt(np.asarray(var))
        return np.clip(scaled, -10, 10)

    def advantages(self, params, old):
        """Normalised advantages and targets, step by step in float64."""
        steps, gamma = self.steps, float(self.config.gamma)
        trace = gamma * float(self.config.gae_lambda)
        value = least(old)
        size, num_envs = value.shape
        adv = np.zeros((size + 1, num_envs))
        obs = np.asarray(self.observed())
        for t in reversed(range(size)):
            later = self.values_after(params, t)
            for env in range(num_envs):
                time, length = obs[t, env] * (4, 8)
                ended = time + 1 >= length
                cut = time + 1 >= ENDS_AT
                if ended:
                    following = 0.0
                elif cut or t == size - 1:
                    following = later[env]
                else:
                    following = value[t + 1, env]
                reward = float(steps.action[t, env]) - 0.3 * time
                adv[t, env] = reward + gamma * following - value[t, env]
                if not (ended or cut):
                    adv[t, env] += trace * adv[t + 1, env]
        adv[-1] = 0
        adv, target = adv[:-1], adv[:-1] + value
        self.weight = np.array(WEIGHTS)[np.rint(obs[..., 0] * 4).astype(int) % 3]
        total = self.weight.sum()
        mean = (self.weight * adv).sum() / total
        free = total - (self.weight**2).sum() / total
        std = np.sqrt((self.weight * (adv - mean) ** 2).sum() / free)
        return (adv - mean) / std, target

    def values_after(self, params, t):
        """Of what follows step t in its own episodes, from the carry after step t."""
        obs = np.asarray(self.observed()[t : t + 1]) + np.float32([1 / 4, 0])
        given = self.carries[t + 1], self.normalize(obs), np.zeros(obs.shape[:2], bool)
        return least(apply(self.config, params, *given))[0]

    def parts(self):
        length = self.config.chunk
        if self.config.network.memory is None:
            length = self.config.num_steps
        leaves = (
            *(self.seen(), self.steps.reset, self.steps.action, self.old_log_prob),
            *(np.float32(x) for x in (self.advantage, self.target, self.weight)),
        )
        parts = [
            Part(self.carries[t], *(x[t : t + length] for x in leaves))
            for t in range(0, self.config.num_steps, length)
        ]
        return jax.tree.map(lambda *x: np.stack(x), *parts)

    def parameters(self, params, epochs, step_size, bound):
        params = jax.device_get(params)
        for _ in range(epochs):
            grads = jax.device_get(gradient(params, self.config, self.parts()))
            scale = step_size * min(1.0, bound / norm(grads))
            params = jax.tree.map(lambda p, g, s=scale: p - s * g, params, grads)
        return params


@pytest.mark.parametrize(
    "changes",
    [
        {"network": FEED_FORWARD, "obs_clip": 10.0},
        {"network": LSTM, "chunk_length": 4, "obs_clip": 10.0},
        {"network": GRU, "num_microbatches": 2, "num_critics": 2},
    ],
    ids=["mlp", "lstm", "gru"],
)
def test_two_updates_by_hand(changes):
    """PROP-2.8, R-D17, R-D9, PROP-4.6, PROP-5.1, PROP-16.2, R-E3, R-E9, R-E10, X8.

    Three steps on each rollout: returns, normalised advantages, clipped surrogate,
    value loss, entropy bonus, weights, the bound of the gradient, the learning rate,
    stored carries, and moments that change after they were used.
    """
    run, observed = first(three_steps(**changes)), []
    for progress in map(Progress.at, (0.25, 0.5)):
        before = run
        run, *experience = live(before, progress)
        run, metrics = learn(run, progress, *experience)
        steps = jax.device_get(experience[2])
        hand = ByHand(before, steps)
        assert steps.terminated.any() and (steps.last & ~steps.terminated).any()
        chex.assert_trees_all_close(steps.obs, hand.seen(), rtol=0, atol=1e-5)
        expected = hand.parameters(
            before.learner.params, 3, 0.4 * (1 - progress.course), bound=0.6
        )
        chex.assert_trees_all_close(run.learner.params, expected, rtol=0, atol=2e-5)
        assert norm(change(before, run)) > 0.05
        assert all(np.any(x) for x in jax.tree.leaves(change(before, run)))
        assert metrics["train/clip_fraction"] > 0
        observed.append(np.asarray(hand.observed())[hand.weight > 0])
        if hand.normalizes:
            weights = hand.weight[hand.weight > 0]
            observed[-1] = np.repeat(observed[-1], (2 * weights).astype(int), axis=0)
            rows = np.concatenate(observed)
            chex.assert_trees_all_close(
                run.learner.obs_moments.mean, rows.mean(axis=0), rtol=0, atol=1e-5
            )
            chex.assert_trees_all_close(
                run.learner.obs_moments.var, rows.var(axis=0), rtol=0, atol=1e-5
            )


def learned_badly(run, log_probs):
    """An update on a rollout whose first stored log-probabilities are replaced."""
    _, steps = course()
    stored = np.array(steps.log_prob)
    stored[0] = np.where(np.array(log_probs) == 0, stored[0], log_probs)
    return learned(run, log_prob=stored)


ADAM = experiment(Course(), obs_clip=10.0, optimizer=optimizers.Adam())
NAN, INF = float("nan"), float("inf")


@pytest.mark.parametrize(
    ("log_probs", "nans", "infinities"),
    [
        ([NAN, INF, -INF, 0.0], 1, 2),
        ([INF, 0.0, 0.0, 0.0], 0, 1),  # The clamp alone would hide it.
    ],
)
def test_log_ratios_that_are_not_finite_are_counted(log_probs, nans, infinities):
    """PROP-5.4, R-D6: one NaN and two infinite; the step is a no-op."""
    run = first(ADAM)
    after, metrics = learned_badly(run, log_probs)
    assert metrics["error/log_ratio_nan_count"] == nans
    assert metrics["error/log_ratio_inf_count"] == infinities
    assert metrics["error/skipped_steps"] == 1 == after.counters.skipped_steps
    assert metrics["train/n_minibatches_done"] == 0
    chex.assert_trees_all_equal(after.learner.params, run.learner.params)
    chex.assert_trees_all_equal(after.learner.opt_state, run.learner.opt_state)


@component
class Cliff(terms.Term):
    """A finite loss, whose gradient is not if it is steep."""

    steep: float = 0.0

    def __call__(self, out, batch, context):
        def root(x):
            return jnp.sqrt(jnp.abs(x))

        still = out.value.mean().min(axis=-1) * 0.0
        return jax.lax.cond(self.steep > 0, root, jnp.zeros_like, still), {}


@component
class After(EarlyStop):
    """Stops after so many epochs."""

    epochs: float

    def allows(self, state, epoch):
        return epoch < self.epochs


def eight_steps(steep, epochs=2):
    """In two epochs of four minibatches, of which the last may be stopped."""
    return experiment(
        Course(),
        early_stop=After(epochs),
        terms=(terms.Surrogate(), terms.Value(), Cliff(steep)),
        num_epochs=2,
        num_minibatches=4,
        optimizer=optimizers.Adam(learning_rate=0.1),
    )


def test_other_minibatches_go_on():
    """R-D6: a minibatch with a NaN is skipped, its neighbours are not."""
    run = first(eight_steps(steep=0.0))
    after, metrics = learned_badly(run, [NAN, 0.0, 0.0, 0.0])
    assert metrics["error/log_ratio_nan_count"] == 2 == metrics["error/skipped_steps"]
    assert metrics["train/n_minibatches_done"] == 6
    assert metrics["train/n_epochs_completed"] == 2
    assert after.counters.failure_streak == 0
    chex.assert_tree_all_finite((after.learner.params, metrics["train/policy_loss"]))


def test_steps_after_a_stop_do_not_fail():
    """Of eight that are not finite, four were to be taken; so it is with log-ratios."""
    run = first(eight_steps(steep=1.0, epochs=1))
    after, metrics = learned_badly(run, [NAN, INF, 0.0, 0.0])
    assert metrics["error/nonfinite_grad"] == 4 == metrics["error/skipped_steps"]
    assert after.counters.skipped_steps == 4
    assert metrics["error/log_ratio_nan_count"] == 1
    assert metrics["error/log_ratio_inf_count"] == 1


@pytest.mark.parametrize("log_prob", [-1e4, 1e4])
def test_extreme_log_ratios_stay_finite(log_prob):
    """PROP-5.4, R-D19, R-E12: the clamp at ± 20 keeps the step, and is reported."""
    after, metrics = learned_badly(first(ADAM), [log_prob, 0.0, 0.0, 0.0])
    assert metrics["error/skipped_steps"] == 0
    _, steps = course()
    assert steps.weight[0, 0] == 1
    share = 1 / steps.weight.sum()
    chex.assert_trees_all_close(metrics["train/log_ratio_clamp_frac"], share, rtol=1e-5)
    chex.assert_tree_all_finite(after.learner.params)


def test_thresholds_of_log_ratios_are_strict():
    """PROP-5.5: 10 is not extreme, 10.0001 is; 20 is not clamped."""
    log_ratio = np.float32([10.0, -10.0, 10.0001, -10.0001, 20.0, 20.001])
    metrics = jax.jit(diagnostics.shift_metrics)(log_ratio, old=(), new=None)
    extreme = metrics["train/log_ratio_extreme_fraction"]
    assert extreme.tolist() == [0, 0, 1, 1, 1, 1]
    assert metrics["train/log_ratio_clamp_frac"].tolist() == [0, 0, 0, 0, 0, 1]


def test_a_gradient_that_is_not_finite_is_no_step():
    """PROP-16.5: a no-op with its own counter, though the loss is finite."""
    run = first(eight_steps(steep=1.0))
    after, metrics = learned(run)
    assert metrics["error/nonfinite_grad"] == 8 == metrics["error/skipped_steps"]
    assert metrics["error/nonfinite_loss"] == 0
    chex.assert_trees_all_equal(after.learner.params, run.learner.params)


def test_what_an_optimiser_of_ones_own_makes_that_is_not_finite_is_no_step():
    """As if its gradients were not: neither parameters nor its state move."""
    broken = optimizers.Optax(make=lambda rate: optax.scale(NAN))
    run = first(dataclasses.replace(ADAM, optimizer=broken))
    after, metrics = learned(run)
    assert metrics["train/n_minibatches_done"] == 0
    assert metrics["error/nonfinite_grad"] == metrics["error/skipped_steps"] > 0
    chex.assert_trees_all_equal(after.learner.params, run.learner.params)


def test_an_epoch_without_weight_is_empty():
    """R-A17, PROP-14.6, X3, R-A24, X12.

    Nothing moves, no epoch counts, and it is said.
    """
    run = first(ADAM)
    after, metrics = learned(run, weight=np.zeros((8, 4), np.float32))
    chex.assert_trees_all_equal(after.learner.params, run.learner.params)
    chex.assert_trees_all_equal(after.learner.opt_state, run.learner.opt_state)
    chex.assert_trees_all_equal(after.learner.obs_moments, run.learner.obs_moments)
    assert metrics["warn/empty_epoch"] == 1
    assert metrics["train/n_epochs_completed"] == 0
    assert metrics["error/skipped_steps"] == 0 == after.counters.failure_streak
    _, metrics = learned(run)
    assert metrics["warn/empty_epoch"] == 0
    assert metrics["train/n_epochs_completed"] == 1


def hidden(noise):
    """First steps of episodes, which no other follows: without weight, and with noise.

    What is stored of them is what they come to.
    """
    _, steps = jax.device_get(course())
    fields = ("obs", "raw_obs", "log_prob", "value", "reward")
    stored = {name: getattr(steps, name).copy() for name in (*fields, "weight")}
    for name in fields:
        stored[name][steps.reset] += noise
    stored["weight"][steps.reset] = 0
    return stored


def test_rows_without_weight_influence_nothing():
    """PROP-15.4: parameters and moments are the same to the bit."""
    run = first(ADAM)
    after = [learned(run, **hidden(noise))[0] for noise in (0.0, 1e-3)]
    chex.assert_trees_all_equal(*[run.learner.params for run in after])
    chex.assert_trees_all_equal(*[run.learner.obs_moments for run in after])


REMEMBERS = three_steps(network=LSTM, chunk_length=4, obs_clip=10.0)


@functools.cache
def remembered():
    """A run, its steps, and the carries before its chunks."""
    run = first(REMEMBERS)
    _, _, _, steps, carries = live(run, Progress.at(0.0))
    return run, steps, carries


@jax.jit
def rows_of(config, steps, carries):
    advantage, _ = advantages(config, steps)
    return chunks(config, steps, advantage, advantage + steps.value, carries)


ordered = jax.jit(gather)


@jax.jit
def learning(run, rows):
    """The loss and metrics of time-major rows, and gradients."""
    config, known = run.learner.config, contexts(run.learner, Progress.at(0.0))

    def loss(params):
        return objective(params, config.build(), config, known, rows)

    return jax.value_and_grad(loss, has_aux=True)(run.learner.params)


def test_the_order_of_examples_does_not_matter():
    """PROP-15.3: sums over permuted chunks are the same."""
    run, *experience = remembered()
    batch = rows_of(REMEMBERS, *experience)
    straight = np.arange(batch.weight.shape[0])
    shuffled = np.random.default_rng(1).permutation(straight)
    chex.assert_trees_all_close(
        *(learning(run, ordered(batch, order)) for order in (straight, shuffled)),
        rtol=0,
        atol=1e-4,
    )


def test_the_length_of_chunks_only_truncates_gradients():
    """PROP-15.5: the same losses; gradients as if carries were constants."""
    run, steps, carries = jax.device_get(remembered())
    whole = three_steps(network=LSTM, chunk_length=8, obs_clip=10.0)
    begin = jax.tree.map(lambda x: x[:1], carries)
    long = jax.device_get(ordered(rows_of(whole, steps, begin), np.arange(4)))
    short = ordered(rows_of(REMEMBERS, steps, carries), np.arange(8))
    (once, _), full = learning(run, long)
    (again, _), truncated = jax.device_get(learning(run, short))
    chex.assert_trees_all_close(once, again, rtol=1e-5)
    assert norm(jax.tree.map(np.subtract, full, truncated)) > 1e-2

    def halves(x):
        return np.concatenate([x[:4], x[4:]], axis=1)

    before = long.carry, long.obs[:4], long.reset[:4]
    after = apply(run.learner.config, run.learner.params, *before).carry
    constant = jax.tree.map(lambda *x: np.concatenate(x), long.carry, after)
    rows = jax.tree.map(halves, long._replace(carry=()))
    _, expected = learning(run, rows._replace(carry=constant))
    chex.assert_trees_all_close(truncated, expected, rtol=0, atol=1e-4)


@component
class Shown(terms.Term):
    """Costs what is observed; tells that, and how many steps it is given at once."""

    def __call__(self, out, batch, context):
        del out
        shown, rows = batch.obs[..., 0], jnp.full_like(batch.weight, batch.weight.size)
        return shown, {"train/shown": shown, "train/rows": rows}


@component
class Digit(terms.Term):
    """½ (v − obs)²: steps of 0.9 push what was observed last into v's first digit."""

    def __call__(self, out, batch, context):
        return 0.5 * (out.value.mean()[..., 0] - batch.obs[..., 0]) ** 2, {}


@component
class OneNumber(Config):
    """An experiment whose critic says the same number everywhere."""

    def build(self):
        def apply(params, carry, obs, reset, action_mask=None):
            del carry, reset, action_mask
            policy = Categorical(jnp.zeros((*obs.shape[:2], 3)))
            value = jnp.broadcast_to(params["critic"]["heads"], (*obs.shape[:2], 1, 1))
            return networks.Output(policy, ValueDist(value, Scalar()), ())

        def init(key):
            return {"critic": {"heads": jnp.zeros(())}}

        return networks.Network(init, lambda num_envs: (), apply)


def one_number(num_steps, **changes):
    """One such agent in one environment."""
    config = experiment(Course(), num_envs=1, num_steps=num_steps, **changes)
    fields = dataclasses.fields(config)
    return OneNumber(**{field.name: getattr(config, field.name) for field in fields})


def seen(numbers, weights):
    """Steps that show these numbers, otherwise those of the first environment."""
    _, steps = course()
    steps = jax.tree.map(lambda x: x[: len(numbers), :1], jax.device_get(steps))
    obs = np.float32(numbers)[:, None, None]
    return steps._replace(obs=obs, weight=np.float32(weights)[:, None])


@pytest.mark.parametrize("divided", ["num_microbatches", "num_minibatches"])
@pytest.mark.parametrize("seed", range(3))
def test_parts_of_an_update_count_by_their_weight(seed, divided):
    """PROP-13.14, PROP-15.2, X8, R-C2: 1, 2, 3 and 10 have mean 4, however divided."""
    run = first(one_number(6, terms=(Shown(),), **{divided: 2}))
    steps = seen((1, 2, 3, 10, 99, 99), (1, 1, 1, 1, 0, 0))
    # Weights 3 + 1 occur among the shuffles.
    for key in jax.random.split(jax.random.key(seed), 4):
        _, metrics = learned_from(run, key, steps)
        parts = 2 if divided == "num_minibatches" else 1
        assert metrics["train/n_minibatches_done"] == parts
        chex.assert_trees_all_close(metrics["train/loss"], 4.0, rtol=1e-6)
        chex.assert_trees_all_close(metrics["train/shown"], 4.0, rtol=1e-6)


@component
class Up(Attack):
    """Raises all that is seen by ε."""

    def perturbation(self, problem, key):
        return [jnp.full_like(x, self.eps) for x in problem.floats]


@pytest.mark.filterwarnings("ignore:Config.adversary. observations are not normal")
@pytest.mark.parametrize("divided", ["num_microbatches", "num_minibatches"])
def test_attacked_rows_count_alike_in_all_parts(divided):
    """Whatever weighs nothing: in some parts that is the one row that is attacked."""
    adversary = Mixed(Up(eps=0.25), ratio=0.5)
    run = first(one_number(6, terms=(Shown(),), adversary=adversary, **{divided: 3}))
    steps = seen((1,) * 6, (1, 1, 1, 0, 0, 0))
    for key in jax.random.split(jax.random.key(0), 4):
        _, metrics = learned_from(run, key, steps)
        number, others = (metrics[f"sa_ppo/num_{k}"] for k in ("adversarial", "clean"))
        done = metrics["train/n_minibatches_done"]
        chex.assert_trees_all_close((number + others) * done, 3.0, rtol=1e-6)
        if divided == "num_microbatches" and number > 0:
            size = metrics["sa_ppo/avg_perturbation_norm"]
            chex.assert_trees_all_close(size, 0.25, rtol=1e-6)


@pytest.mark.parametrize(("parts", "rows"), [(1, 6), (2, 3), (6, 1)])
def test_a_minibatch_is_worked_through_in_as_many_parts_as_asked(parts, rows):
    run = first(one_number(6, num_microbatches=parts, terms=(Shown(),)))
    _, metrics = learned_from(run, jax.random.key(0), seen(range(6), (1,) * 6))
    chex.assert_trees_all_close(metrics["train/rows"], rows, rtol=1e-6)


def test_every_epoch_is_shuffled_anew():
    """Three rows a step apart, each once per epoch, in changing orders."""
    sgd = optimizers.Sgd(learning_rate=0.9, max_grad_norm=None)
    epochs = {"num_epochs": 2, "num_minibatches": 3}
    run, orders = first(one_number(3, **epochs, terms=(Digit(),), optimizer=sgd)), []
    for key in jax.random.split(jax.random.key(0), 8):
        after, _ = learned_from(run, key, seen((1, 2, 3), (1, 1, 1)))
        digits = float(after.learner.params["critic"]["heads"]) / 0.9
        order = f"{round(digits * 1e5):06d}"[::-1]  # The last step's digit leads.
        epochs = order[:3], order[3:]
        assert all(sorted(epoch) == ["1", "2", "3"] for epoch in epochs)
        orders.append(epochs)
    assert any(one != two for one, two in orders)
    assert len({one for one, _ in orders}) > 1


def moved(bound):
    sgd = optimizers.Sgd(learning_rate=1.0, max_grad_norm=bound)
    run = first(experiment(Course(), optimizer=sgd))
    after, metrics = learned(run)
    return change(run, after), metrics["train/grad_norm_pre_clip"]


def test_the_global_norm_is_bounded():
    """PROP-16.2, PROP-16.3, R-E8, X9: to .5 by default, in the same direction."""
    default = optimizers.Adam().max_grad_norm
    assert default == 0.5
    (free, before), (bounded, same) = moved(None), moved(default)
    assert before == same > 0.5
    chex.assert_trees_all_close(norm(free), before, rtol=1e-5)
    assert norm(bounded) <= 0.5 + 1e-6
    chex.assert_trees_all_close(
        bounded, jax.tree.map(lambda x: x * 0.5 / norm(free), free), rtol=0, atol=1e-6
    )
    (loose, _) = moved(100.0)
    chex.assert_trees_all_close(loose, free, rtol=0, atol=1e-6)


@pytest.mark.parametrize("bound", [0.0, -1.0])
def test_no_bound_is_none(bound):
    """PROP-16.3: "off" is absent; a bound of 0 or less is an error."""
    with pytest.raises(ValueError, match="max_grad_norm"):
        optimizers.Sgd(max_grad_norm=bound)


def with_rate(run, rate):
    config = run.learner.config
    config = replace_at(config, "optimizer.learning_rate", jnp.float32(rate))
    return run.replace(learner=run.learner.replace(config=config))


def test_a_learning_rate_counts_from_the_next_step():
    """A rate may change between updates; the moments of the optimiser are kept."""
    run, _ = learned(first(ADAM))
    still, metrics = learned(with_rate(run, 0.0))
    assert metrics["train/learning_rate"] == 0
    chex.assert_trees_all_equal(still.learner.params, run.learner.params)
    twice, _ = learned(with_rate(run, 2 * 2.5e-4))
    once, _ = learned(run)
    chex.assert_trees_all_equal(twice.learner.opt_state, once.learner.opt_state)
    chex.assert_trees_all_equal(still.learner.opt_state, once.learner.opt_state)
    double, single = (change(run, after) for after in (twice, once))
    chex.assert_trees_all_close(
        double, jax.tree.map(lambda x: 2 * x, single), rtol=0, atol=1e-6
    )


def test_the_first_step_has_the_schedule_s_first_factor():
    """R-E9, X9: a step is taken with the rate in force before it."""
    bounded = Bounded(Linear(), floor=0.0, cap=1.0)
    for schedule, rate in ((Linear(), 0.1), (Warmup(0.5, bounded), 0.0)):
        sgd = optimizers.Sgd(learning_rate=0.1, max_grad_norm=0.5, schedule=schedule)
        run = first(experiment(Course(), optimizer=sgd))
        after, metrics = learned(run, progress=0.0)
        chex.assert_trees_all_close(norm(change(run, after)), 0.5 * rate, rtol=1e-4)
        chex.assert_trees_all_close(metrics["train/learning_rate"], rate, rtol=1e-7)


def test_a_learning_rate_stays_within_the_bounds_of_its_schedule():
    """PROP-17.2: parameters move at that rate, and a floor that is hit is flagged."""
    schedule = Warmup(0.2, Bounded(Linear(), floor=0.4, cap=0.8))
    sgd = optimizers.Sgd(0.5, max_grad_norm=100.0, schedule=schedule)
    run = first(experiment(Course(), optimizer=sgd))
    rates, flags, moved = [], [], []
    for progress in (0.1, 0.2, 0.6, 0.9):
        after, metrics = learned(run, progress)
        rates.append(metrics["train/learning_rate"])
        flags.append(metrics["train/learning_rate_held"])
        moved.append(critic_bias(after) - critic_bias(run))
    chex.assert_trees_all_close(rates, [0.25, 0.4, 0.25, 0.2], rtol=1e-6)
    assert flags == [0, 0, 0, 1]
    moved, rates = np.array(moved), np.array(rates)
    chex.assert_trees_all_close(moved / moved[0], rates / rates[0], rtol=1e-4)


def critic_bias(run):
    return float(run.learner.params["critic"]["heads"]["head"]["bias"][0, 0])


def test_skipped_steps_do_not_hold_the_schedule_back():
    """PROP-17.3: the optimiser waits for a step that is taken, progress does not."""
    run = first(eight_steps(steep=1.0))
    after, metrics = learned(run, progress=0.75)
    assert metrics["error/skipped_steps"] == 8
    chex.assert_trees_all_equal(after.learner.opt_state, run.learner.opt_state)
    chex.assert_trees_all_close(metrics["train/learning_rate"], 0.025, rtol=1e-6)


def test_the_entropy_bonus_makes_the_policy_less_certain():
    """R-E10: an update by little else than the bonus raises the entropy."""
    bonus = terms.Surrogate(), terms.Value(0.0), terms.Entropy(1e3)
    config = three_steps(network=FEED_FORWARD, obs_clip=10.0)
    run, *_ = live(first(dataclasses.replace(config, terms=bonus)), Progress.at(0.0))
    params = run.learner.params
    params["actor"]["head"]["bias"] = jnp.array([1.0, -1.0, 0.0])
    run = run.replace(learner=run.learner.replace(params=params))
    entropies = []
    for _ in range(3):
        after, metrics = learned(run)
        run = run.replace(learner=after.learner)
        entropies.append(float(metrics["train/policy_entropy"]))
    assert entropies[0] < entropies[1] < entropies[2] <= np.log(3)
