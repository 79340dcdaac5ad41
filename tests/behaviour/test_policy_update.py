"""All terms that move a policy in one update, against the same update in float64."""

import dataclasses

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from controls import pid_oracle
from tabular import (
    Cards,
    Examples,
    as_float64,
    changed,
    descend,
    drawn,
    experiment,
    first,
    update,
)

from ppo_jax import networks, optimizers, terms
from ppo_jax.component import as_arrays, component, replace_at
from ppo_jax.config import Config
from ppo_jax.controllers import (
    K1,
    ClosedForm,
    EntropySchedule,
    EpochBudget,
    KlPid,
    KlStop,
    Plateau,
)
from ppo_jax.controllers.early_stop import REASONS
from ppo_jax.envs.probes import TimeLimitChain
from ppo_jax.metrics.explained import Appraisal
from ppo_jax.normalization.advantages import OverAll, PerEnv, PerGroup
from ppo_jax.normalization.return_scale import ReturnNormalization
from ppo_jax.ppo import learner
from ppo_jax.ppo.batch import assemble
from ppo_jax.schedules import Progress, Ramp

PID = KlPid(target=0.01, initial=0.3, kp=2.0, ki=0.5, kd=1.0)
STOP = KlStop(target=1e6, budget=EpochBudget())


def everything(**changes):
    """Four steps on each rollout by all terms at once."""
    objective = (
        terms.Surrogate(0.1, Ramp(1.8, 1.0, length=0.5), dual_clip=1.02),
        terms.AdaptiveEntropy(EntropySchedule(0.05, 0.01, decay_updates=2)),
        terms.KlPenalty(PID),
        terms.AdvantageWeighted(0.4, 0.7, 2.0, Ramp(1.0, 0.0)),
        terms.CVaR(0.3, coef=0.5, clip_eps=0.15),
        terms.CVaRConstraint(
            0.2, terms.Rewards(), limit=0.5, learning_rate=0.2, max_dual=2.0
        ),
        terms.Value(coef=0.7),
    )
    fields = {
        "terms": objective,
        "num_epochs": 4,
        "num_critics": 2,
        "early_stop": STOP,
        "return_scale": ReturnNormalization(min_returns=1),
    }
    return experiment(**fields | changes)


class ByHand:
    """The objective of `everything` from its definition, at some progress."""

    def __init__(self, run, steps, progress, ent_coef, beta, dual):
        self.examples = data = Examples(run, steps)
        self.ent_coef, self.beta, self.dual = ent_coef, beta, dual
        self.eps = 0.1 * (1.8 - 0.8 * min(1, progress / 0.5))
        self.imitation = 0.4 * (1 - progress)
        params = as_float64(run.learner.params)
        self.old_log_prob = self.log_prob(params)
        value = data.outputs(params)[..., 0].min(axis=-1) * data.sigma + data.mu
        advantage = data.reward - value
        self.raw = advantage
        total = data.weight.sum()
        centred = advantage - data.mean(advantage)
        free = total - (data.weight**2).sum() / total
        self.unit = np.sqrt((data.weight * centred**2).sum() / free)
        self.advantage = centred / (self.unit + 1e-8)
        self.target = (data.reward - data.mu) / data.sigma
        self.beyond, _ = self.tail(0.3)
        self.beyond_dual, self.cvar = self.tail(0.2)

    def tail(self, alpha, winsor=0.0):
        """What the worst share adds to advantages, and its mean."""
        valid = self.examples.weight > 0
        ends = np.quantile(self.examples.reward[valid], [winsor, 1 - winsor])
        paid = np.clip(self.examples.reward, *ends)
        worst = np.sort(paid[valid])
        worst = worst[: int(np.ceil(alpha * worst.size))]
        short = np.minimum(paid - worst[-1], 0) / alpha
        return np.where(valid, short, 0) / self.unit, worst.mean()

    def log_prob(self, params):
        log_probs = self.examples.log_probs(params)
        return np.take_along_axis(log_probs, self.examples.action[:, None], 1)[:, 0]

    def surrogate(self, ratio, advantage, eps):
        clipped = np.clip(ratio, 1 - eps, 1 + eps)
        return np.minimum(ratio * advantage, clipped * advantage)

    def kl(self, params):
        shift = self.log_prob(params) - self.old_log_prob
        return self.examples.mean(np.exp(shift) - 1 - shift)

    def dually_clipped(self, params):
        ratio = np.exp(self.log_prob(params) - self.old_log_prob)
        return ((self.advantage < 0) & (ratio > 1.02)).any()

    def objective(self, params):
        data, log_prob = self.examples, self.log_prob(params)
        shift = log_prob - self.old_log_prob
        ratio = np.exp(shift)
        gain = self.surrogate(ratio, self.advantage, self.eps)
        bound = np.maximum(gain, 1.02 * self.advantage)
        each = -np.where(self.advantage < 0, bound, gain)
        each -= 0.5 * self.surrogate(ratio, self.beyond, 0.15)
        each -= self.dual * self.surrogate(ratio, self.beyond_dual, 0.2)
        log_probs = data.log_probs(params)
        each += self.ent_coef * (np.exp(log_probs) * log_probs).sum(axis=-1)
        each += self.beta * (ratio - 1 - shift)
        weight = np.minimum(np.exp(self.advantage / 0.7), 2.0)
        each -= self.imitation * weight * log_prob
        error = data.outputs(params)[..., 0] - self.target[:, None]
        each += 0.7 * (error**2 / 2).mean(axis=-1)
        return data.mean(each)


def rescale(params, examples, scale):
    """Critics say under another scale what they said under that of the examples."""
    head = params["critic"]["heads"]["head"]
    head["kernel"] = head["kernel"] * examples.sigma / float(scale.std)
    bias = head["bias"] * examples.sigma + examples.mu - float(scale.mean)
    head["bias"] = bias / float(scale.std)


@pytest.fixture(scope="module")
def begun():
    return first(everything())


def test_two_updates_by_hand(begun):
    """PROP-8.4, PROP-5.6, PROP-7.4, PROP-3.5, PROP-3.6, R-B1, R-C3.

    All terms and their memories. One return scale holds for a rollout and all steps on
    it; what was measured moves the next one's coefficients, and the heads with the
    scale.
    """
    run, ent_coef, beta, dual = begun, 0.05, 0.3, 0.0
    integral = error = previous = 0.0
    for number, progress in enumerate((0.25, 0.5)):
        before = run
        run, metrics, steps = update(before, progress)
        hand = ByHand(before, steps, progress, ent_coef, beta, dual)
        params = as_float64(before.learner.params)
        trail = descend(hand.objective, params, 0.5 * (1 - progress), steps=4)
        said = {
            "train/clip_range": hand.eps,
            "train/ent_coef": ent_coef,
            "train/kl_penalty_beta": beta,
            "train/cvar_lambda": dual,
            "train/cvar_empirical": hand.cvar,
            "train/approx_kl": np.mean([hand.kl(params) for params in trail[:4]]),
            "train/return_scale_mean": hand.examples.mu,
            "train/return_scale_std": hand.examples.sigma,
        }
        for name, value in said.items():
            np.testing.assert_allclose(metrics[name], value, rtol=2e-3, atol=1e-6)
        assert number == 0 or any(hand.dually_clipped(x) for x in trail)
        # What the next update begins with.
        scale = run.learner.return_scale
        rescale(trail[-1], hand.examples, scale)
        chex.assert_trees_all_close(run.learner.params, trail[-1], rtol=0, atol=2e-4)
        wanted = np.sqrt(float(scale.moving_var))
        low, high = hand.examples.sigma / 1.5, hand.examples.sigma * 1.5
        np.testing.assert_allclose(scale.std, np.clip(wanted, low, high), rtol=1e-5)
        ent_coef = 0.05 - 0.04 * (number + 1) / 2
        parts = {"error": error, "pid_p": 2 * error, "pid_i": 0.5 * integral}
        parts |= {"pid_d": error - previous}
        for name, part in parts.items():
            part = part if number else 0.0
            got = metrics[f"train/kl_penalty_{name}"]
            np.testing.assert_allclose(got, part, rtol=2e-3, atol=2e-6)
        previous, error = error, said["train/approx_kl"] - 0.01
        integral += error
        beta = np.clip(beta + 2 * error + 0.5 * integral + error - previous, 1e-4, 1)
        gap = (0.5 - hand.cvar) / hand.unit
        dual = np.clip(dual + 0.2 * gap, 0, 2)
        assert dual > 0 and changed(scale, before.learner.return_scale)


def with_number(run, path, number):
    config = replace_at(run.learner.config, path, jnp.float32(number))
    return run.replace(learner=run.learner.replace(config=config))


def test_the_penalty_leaves_its_bound_as_its_rule_says(begun):
    """PROP-7.5: the integral leaks while errors push outward, and not on the way back.

    Divergences are those of real updates: large ones, then those of a rate of 0.
    """
    pid = KlPid(0.004, initial=0.3, maximum=0.3001, kp=0.0, ki=0.5, kd=0.0, leak=0.5)
    run = begun
    for field in ("target", "maximum", "kp", "kd", "leak"):
        run = with_number(
            run, f"terms.kl_penalty.controller.{field}", getattr(pid, field)
        )
    kls, memories = [], []
    for progress in 3 * (0.0,) + 20 * (1.0,):
        run, metrics, _ = update(run, progress)
        kls.append(float(metrics["train/approx_kl"]))
        memories.append(run.learner.memories[2])
    want = pid_oracle(pid, kls)
    assert (want[:5, 0] == 0.3001).all() and want[-1, 0] < 0.3001  # Held, then off.
    got = [(state.coefficient, state.integral) for state in memories]
    np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-6)


def test_a_winsorised_tail_by_hand(begun):
    """PROP-13.9: outcomes are pulled in at both ends before the worst are looked at."""
    pulled = with_number(begun, "terms.cvar_constraint.winsor", 0.15)
    run, metrics, steps = update(with_number(pulled, "terms.cvar.winsor", 0.2))
    hand = ByHand(begun, steps, 0.0, 0.05, 0.3, 0.0)
    _, plain = hand.tail(0.2)
    _, cvar = hand.tail(0.2, winsor=0.15)
    np.testing.assert_allclose(metrics["train/cvar_empirical"], cvar, rtol=1e-5)
    assert plain < cvar - 0.1
    hand.beyond, _ = hand.tail(0.3, winsor=0.2)
    trail = descend(hand.objective, as_float64(begun.learner.params), 0.5, steps=4)
    chex.assert_trees_all_close(
        run.learner.params["actor"], trail[-1]["actor"], rtol=0, atol=2e-4
    )
    straight, _, _ = update(begun)
    apart = straight.learner.params["actor"]["head"]["kernel"]
    assert np.abs(apart - trail[-1]["actor"]["head"]["kernel"]).max() > 1e-3


def test_a_rising_entropy_coefficient_reaches_its_end(begun):
    """PROP-6.5: what caps a boost does not cap a schedule that rises."""
    run = begun
    numbers = {"initial": 0.001, "final": 0.02, "decay_updates": 4.0}
    for field, number in numbers.items():
        run = with_number(run, f"terms.adaptive_entropy.schedule.{field}", number)
    said = []
    for _ in range(6):
        run, metrics, _ = update(run)
        said.append(float(metrics["train/ent_coef"]))
    want = [0.001, 0.00575, 0.0105, 0.01525, 0.02, 0.02]
    np.testing.assert_allclose(said, want, rtol=1e-5)


def test_the_clip_range_follows_its_schedule(begun):
    """PROP-5.6: .18, .14, .10 after 0, 8 and 16 of 32 updates."""
    for updates, eps in ((0, 0.18), (8, 0.14), (16, 0.10), (32, 0.10)):
        _, metrics, _ = update(begun, updates / 32)
        np.testing.assert_allclose(metrics["train/clip_range"], eps, rtol=1e-6)


def test_a_stop_is_as_if_no_step_followed(begun):
    """PROP-7.7: after step k the parameters are those of k steps; the rest is idle."""
    _, metrics, steps = update(begun)
    assert (
        metrics["train/kl_early_stop"] == 0 and metrics["train/n_minibatches_done"] == 4
    )
    hand = ByHand(begun, steps, 0.0, 0.05, 0.3, 0.0)
    trail = descend(hand.objective, as_float64(begun.learner.params), 0.5, steps=4)
    kl = [hand.kl(params) for params in trail]
    assert kl[0] < kl[1] < kl[2]
    target = np.sqrt(kl[1] * kl[2])
    run, metrics, _ = update(with_number(begun, "early_stop.target", target))
    assert metrics["train/kl_early_stop"] == 1
    assert metrics["train/n_minibatches_done"] == 3
    reasons = [metrics[f"train/kl_stop_reason/{name}"] for name in REASONS]
    assert reasons == [0, 0, 1]  # The only step of an epoch is all of its steps.
    chex.assert_trees_all_close(
        run.learner.params["actor"], trail[3]["actor"], rtol=0, atol=2e-4
    )
    np.testing.assert_allclose(
        metrics["train/approx_kl"], np.mean(kl[:3]), rtol=2e-3, atol=1e-6
    )
    at_once = with_number(begun, "early_stop.absolute", 1.0)
    _, metrics, _ = update(with_number(at_once, "early_stop.target", target))
    assert metrics["train/n_minibatches_done"] == 3
    assert metrics["train/kl_stop_reason/absolute"] == 1
    over = np.mean(kl[:3]) / target
    np.testing.assert_allclose(metrics["train/kl_over_target"], over, rtol=2e-3)
    tight, metrics, _ = update(with_number(begun, "early_stop.target", 0.9 * kl[1]))
    assert metrics["train/n_minibatches_done"] == 2
    chex.assert_trees_all_close(
        tight.learner.params["actor"], trail[2]["actor"], rtol=0, atol=2e-4
    )


DIVERGENCES = {
    "k1": (K1(), "train/approx_kl_k1", lambda hand, params: -hand.shift(params)),
    "closed form": (
        *(ClosedForm(), "train/kl"),
        lambda hand, params: hand.closed_form(params),
    ),
}


class Penalized(ByHand):
    """A surrogate and a penalty on the divergence, told in one of two ways."""

    def __init__(self, run, steps, divergence):
        super().__init__(run, steps, 0.0, 0.0, PID.initial, 0.0)
        self.old_log_probs = self.examples.log_probs(as_float64(run.learner.params))
        self.divergence = divergence

    def shift(self, params):
        return self.log_prob(params) - self.old_log_prob

    def closed_form(self, params):
        apart = self.old_log_probs - self.examples.log_probs(params)
        return (np.exp(self.old_log_probs) * apart).sum(axis=-1)

    def kl(self, params):
        return self.examples.mean(self.divergence(self, params))

    def objective(self, params):
        gain = self.surrogate(np.exp(self.shift(params)), self.advantage, 0.2)
        return self.beta * self.kl(params) - self.examples.mean(gain)


@pytest.mark.parametrize("name", DIVERGENCES)
def test_a_divergence_by_hand(name):
    """PROP-7.1, PROP-7.4, PROP-7.6: what is penalised, watched, and stopped for.

    The third one, K3, is that of all terms at once.
    """
    divergence, metric, by_hand = DIVERGENCES[name]
    objective = (terms.Surrogate(), terms.KlPenalty(PID, divergence))
    stop = KlStop(1e6, absolute=1.0, share=None, divergence=divergence)
    begun = first(experiment(terms=objective, num_epochs=4, early_stop=stop), seed=7)
    run, metrics, steps = update(begun)
    hand = Penalized(begun, steps, by_hand)
    trail = descend(hand.objective, as_float64(begun.learner.params), 0.5, steps=4)
    chex.assert_trees_all_close(
        run.learner.params["actor"], trail[4]["actor"], rtol=0, atol=2e-4
    )
    kl = [hand.kl(params) for params in trail]
    np.testing.assert_allclose(metrics[metric], np.mean(kl[:4]), rtol=2e-3, atol=1e-6)
    error = run.learner.memories[1].error
    np.testing.assert_allclose(error, np.mean(kl[:4]) - 0.01, rtol=2e-3, atol=1e-6)
    stored = jax.tree.leaves(steps.old_policy)
    assert len(stored) == ("train/kl" in metrics) == (name == "closed form")
    assert kl[0] < 1e-9 < kl[1] < kl[2]
    target = (kl[1] + kl[2]) / 2
    _, metrics, _ = update(with_number(begun, "early_stop.target", target))
    assert metrics["train/n_minibatches_done"] == 3
    assert metrics["train/kl_stop_reason/absolute"] == 1
    over = np.mean(kl[:3]) / target
    np.testing.assert_allclose(metrics["train/kl_over_target"], over, rtol=2e-3)


def test_the_epochs_shrink_after_a_stop_and_recover(begun):
    """PROP-7.7: half of four, then one; twice as many again after calm updates."""
    run = with_number(begun, "early_stop.target", 1e-6)
    done, factors = [], []
    for target in (1e-6, 1e-6, 1e6, 1e6, 1e6):
        run, metrics, _ = update(with_number(run, "early_stop.target", target))
        done.append(int(metrics["train/n_minibatches_done"]))
        factors.append(float(metrics["train/kl_epoch_factor"]))
    assert done == [2, 2, 1, 2, 4]
    assert factors == [1, 0.5, 0.25, 0.5, 1]


def test_a_failed_update_moves_no_controller(begun):
    """PROP-5.7: parameters, duals, coefficients, epochs and scale stay as they are."""
    run, _, _ = update(begun)
    moved, metrics, _ = update(run)
    assert metrics["error/skipped_steps"] == 0
    still, metrics, _ = update(with_number(run, "terms.value.coef", np.nan))
    assert metrics["error/skipped_steps"] == 4 and still.counters.failure_streak == 1
    for name in ("params", "opt_state", "return_scale", "stop_memory"):
        chex.assert_trees_all_equal(
            getattr(still.learner, name), getattr(run.learner, name)
        )
    chex.assert_trees_all_equal(still.learner.memories, run.learner.memories)
    for old, new in zip(run.learner.memories, moved.learner.memories, strict=True):
        assert not jax.tree.leaves(old) or changed(old, new)
    assert changed(run.learner.return_scale, moved.learner.return_scale)


def test_units_do_not_matter(begun):
    """PROP-13.13: rewards, limit and scale times a: the same policy and multipliers."""
    factor = 50.0
    scale = begun.learner.return_scale.replace(std=jnp.float32(factor))
    large = begun.replace(learner=begun.learner.replace(return_scale=scale))
    for path, number in (
        ("env.stake", factor),
        ("terms.cvar_constraint.limit", 0.5 * factor),
        ("return_scale.min_std", 3e-3 * factor),
    ):
        large = with_number(large, path, number)
    small = begun
    for _ in range(3):
        (small, said, _), (large, also, _) = update(small), update(large)
        actors = (run.learner.params["actor"] for run in (small, large))
        chex.assert_trees_all_close(*actors, rtol=0, atol=1e-4)
        for name in ("train/cvar_lambda", "train/cvar_gap", "train/loss"):
            np.testing.assert_allclose(said[name], also[name], rtol=1e-3, atol=1e-5)
        np.testing.assert_allclose(
            factor * said["train/cvar_empirical"],
            also["train/cvar_empirical"],
            rtol=1e-4,
        )
    assert said["train/cvar_lambda"] > 0


# Groups, and environments that are held out.


GROUPED = experiment(
    terms=(terms.Surrogate(), terms.Value(), terms.CVaR(0.3)),
    standardization=PerGroup(num_groups=2),
    holdout_envs=2,
    obs_clip=10.0,
    return_scale=ReturnNormalization(min_returns=1),
    appraisal=Appraisal(num_groups=2),
)
"""Critics are asked again after an update."""


@pytest.fixture(scope="module")
def grouped():
    return first(GROUPED)


def weighted(x, weight):
    """Mean and unbiased deviation."""
    total = weight.sum()
    mean = (weight * x).sum() / total
    free = total - (weight**2).sum() / total
    return mean, np.sqrt((weight * (x - mean) ** 2).sum() / free)


class Apart(ByHand):
    """The objective of `grouped`: one mean and deviation per group."""

    def __init__(self, run, steps):
        super().__init__(run, steps, 0.0, 0.0, 0.0, 0.0)
        self.advantage = np.zeros_like(self.raw)
        for group in (0, 1):
            weight = self.examples.weight * (self.examples.card // 2 == group)
            mean, std = weighted(self.raw, weight)
            self.advantage[weight > 0] = ((self.raw - mean) / std)[weight > 0]

    def objective(self, params):
        ratio = np.exp(self.log_prob(params) - self.old_log_prob)
        each = -self.surrogate(ratio, self.advantage, 0.2)
        each -= 0.5 * self.surrogate(ratio, self.beyond, 0.2)
        error = self.examples.outputs(params)[..., 0] - self.target[:, None]
        return self.examples.mean(each + 0.5 * (error**2 / 2).mean(axis=-1))


def test_groups_and_held_out_environments_by_hand(grouped):
    """PROP-4.5, PROP-14.2: statistics, losses and the scale are of what is learned.

    That critics are asked again teaches nobody.
    """
    run, metrics, steps = update(grouped)
    hand = Apart(grouped, steps)
    assert (hand.examples.weight < hand.examples.every_weight).any()
    params = as_float64(grouped.learner.params)
    end = descend(hand.objective, params, 0.5, steps=3)[-1]
    rescale(end, hand.examples, run.learner.return_scale)
    chex.assert_trees_all_close(run.learner.params, end, rtol=0, atol=2e-4)
    _, std = weighted(hand.raw, hand.examples.weight)
    np.testing.assert_allclose(metrics["train/advantages_std_raw"], std, rtol=1e-5)
    mean, std = weighted(hand.examples.reward, hand.examples.weight)
    variation = metrics["train/target_return_variation"]
    np.testing.assert_allclose(variation, std / abs(mean), rtol=1e-5)
    for name, weight in (
        ("", hand.examples.weight),
        ("_holdout", hand.examples.every_weight - hand.examples.weight),
    ):
        error, target = (
            weighted(x, weight)[1] for x in (hand.raw, hand.examples.reward)
        )
        explained = 1 - (error / target) ** 2
        said = metrics[f"train/explained_variance{name}"]
        np.testing.assert_allclose(said, explained, rtol=1e-4)
    rewards = hand.examples.reward[hand.examples.weight > 0]
    weights = hand.examples.weight[hand.examples.weight > 0]
    mean = (rewards * weights).sum() / weights.sum()
    np.testing.assert_allclose(run.learner.return_scale.moving_mean, mean, rtol=1e-5)


def explained(value, hand, weight):
    """The share of the rewards' variance that values explain."""
    reward = hand.examples.reward
    error, spread = (weighted(x, weight)[1] for x in (reward - value, reward))
    return 1 - (error / spread) ** 2


def test_critics_are_asked_again_by_hand(grouped):
    """PROP-14.5, PROP-14.3: before and after, by weight, by group, and held out."""
    after, metrics, steps = update(grouped)
    unasked = dataclasses.replace(GROUPED, appraisal=None)
    chex.assert_trees_all_close(
        update(first(unasked))[0].learner.params,
        after.learner.params,
        rtol=0,
        atol=1e-6,
    )
    hand = Apart(grouped, steps)
    learned, group = hand.examples.weight, hand.examples.card // 2
    held_out = hand.examples.every_weight - learned
    for name, end in (("", grouped), ("_after", after)):
        scale = end.learner.return_scale
        outputs = hand.examples.outputs(as_float64(end.learner.params))
        value = outputs[..., 0].min(axis=-1) * float(scale.std) + float(scale.mean)
        masses = np.array([(learned * (group == g)).sum() for g in (0, 1)])
        each = np.array(
            [explained(value, hand, learned * (group == g)) for g in (0, 1)]
        )
        said = {
            f"explained_variance{name}": explained(value, hand, learned),
            f"explained_variance_holdout{name}": explained(value, hand, held_out),
            f"ev/mean_grouped_weighted{name}": (masses * each).sum() / masses.sum(),
            f"ev/mean_grouped_unweighted{name}": each.mean(),
            f"ev/median_grouped{name}": np.median(each),
        }
        for metric, expected in said.items():
            np.testing.assert_allclose(metrics[f"train/{metric}"], expected, rtol=1e-3)
    name = "train/explained_variance"
    assert metrics[f"{name}_after"] > metrics[name] + 0.01


@pytest.fixture(scope="module")
def unteachable():
    """A member with memories, before its first update."""
    memory = networks.ActorCritic(
        torso=networks.Mlp(hidden=()), memory=networks.Lstm(size=8)
    )
    config = Config(
        env=TimeLimitChain(limit=5, negative=0.5),
        num_envs=4,
        num_steps=8,
        num_minibatches=1,
        network=memory,
        terms=(terms.Surrogate(),),
        appraisal=Appraisal(),
        optimizer=optimizers.Sgd(learning_rate=0.0),
    )
    return drawn(config, scale=0.25)


@pytest.mark.parametrize("chunk", [4, 8])
def test_critics_that_learned_nothing_say_the_same_again(unteachable, chunk):
    """PROP-14.5: with their memories as they were when acting; chunks do not matter."""
    config = dataclasses.replace(unteachable.learner.config, chunk_length=chunk)
    run = unteachable.replace(learner=unteachable.learner.replace(config=config))
    names = ("train/explained_variance", "train/ev/mean_grouped_weighted")

    @jax.jit
    def step(run):
        run, said = learner.iteration(run, Progress.at(0.0))
        return run, [(said[name], said[f"{name}_after"]) for name in names]

    for _ in range(2):
        run, said = step(run)
        for before, after in said:
            np.testing.assert_allclose(after, before, rtol=1e-4)
            assert np.isfinite(after)


def dealt(run, env):
    """The run whose environment shows another card."""
    card = (run.actor.env_state[env] + 1) % 4
    state = run.actor.env_state.at[env].set(card)
    return run.replace(
        actor=run.actor.replace(env_state=state, obs=jax.nn.one_hot(state, 4))
    )


@pytest.mark.parametrize(("env", "learned"), [(7, False), (6, False), (5, True)])
def test_nothing_is_learned_from_held_out_environments(grouped, env, learned):
    """PROP-14.3: parameters, moments, scale and memories are the same to the bit."""
    run, other, measured = grouped, dealt(grouped, env), []
    for _ in range(2):
        (run, said, _), (other, also, _) = update(run), update(other)
        measured += [m["train/explained_variance_holdout"] for m in (said, also)]
    assert changed(run.learner, other.learner) == learned
    assert learned or measured[0] != measured[1]


FLAT = EntropySchedule(
    *(0.05, 0.01, 2.0), plateau=Plateau(window=3, tolerance=1e-4, min_updates=4.0)
)


def undivided(schedule, rate=0.5, **changes):
    """A tail and an entropy, where advantages are as they are."""
    objective = (terms.Surrogate(), terms.CVaR(0.3), terms.AdaptiveEntropy(schedule))
    sgd = optimizers.Sgd(learning_rate=rate, max_grad_norm=None)
    return experiment(terms=objective, optimizer=sgd, standardization=None, **changes)


def test_a_flat_tail_is_no_fault():
    """Advantages that are neither divided nor different, all of them 0."""
    silent = dataclasses.replace(FLAT, initial=0.0, final=0.0)
    run = first(undivided(silent, env=Cards(stake=0.0)))
    params = run.learner.params
    params = params | {"critic": jax.tree.map(jnp.zeros_like, params["critic"])}
    run = run.replace(learner=run.learner.replace(params=params))
    after, metrics, _ = update(run)
    assert metrics["error/skipped_steps"] == 0 == metrics["train/loss"]
    chex.assert_trees_all_equal(after.learner.params, params)


@component
class Even(Cards):
    """Every card pays the same whatever one does."""

    def pay(self, key, state, action):
        return jnp.array([0.0, 1.0, 9.0, 3.0])[state]


def shown(run, cards):
    """The run whose environments show these cards, of which nothing is expected."""
    params = run.learner.params
    params = params | {"critic": jax.tree.map(jnp.zeros_like, params["critic"])}
    state = jnp.asarray(cards)
    actor = run.actor.replace(env_state=state, obs=jax.nn.one_hot(state, 4))
    return run.replace(learner=run.learner.replace(params=params), actor=actor)


@pytest.fixture(scope="module")
def even():
    return first(experiment(env=Even(), num_envs=5, num_steps=1, holdout_envs=1))


lived = jax.jit(learner.lived)


@jax.jit
def prepared(learner, *experience):
    """What a rollout says before anything is learned from it."""
    _, _, metrics, _ = assemble(learner, jax.random.key(0), *experience)
    return metrics


@pytest.mark.parametrize(
    ("kind", "cards", "share"),
    [
        (OverAll(), (0, 1, 3, 2, 0), 0),
        (PerEnv(), (0, 1, 3, 2, 0), 1),
        (PerGroup(num_groups=1), (0, 0, 1, 2, 0), 0),
        (PerGroup(num_groups=2), (0, 1, 3, 3, 0), 4 / 5.5),
        (PerGroup(num_groups=2), (0, 0, 3, 2, 0), 1),
    ],
    ids=["over all", "per env", "one group", "one of two is flat", "both are"],
)
def test_what_has_no_weight_does_not_count_as_flat(even, kind, cards, share):
    """PROP-4.5, PROP-4.6: neither card 2, nor the last environment, held out."""
    run, *_, steps, carries = lived(shown(even, cards), Progress.at(0.0))
    config = dataclasses.replace(run.learner.config, standardization=as_arrays(kind))
    metrics = prepared(run.learner.replace(config=config), steps, carries)
    np.testing.assert_allclose(metrics["train/advantages_zero_std"], share, rtol=1e-6)


@pytest.mark.parametrize(
    ("rate", "expected"),
    [
        (0.0, [0.05, 0.05, 0.05, 0.05, 0.05, 0.03, 0.01, 0.01]),
        (0.5, [0.05, 0.05, 0.05, 0.05, 0.05, 0.05, 0.05, 0.05]),
    ],
    ids=["flat", "moving"],
)
def test_the_decay_waits_for_a_plateau_of_real_updates(rate, expected):
    """PROP-6.2, R-B4, R-C5: initial until the entropy was flat, then as without one."""
    run = first(undivided(FLAT, rate))
    even = jax.tree.map(
        jnp.zeros_like, run.learner.params
    )  # As uncertain of all cards.
    run = run.replace(learner=run.learner.replace(params=even))
    said = []
    for _ in expected:
        run, metrics, _ = update(run)
        said.append({name: float(x) for name, x in metrics.items()})

    def series(name):
        return np.array([metrics[f"train/{name}"] for metrics in said])

    np.testing.assert_allclose(series("ent_coef"), expected, rtol=1e-6)
    entropies = series("policy_entropy")
    slopes = [np.polyfit(range(3), entropies[i : i + 3], 1)[0] for i in range(6)]
    assert (np.abs(slopes) > 1e-4).all() == (rate > 0)
    # An update says what the ones before it led to.
    seen = series("policy_entropy_slope")
    assert np.isnan(seen[:3]).all()
    np.testing.assert_allclose(seen[3:], slopes[:5], rtol=1e-4, atol=1e-7)
    began = 4 if rate == 0 else 8
    np.testing.assert_array_equal(series("entropy_plateau"), np.arange(8) >= began)
    starts = [np.nan] * began + [4.0] * (8 - began)
    np.testing.assert_array_equal(series("entropy_decay_start_update"), starts)
