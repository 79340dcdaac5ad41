"""Learning under attack: what an adversary shows, who learns from it, what it costs."""

import dataclasses
import functools
import warnings

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tabular
from minibatches import forward, minibatch
from runs import called, rows

from ppo_jax import networks, optimizers, schedules, terms
from ppo_jax.attacks.adversaries import (
    Adversary,
    Divergence,
    LowValue,
    Mixed,
    PolicyLoss,
    Regularizer,
    Target,
    ValueLoss,
)
from ppo_jax.attacks.norms import L2
from ppo_jax.attacks.opponents import Opponent, divergence
from ppo_jax.attacks.perturbations import Attack, Fgsm, Noise, Pgd
from ppo_jax.component import component, replace_at
from ppo_jax.config import Config
from ppo_jax.critics import Quantile
from ppo_jax.envs.env import Discrete, Env, outcome
from ppo_jax.errors import Misfit
from ppo_jax.pbt import PBT, Truncation
from ppo_jax.pbt.ranges import Uniform
from ppo_jax.ppo import learner, population
from ppo_jax.schedules import Progress
from ppo_jax.state import Population

LINEAR = networks.ActorCritic(torso=networks.Mlp(hidden=()))
GRU = dataclasses.replace(LINEAR, memory=networks.Gru(size=4))
SEQUENCES = {"network": GRU, "chunk_length": 3}
EPS = 0.3
TERMS = terms.Surrogate(), terms.Value(), terms.Entropy(0.1)


@component
class Wander(Env):
    """Two numbers that wander; every third step is a rest, one action is illegal.

    Episodes end after 4 steps.
    """

    rest: float = 0.0
    """The weight of a rest."""

    @property
    def action_space(self):
        return Discrete(3)

    def reset(self, key):
        place = jax.random.normal(key, (2,))
        return place, (place, jnp.int32(0))

    def action_mask(self, state):
        place, _ = state
        return jnp.array([True, True, False]) | (place[0] > 0)

    def transition(self, key, state, action):
        place, time = state
        place = place + 0.5 * jax.random.normal(key, (2,))
        timestep = outcome(
            place,
            reward=place[0] * (action - 1.0),
            terminated=time >= 3,
            weight=jnp.where(time % 3 == 2, self.rest, 1.0),
        )
        return timestep, (place, time + 1)


def experiment(adversary=None, coef=0.5, **changes):
    smooth = () if adversary is None else (terms.RobustKL(coef),)
    fields = {
        "env": Wander(),
        "num_envs": 4,
        "num_steps": 6,
        "num_epochs": 2,
        "num_minibatches": 2,
        "network": LINEAR,
        "terms": TERMS + smooth,
        "adversary": adversary,
        "obs_clip": 10.0,
        "optimizer": optimizers.Sgd(learning_rate=0.5, max_grad_norm=None),
        "total_timesteps": 24_000,
    }
    return Config(**fields | changes)


def first(config):
    """A single member's run before its first update, with a policy that has a view."""
    return tabular.drawn(config, seed=3)


def differs(a, b):
    pairs = zip(*map(jax.tree.leaves, jax.device_get((a, b))), strict=True)
    return [bool(np.any(x != y)) for x, y in pairs]


def replaced(run, values):
    """The same run with other numbers, by path."""
    config = run.learner.config
    for path, value in values.items():
        config = replace_at(config, path, jnp.float32(value))
    return run.replace(learner=run.learner.replace(config=config))


# What one update does.


STEPS = 4
"""Two epochs of two minibatches."""

ALL = networks.ActorCritic()
"""It reads all that there is to be seen."""

witnessed = []


def perturb(self, replay, batch, *others):
    made = Adversary.perturb(self, replay, batch, *others)
    jax.debug.callback(lambda *both: witnessed.append(both), batch, made, ordered=True)
    return made


@jax.jit
def witnessed_learning(run, progress, *lived):
    with pytest.MonkeyPatch.context() as patch:
        for kind in (Mixed, Regularizer):
            patch.setattr(kind, "perturb", perturb)
        return learner.learned(run, progress, *lived)


def learning(run, progress, *lived):
    """What is learned, and what adversaries were given and made of it at each step."""
    witnessed.clear()
    run, metrics = witnessed_learning(run, Progress.at(progress), *lived)
    jax.effects_barrier()
    return run, metrics, jax.tree.map(np.asarray, witnessed)


@jax.jit
def experience(run):
    """The key, actor, steps and carries of an iteration, of which learning is left."""
    _, *experience = learner.lived(run, Progress.at(0.0))
    return experience


def peaceful(run):
    """The same run without its adversary, which is no part of what it lives."""
    config, plain = run.learner.config, slice(len(TERMS))
    config = dataclasses.replace(config, adversary=None, terms=config.terms[plain])
    memories = run.learner.memories[plain]
    return run.replace(learner=run.learner.replace(config=config, memories=memories))


def recorded(run, progress=0.0):
    """An update, with what adversaries were given and made of it at every step."""
    return learning(run, progress, *experience(peaceful(run)))


def softmax_kl(p, q):
    p, q = jax.nn.log_softmax(p), jax.nn.log_softmax(q)
    return jnp.sum(jnp.where(p > -1e8, jnp.exp(p) * (p - q), 0.0), axis=-1)


def by_hand(run, params, batch, made):
    """Parameters after a step on a minibatch whose attack is a constant."""
    config, size = run.learner.config, made.mask.shape[1]
    shown = np.concatenate([made.obs, batch.obs[:, size:]], axis=1)
    mask = np.zeros(batch.weight.shape, bool)
    mask[:, :size] = made.mask
    seen = shown if isinstance(config.adversary, Mixed) else batch.obs
    return stepped(peaceful(run).learner.config, params, batch, seen, shown, mask)


@jax.jit
def stepped(config, params, batch, seen, shown, mask):
    network = config.build()

    def say(params, obs):
        return network.apply(params, batch.carry, obs, batch.reset, batch.action_mask)

    def loss(params):
        out = say(params, seen)
        clean = jax.lax.stop_gradient(say(params, batch.obs).policy.logits)
        chances = jax.nn.log_softmax(out.policy.logits)
        taken = jnp.take_along_axis(chances, batch.action[..., None], axis=-1)[..., 0]
        ratio = jnp.exp(taken - batch.log_prob)
        gain = jnp.minimum(
            ratio * batch.advantage, jnp.clip(ratio, 0.8, 1.2) * batch.advantage
        )
        error = (out.value.outputs[..., 0] - batch.target[..., None]) ** 2
        entropy = -jnp.sum(jnp.exp(chances) * chances, axis=-1)
        each = -gain + 0.5 * 0.5 * error.mean(axis=-1) - 0.1 * entropy
        plain = jnp.sum(batch.weight * each) / batch.weight.sum()
        kl = softmax_kl(clean, say(params, shown).policy.logits)
        own = jnp.where(mask, batch.weight, 0.0)
        return plain + 0.5 * jnp.sum(own * kl) / own.sum()

    grads = jax.grad(loss)(params)
    return jax.tree.map(lambda p, g: p - 0.5 * g, params, grads)


@component
class Cliff(Target):
    """Finite, with a gradient that is not."""

    def __call__(self, seen, clean, batch):
        return jnp.sqrt(jnp.abs(seen.log_ratio * 0.0))


TARGETS = [PolicyLoss(), ValueLoss(), Divergence(), LowValue(), Cliff()]


@component
class Chosen(Target):
    """One of the targets; a number says which, so that they share a program."""

    number: float = 0.0

    def __call__(self, seen, clean, batch):
        return jax.lax.switch(jnp.int32(self.number), TARGETS, seen, clean, batch)


FGSM, NOISE, PGD = range(3)


@component
class ChosenAttack(Attack):
    """One of the attacks; a number says which, so that they share a program."""

    number: float = PGD
    step_size: float = 0.4

    def perturbation(self, problem, key):
        ball = self.eps, self.norm
        climb = Pgd(*ball, steps=5, step_size=self.step_size)
        attacks = [one.perturbation for one in (Fgsm(*ball), Noise(*ball), climb)]
        moved = [functools.partial(attack, problem) for attack in attacks]
        return jax.lax.switch(jnp.int32(self.number), moved, key)


WARMUP = schedules.Ramp(initial=0.0, final=1.0, begin=0.0, length=0.0)
CLIMB = Pgd(EPS, L2(), steps=2, schedule=WARMUP)


def mixed(number=PGD, ratio=0.5):
    attack = ChosenAttack(EPS, schedule=WARMUP, number=number)
    return experiment(Mixed(attack, ratio=ratio, max_percent=75))


def mixed_sequences(ratio=0.5):
    return experiment(Mixed(CLIMB, ratio=ratio, max_percent=75), **SEQUENCES)


def regularized(coef=0.5):
    adversary = Regularizer(CLIMB, ratio=0.5, max_percent=75)
    return experiment(adversary, coef, **SEQUENCES)


EACH = pytest.mark.parametrize(
    "config",
    [mixed(), mixed_sequences(), regularized()],
    ids=["mixed, linear", "mixed, gru", "regularizer, gru"],
)


@EACH
def test_an_update_by_hand(config):
    """A1, A4, A6, R-A13, R-A15, R-A16: equal weights, the same rows, nothing leaks.

    Attacked rows weigh as much as others; the divergence is that of the same rows, with
    a mean of its own; the attack is a constant; a memory replays all of it.
    """
    run = first(config)
    learned, metrics, steps = recorded(run)
    assert len(steps) == STEPS
    hand = run.learner.params
    for batch, made in steps:
        shown = batch.obs[:, : made.mask.shape[1]]
        assert made.mask.any() and (made.obs != shown).any()
        hand = by_hand(run, hand, batch, made)
    chex.assert_trees_all_close(learned.learner.params, hand, rtol=0, atol=2e-5)
    assert metrics["sa_ppo/kl_divergence"] > 1e-4
    assert all(differs(hand, run.learner.params))


@pytest.mark.parametrize(
    "config",
    [mixed(FGSM, ratio=0.6), mixed_sequences(ratio=0.6), mixed(NOISE, ratio=0.6)],
    ids=["fgsm", "pgd, gru", "noise"],
)
def test_only_the_chosen_rows_are_attacked(config):
    """A1, A3, R-A15: others, and those without weight, stay the same to the bit."""
    _, metrics, steps = recorded(first(config))
    found = [attacked(config.adversary.attack.norm, *step) for step in steps]
    assert len(found) == STEPS
    for name, value in jax.tree.map(lambda *x: np.mean(x), *found).items():
        said = metrics[f"sa_ppo/{name}"]
        chex.assert_trees_all_close(said, value, rtol=1e-5)


def attacked(norm, batch, made):
    """What is to be said of a step that attacks the first six of ten chunks."""
    weighs = batch.weight > 0
    chunks, most = weighs.shape[1], made.mask.shape[1]
    chosen = weighs & (np.arange(chunks) < int(0.6 * chunks))
    chex.assert_trees_all_equal(made.mask, chosen[:, :most])
    delta = made.obs.astype(np.float64) - batch.obs[:, :most]
    chex.assert_trees_all_equal(delta[~made.mask], 0)
    size = np.abs(delta).max(axis=-1)
    if norm == L2():
        size = np.sqrt((delta**2).sum(axis=-1))
    size = size[made.mask]
    assert (size <= EPS + 1e-6).all() and (size > 0).all()
    return {
        "num_adversarial": chosen.sum(),
        "num_clean": weighs.sum() - chosen.sum(),
        "avg_perturbation_norm": size.mean(),
        "boundary_fraction": (np.abs(delta[made.mask]) > EPS - 1e-5).mean(),
    }


def test_every_row_is_attacked_as_often():
    """Rows are chosen at random, not by position."""
    run, rows = first(mixed(NOISE)), []
    key, *rest = experience(peaceful(run))
    for another in jax.random.split(key, 20):
        _, _, steps = learning(run, 0.0, another, *rest)
        rows += [batch.obs[0, :6, 0] for batch, _ in steps]
    _, counts = np.unique(np.concatenate(rows), return_counts=True)
    # 24 rows, each with probability ½ in each of 40 epochs: a deviation of 3.2.
    assert counts.size == 24 and counts.min() > 7 and counts.max() < 33


def test_rows_without_weight_influence_nobody():
    """R-A15: whatever they show, the others learn the same, and the same is said."""
    run = first(mixed())
    key, actor, steps, carries = experience(peaceful(run))

    def learned(number):
        obs = np.where(np.asarray(steps.weight)[..., None] > 0, steps.obs, number)
        shown = steps._replace(obs=np.float32(obs))
        after, said, _ = learning(run, 0.0, key, actor, shown, carries)
        said = {k: v for k, v in said.items() if k.startswith("sa_ppo/")}
        return after.learner.params, said

    chex.assert_trees_all_equal(learned(0.0), learned(7.0))


def beset(target, step_size=0.4, number=PGD):
    """An experiment with twins of any kind, and microbatches."""
    attack = ChosenAttack(EPS, L2(), number=number, step_size=step_size)
    adversary = Mixed(attack, target=Chosen(target))
    twins = {"critic": Quantile(4), "num_critics": 2}
    return experiment(adversary, **twins, num_microbatches=2)


def test_the_lower_critic_is_feared():
    """What is raised is minus the less that one of twins promises."""
    seen = forward(twins=2)
    twins = np.asarray(seen.value.outputs)[..., 0]
    feared = LowValue()(seen, seen, minibatch())
    chex.assert_trees_all_close(feared, -twins.min(axis=-1), rtol=1e-6)


@pytest.mark.parametrize("target", range(4), ids=map(repr, TARGETS[:4]))
def test_attacks_raise_their_target(target):
    """Far more than the noise does that they begin with, as steps of no length show."""
    climbed, noise = (
        recorded(first(beset(target, step_size)))[1]["sa_ppo/attack_success"]
        for step_size in (0.4, 1e-6)
    )
    assert climbed > 3 * max(noise, 0) and climbed > 1e-4


@pytest.mark.parametrize(
    "config",
    [beset(4, number=FGSM), beset(4)],
    ids=["fgsm", "pgd"],
)
def test_a_gradient_that_is_not_finite_counts_as_zero(config):
    """A3, R-A15: no step, but the start of the attack, and the update is taken."""
    _, metrics, _ = recorded(first(config))
    assert metrics["error/skipped_steps"] == 0
    begins_away = config.adversary.attack.number == PGD
    assert (metrics["sa_ppo/avg_perturbation_norm"] > 0) == begins_away
    assert metrics["sa_ppo/avg_perturbation_norm"] <= EPS


def test_the_divergence_moves_the_actor_and_nothing_else():
    """A6, R-A16: its gradient reaches every leaf of the actor."""
    without, base = (recorded(first(regularized(coef)))[0] for coef in (0.0, 1.0))
    old, new = without.learner.params, base.learner.params
    assert all(differs(old["actor"], new["actor"]))
    chex.assert_trees_all_equal(old["critic"], new["critic"])


@component
class Shift(Target):
    """The log-ratio of an action."""

    def __call__(self, seen, clean, batch):
        return seen.log_ratio


@pytest.mark.parametrize(("carry", "turned"), [(jnp.zeros(99), -1), ((), 1)])
def test_the_best_start_is_that_of_a_whole_sequence(carry, turned, key):
    """What the first of two steps gains by its x is lost twice at the second one.

    The parts of different starts are no attack on a memory. Without one, each step has
    the best of nine starts for itself.
    """

    def replay(rows):
        x = rows.obs[..., 0]
        return forward()._replace(log_ratio=jnp.stack([x[0], -2 * x[0]]))

    starts = Pgd(eps=1.0, steps=1, step_size=1e-6, restarts=9)
    adversary = Mixed(starts, ratio=1.0, max_percent=100, target=Shift())
    rows = minibatch(obs=jnp.zeros((2, 99, 1)), weight=jnp.ones((2, 99)), carry=carry)
    made = jax.jit(lambda key: adversary.perturb(replay, rows, key, 0.5, ALL, 1.0))(key)
    # The mean of the greatest of nine numbers in [−1, 1] is 0.8.
    chex.assert_trees_all_close(made.obs[0].mean(), turned * 0.8, rtol=0, atol=0.1)


def test_what_only_critics_read_is_not_attacked(key):
    """All numbers of what the actor reads go to the border, and no other is counted."""
    obs = {"sight": jnp.zeros((3, 2, 4)), "truth": jnp.zeros((3, 2, 1))}

    def replay(rows):
        seen = rows.obs["sight"].sum(axis=-1) + rows.obs["truth"][..., 0]
        return forward()._replace(log_ratio=seen)

    adversary = Mixed(Fgsm(eps=0.5), ratio=1.0, max_percent=100, target=Shift())
    reads = networks.ActorCritic(actor_obs=("sight",))
    made = adversary.perturb(replay, minibatch(obs=obs), key, 0.5, reads, 1.0)
    chex.assert_trees_all_equal(made.obs, obs | {"sight": obs["sight"] + 0.5})
    assert (made.sizes["sa_ppo/boundary_fraction"] == 1).all()


# Off is absent, a ratio of 0, a radius of 0, or a coefficient of 0.

RATIO, RADIUS, COEF = "adversary.ratio", "adversary.attack.eps", "terms.robust_kl.coef"
BEGIN = "adversary.attack.schedule.begin"
IDLE = [{RATIO: 0.0}, {RADIUS: 0.0}, {BEGIN: 0.5}]
PROGRESS = 0.49


@EACH
def test_an_inactive_adversary_is_none(config):
    """A2, R-A14: the same parameters to the bit, the same metrics, no rows.

    Before its warm-up is over, without rows or a radius, and, of a regularizer, without
    a coefficient; what is said of the attack is 0 then.
    """
    run, mixes = first(config), isinstance(config.adversary, Mixed)
    without, metrics, _ = recorded(peaceful(run), PROGRESS)
    for idle in (*IDLE, {RATIO: 0.0, COEF: 9.0} if mixes else {COEF: 0.0}):
        learned, said, _ = recorded(replaced(run, idle), PROGRESS)
        chex.assert_trees_all_equal(learned.learner.params, without.learner.params)
        shared = {name: said[name] for name in metrics}
        # Another program may add up in another order.
        chex.assert_trees_all_close(shared, metrics, rtol=1e-6)
        attacked = said["sa_ppo/num_adversarial"] > 0
        assert attacked == (idle == {COEF: 0.0})
        for name in (
            *("kl_divergence", "robust_kl_penalty", "avg_perturbation_norm"),
            *("attack_success", "boundary_fraction", "adversarial_ratio"),
        ):
            assert attacked or said[f"sa_ppo/{name}"] == 0
        _, said, _ = recorded(replaced(run, idle), 0.5)
        assert (said["sa_ppo/num_adversarial"] > 0) == (idle.keys() <= {BEGIN, COEF})


# Numbers: of members, of schedules, of a search.

MEMBERS = {
    RADIUS: [0.0, 0.1, 0.2, 0.4],
    RATIO: [0.5, 0.0, 0.33, 1.0],
    COEF: [0.5, 0.1, 0.0, 3.0],
}


def population_experiment(**changes):
    """Of 48 rows in each minibatch."""
    adversary = Mixed(Pgd(EPS), max_percent=100)
    return experiment(adversary, env=Wander(rest=1.0), num_steps=24, **changes)


@jax.jit
def four(run):
    """A population of members that are the same."""
    runs = jax.tree.map(lambda x: jnp.broadcast_to(x, (4, *x.shape)), run)
    return Population(runs, fitness=jnp.arange(4.0), waited=jnp.int32(0))


def advance(members):
    """Members after an update, and metrics of it `[P]`."""
    members, said = population.advance(members, Progress.at([0.0]), jnp.int32(1))
    return members, {name: np.asarray(each[0]) for name, each in said.items()}


def test_numbers_of_members_never_compile():
    """A1: each has its own ε, ratio and coefficient, and they may change."""
    run, compiled = tabular.drawn(population_experiment()), set()
    for turn in (1, 2):
        own = {path: np.roll(values, -turn) for path, values in MEMBERS.items()}
        eps, ratio, coef = own.values()
        _, said = advance(population.with_numbers(four(run), own))
        compiled.add(population.advance._cache_size())
        chex.assert_trees_all_close(said["sa_ppo/current_epsilon"], eps, rtol=1e-5)
        wanted = np.floor(48 * np.where(eps > 0, ratio, 0.0) + 1e-4)
        chex.assert_trees_all_equal(said["sa_ppo/num_adversarial"], wanted)
        chex.assert_trees_all_equal(said["sa_ppo/num_clean"], 48 - wanted)
        chex.assert_trees_all_close(
            said["sa_ppo/adversarial_ratio"], wanted / 48, rtol=0, atol=1e-6
        )
        kl = said["sa_ppo/kl_divergence"]
        chex.assert_trees_all_equal(kl > 0, wanted > 0)
        chex.assert_trees_all_close(
            said["sa_ppo/robust_kl_penalty"], coef * kl, rtol=1e-4
        )
    assert len(compiled) == 1


EXPERIMENT = """
from ppo_jax import Config, adversaries, networks, optimizers, schedules, terms
from ppo_jax.attacks.perturbations import Fgsm
from ppo_jax.envs.probes import TimeLimitChain

falling = schedules.Linear(final=1 / 3)
config = Config(
    env=TimeLimitChain(limit=3),
    num_envs=4,
    num_steps=6,
    num_epochs=1,
    num_minibatches=1,
    total_timesteps=24,
    phase_updates=1,
    eval_episodes=2,
    network=networks.ActorCritic(torso=networks.Mlp(hidden=())),
    terms=(terms.Surrogate(0.3, falling), terms.Value(), terms.RobustKL()),
    optimizer=optimizers.Sgd(learning_rate=0.5),
    adversary=adversaries.Mixed(Fgsm(0.3, schedule=falling)),
)
"""
"""A run in which ε and the clip range fall to a third."""


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    path = tmp_path_factory.mktemp("attacked") / "experiment.py"
    path.write_text(EXPERIMENT)
    return path


@pytest.fixture(scope="module")
def live(path):
    """The folder of a run of so many steps, its rows, and its warnings."""

    @functools.cache
    def live(steps):
        run_dir = path.parent / str(steps)
        done = called("train", path, "--run-dir", run_dir, "--total-timesteps", steps)
        assert done.returncode == 0, done.stderr
        return run_dir, rows(run_dir), done.stderr

    return live


@pytest.fixture(scope="module")
def lived(live):
    return live(24 * 10 + 5)[1]


def test_the_radius_follows_the_length_of_the_run(lived):
    """A2, R-A14: total_timesteps // (num_steps · num_envs) updates, nothing compounds.

    The end of a schedule is reached at the last update, but for the learning rate: at
    its end, 0, nothing would be learned.
    """

    def said(name):
        return np.array([row[name] for row in lived])

    assert len(lived) == (24 * 10 + 5) // (6 * 4)
    factor = np.linspace(1, 1 / 3, 10)
    chex.assert_trees_all_close(said("sa_ppo/current_epsilon"), 0.3 * factor, rtol=1e-5)
    chex.assert_trees_all_close(said("train/clip_range"), 0.3 * factor, rtol=1e-5)
    rate = said("train/learning_rate")
    chex.assert_trees_all_close(rate, rate[0] * (1 - np.arange(10) / 10), rtol=1e-5)


def test_one_update_alone_is_the_first_of_its_schedules(live):
    """A2: neither a quotient by 0 nor the end."""
    _, (row,), _ = live(24)
    assert row["sa_ppo/current_epsilon"] == pytest.approx(0.3)
    assert row["train/clip_range"] == pytest.approx(0.3)
    assert row["error/skipped_steps"] == 0


def test_samples_add_up_over_steps(lived):
    for row in lived:
        steps = row["train/n_minibatches_done"]
        number, others = (row[f"sa_ppo/num_{k}"] for k in ("adversarial", "clean"))
        assert row["sa_ppo/adversarial_samples"] == steps * number > 0
        assert row["sa_ppo/clean_samples"] == steps * others > 0
        assert row["sa_ppo/attack_count"] == steps
        assert all(row[name] is not None for name in row if "sa_ppo/" in name)


def test_searched_numbers_are_in_force_at_the_next_update():
    """A1: ε, ratio and coefficient of members that copied."""
    space = {
        "optimizer.learning_rate": Uniform(0.1, 0.5),
        "adversary.attack.eps": Uniform(0.01, 0.15, factor=1.15, resample=0.3),
        "adversary.ratio": Uniform(0.2, 0.8, factor=1.1),
        "terms.robust_kl.coef": Uniform(0.01, 0.5),
    }
    pbt = PBT(space, size=4, selector=Truncation(ratio=0.5))
    config = population_experiment(pbt=pbt)
    spread = {path: np.linspace(x.low, x.high, 4) for path, x in space.items()}
    members = population.with_numbers(four(tabular.drawn(config)), spread)
    members, _ = advance(members)
    keys = jax.random.split(jax.random.key(9), 4)
    members, generation = population.evolve(config.pbt, members, keys)
    assert generation.copied.any()
    found = jax.device_get(generation.numbers)
    _, said = advance(members)
    chex.assert_trees_all_close(
        said["sa_ppo/current_epsilon"], found["adversary.attack.eps"], rtol=1e-5
    )
    wanted = np.floor(48 * found["adversary.ratio"] + 1e-4)
    chex.assert_trees_all_equal(said["sa_ppo/num_adversarial"], wanted)
    chex.assert_trees_all_close(
        said["sa_ppo/robust_kl_penalty"] / said["sa_ppo/kl_divergence"],
        found["terms.robust_kl.coef"],
        rtol=1e-4,
    )


# What cannot be.


@component
class Whole(Wander):
    """Sees whole numbers."""

    def reset(self, key):
        obs, state = super().reset(key)
        return obs.astype(jnp.int32), state


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: Mixed(ratio=0.6), r"Mixed.ratio: .*max_percent = 50, got 0.6"),
        (lambda: Mixed(max_percent=0), "Mixed.max_percent: expected 1 to 100"),
        (lambda: Regularizer(ratio=-0.1), "Regularizer.ratio"),
        (lambda: terms.RobustKL(-1.0), "RobustKL.coef"),
        (lambda: experiment(Mixed(max_percent=3, ratio=0.02)), "of the 12 chunks"),
        (lambda: experiment(Mixed(ratio=0.02)), "0, or at least 1 of the 12 chunks"),
        (
            lambda: experiment(
                Mixed(ratio=0.25, max_percent=25),
                **{"num_envs": 2, "num_steps": 9, "num_minibatches": 1},
                **{"num_microbatches": 3, "devices_per_member": 2},
            ),
            "at least 1 of the 3 chunks",
        ),
        (lambda: experiment(Regularizer(), terms=(terms.Surrogate(),)), "a RobustKL"),
        (lambda: experiment(terms=(terms.RobustKL(),)), "Config.adversary: expected"),
        (
            lambda: experiment(Mixed(), env=Whole(), obs_clip=None),
            "observations with floats",
        ),
    ],
)
def test_impossible_adversaries_are_errors(make, said):
    with pytest.raises(ValueError, match=said):
        make()


@pytest.mark.parametrize(
    "make",
    [
        lambda: Opponent(harm=divergence),
        lambda: Mixed(Fgsm(), target=Divergence()),
        lambda: Regularizer(Pgd(start=0.0)),
    ],
)
def test_an_attack_from_where_a_divergence_is_flat_warns(make):
    with pytest.warns(UserWarning, match="attack: a divergence has no gradient"):
        make()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Regularizer(), Mixed(Fgsm()), Opponent(Pgd(), divergence), Opponent(Fgsm())


def test_raw_observations_warn():
    with pytest.warns(UserWarning, match="not normalised") as caught:
        experiment(Mixed(), obs_clip=None)
    assert [w.filename for w in caught] == [__file__]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        experiment(Mixed(), obs_clip=10.0)
        experiment(obs_clip=None)


def test_a_run_warns_once_or_says_what_is_wrong(path, live):
    run_dir, _, said = live(24)
    assert said.count("observations are not normalised") == 1
    for options, times in (((), 1), (("--obs-clip", 10), 0)):
        # The folder is taken, which is found once the experiment is read.
        done = called("train", path, "--run-dir", run_dir, *options)
        assert done.returncode == 2 and str(run_dir) in done.stderr
        assert done.stderr.count("not normalised") == times
    for options, said in (
        (("--adversary.ratio", 0.9), "max_percent = 50"),
        (("--adversary.attack.eps", -1), "a finite number ≥ 0"),
        (("--adversary.ratio", 0.01, "--obs-clip", 10), "Config.adversary.ratio"),
    ):
        done = called("train", path, *options)
        assert done.returncode == 2 and "Traceback" not in done.stderr
        assert said in done.stdout + done.stderr


@component
class Saying(Target):
    """Says what it is told to say."""

    words: object = None

    def __call__(self, seen, clean, batch):
        return self.words


@pytest.mark.parametrize(
    "words", [None, jnp.zeros(()), jnp.zeros(2), jnp.zeros((3, 1))]
)
def test_a_target_is_a_number_per_example(words, key):
    rows = minibatch(obs=jnp.zeros((3, 2, 1)))
    adversary = Mixed(Noise(), ratio=1.0, max_percent=100, target=Saying(words))
    with pytest.raises(Misfit, match=r"^Saying: expected the shape \(3, 2\), a number"):
        adversary.perturb(lambda rows: forward(), rows, key, 0.5, ALL, 1.0)
