"""Every field of an experiment does something: none is read by nobody."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from brief import signs

from ppo_jax import (
    adversaries,
    attacks,
    controllers,
    critics,
    networks,
    optimizers,
    terms,
)
from ppo_jax.attacks.opponents import Opponent, divergence
from ppo_jax.component import as_arrays, component, is_component, numbers
from ppo_jax.config import Config
from ppo_jax.envs.env import Box
from ppo_jax.envs.probes import Target, TimeLimitChain
from ppo_jax.metrics.explained import Appraisal
from ppo_jax.normalization.advantages import PerEnv
from ppo_jax.normalization.return_scale import ReturnNormalization
from ppo_jax.ppo import learner, population
from ppo_jax.schedules import Bounded, Cosine, Linear, Progress, Ramp, Warmup
from ppo_jax.transforms import noise, upgd, vgs

SIZES = {
    "num_envs": 4,
    "num_steps": 8,
    "num_epochs": 2,
    "num_minibatches": 4,
    "total_timesteps": 3200,
}


@component
class Pushed(TimeLimitChain):
    """The chain, with real actions."""

    @property
    def action_space(self):
        return Box((-1.0,), (1.0,))


RAMP = Ramp(0.9, 0.5, 0.1, 0.6)
EVERYTHING = Config(
    env=Pushed(limit=3, negative=0.5),
    obs_clip=0.8,
    return_scale=ReturnNormalization(
        rate=0.3, max_step=0.2, min_std=0.9, min_returns=1
    ),
    network=networks.ActorCritic(torso=networks.Mlp(hidden=())),
    critic=critics.Quantile(3, 0.5, clip=critics.MeanAndVariance(1.01)),
    terms=(
        terms.Surrogate(0.01, RAMP, dual_clip=1.02),
        terms.Value(
            0.6,
            0.01,
            controllers.ClipGate(1.0, -1.0),
            controllers.PoorValueScale(0.9, 0.5, 0.4),
        ),
        terms.Entropy(0.02),
        terms.KlPenalty(
            controllers.KlPid(1.5e-3, 0.5, 0.3, 0.5005, 2.0, 0.4, 0.2, 0.9)
        ),
        terms.AdvantageWeighted(0.1, 0.8, 1.5, RAMP),
        terms.CVaR(0.3, clip_eps=0.01, winsor=0.1, coef=0.4),
        terms.PredictedCVaR(0.1, 0.3),
    ),
    early_stop=controllers.KlStop(
        5e-4,
        absolute=50.0,
        consecutive=4.0,
        share=0.5,
        smoothing=controllers.Ema(0.6),
        budget=controllers.EpochBudget(0.6, 1.2),
    ),
    optimizer=optimizers.AdaptiveUPGD(
        learning_rate=1e-1,
        schedule=Linear(0.5),
        sampler=signs,
        vgs=optimizers.VGS(warmup_steps=1, floor=0.3, cap=2.0),
        weight_decay=0.01,
        sigma=1e-3,
        noise_scale=noise.relative,
        noise_beta=0.5,
        min_noise_std=1e-2,
        temperature=0.7,
        step_multiplier=1.5,
    ),
    **SIZES,
)
ANOTHER = Config(
    env=Target(size=2),
    gae_lambda=0.8,
    obs_clip=0.8,
    network=networks.ActorCritic(
        torso=networks.Mlp(hidden=()), head=networks.TanhHead()
    ),
    critic=critics.Categorical(5, -2.0, 2.0, clip=critics.MeanOnly()),
    terms=(
        terms.Surrogate(0.1, Warmup(0.5, Cosine(0.3))),
        terms.Value(clip_eps=0.02, gate=controllers.ClipGate()),
        terms.AdaptiveEntropy(
            controllers.EntropySchedule(
                *(0.03, 0.01, 8.5, 0.0),
                plateau=controllers.Plateau(2, 0.5, 2.0),
                boost=1.15,
                boost_patience=0.0,
                boost_cap=1.2,
            )
        ),
        terms.Kl(0.05),
        terms.CVaRConstraint(
            *(0.3, terms.Returns(), 0.01),
            winsor=0.05,
            limit=0.5,
            learning_rate=0.1,
            max_dual=3.0,
            estimate=terms.Predicted(through=0.3),
        ),
        terms.RobustKL(0.7),
    ),
    opponent=Opponent(
        attacks.Pgd(2.0, low=-0.7, high=0.7, schedule=RAMP, steps=1), share=0.8
    ),
    adversary=adversaries.Mixed(
        attacks.Pgd(0.3, low=-0.9, high=0.9, schedule=RAMP),
        ratio=0.3,
        max_percent=49,
    ),
    early_stop=controllers.KlStop(1e-4, absolute=2.0, share=None),
    optimizer=optimizers.AdamW(
        1e-2,
        max_grad_norm=0.3,
        schedule=Bounded(Linear(), floor=0.4, cap=0.9),
        weight_decay=0.1,
        kl_adaptive=optimizers.KlAdaptive(5e-5, 1.5, 1.3, floor=0.7, cap=1.5),
    ),
    **SIZES,
)
UPDATES = 5
ONE_STEP = {"gamma", "gae_lambda"}
"""What does nothing where episodes are one step long."""
ALL_EPOCHS = {"early_stop.budget.calm"}
"""What does nothing where a stop costs no epochs."""


def candidates(number):
    """Other values that a number might have."""
    return [number * 2, number / 2, number + 0.2, -number, 0.0, 0.95, 3.0, 100.0]


def allowed(config, path, number):
    """Whether the experiment can be constructed with another number."""
    try:
        rebuilt(config, path.split("."), number)
    except ValueError:
        return False
    return True


def rebuilt(node, path, value):
    """The component with a value somewhere, every component checked again."""
    if not path:
        return value
    name, *rest = path
    if isinstance(node, tuple):
        index = int(name)
        new = rebuilt(node[index], rest, value)
        return (*node[:index], new, *node[index + 1 :])
    return dataclasses.replace(
        node, **{name: rebuilt(getattr(node, name), rest, value)}
    )


def members(config):
    """The paths of numbers, and experiments in which one of them is another, `[P]`."""
    known = numbers(config)
    changes = [
        (path, other)
        for path, number in known.items()
        for other in candidates(number)
        if other != number and allowed(config, path, other)
    ]
    paths = ["", *(path for path, _ in changes), ""]
    many = {path: np.full(len(paths), x, np.float32) for path, x in known.items()}
    for member, (path, other) in enumerate(changes, start=1):
        many[path][member] = other
    structure = jax.tree.structure(config)
    return paths, jax.tree.unflatten(structure, [many[path] for path in known])


@pytest.mark.parametrize(
    ("config", "expected"),
    [(EVERYTHING, set()), (ANOTHER, ONE_STEP | ALL_EPOCHS)],
    ids=["everything", "another"],
)
def test_every_number_does_something(config, expected):
    """PROP-0, P12: all in one program, which starts and trains agents that differ.

    The first and the last member are the experiment itself.
    """
    paths, many = members(config)
    key = jax.random.key(0)
    runs = population.init(many, jnp.broadcast_to(key, len(paths)))
    began = arrays(runs)
    progress = Progress.of(np.arange(UPDATES), UPDATES)
    runs, _ = population.advance(runs, progress, jnp.int32(UPDATES))
    ended = [*began, *arrays(runs)]
    for leaf in ended:
        np.testing.assert_array_equal(leaf[0], leaf[-1])
    differs = np.any([rows_differ(leaf) for leaf in ended], axis=0)
    idle = set(paths) - {
        path for path, differ in zip(paths, differs, strict=True) if differ
    }
    assert idle == {"", *expected}


def arrays(runs):
    """What members are, except for the experiment itself, `[P, ...]`."""
    known = runs.runs.learner.replace(config=())
    return [np.asarray(x) for x in jax.tree.leaves((known, runs.runs.actor))]


def rows_differ(leaf):
    apart = leaf != leaf[:1]
    if np.issubdtype(leaf.dtype, np.floating):
        apart &= ~(np.isnan(leaf) & np.isnan(leaf[:1]))
    return apart.reshape(len(leaf), -1).any(axis=1)


FUNCTIONS = {
    "statistic": vgs.second_moment,
    "noise_scale": noise.gradient_norm,
    "sampler": noise.hashed_normal,
    "normalize": upgd.global_max,
    "combine": upgd.non_protecting,
    "harm": divergence,
}
OPTIONAL = {
    "appraisal": Appraisal(),
    "obs_clip": 5.0,
    "return_scale": ReturnNormalization(),
    "standardization": PerEnv(),
    "chunk_length": 4,
    "memory": networks.Gru(4),
    "clip": critics.MeanOnly(),
    "early_stop": controllers.KlStop(0.1),
    "vgs": optimizers.VGS(),
    "kl_adaptive": optimizers.KlAdaptive(),
    "plateau": controllers.Plateau(),
    "poor": controllers.PoorValueScale(),
    "gate": controllers.ClipGate(),
}
ABSENT = {"early_stop": controllers.EarlyStop()}


def structures(node, path=()):
    """Paths of all that is no number, with other things that might be there."""
    for field in dataclasses.fields(node):
        value, here = getattr(node, field.name), (*path, field.name)
        if field.metadata.get("host"):
            continue
        if is_component(value):
            yield from structures(value, here)
        if isinstance(value, tuple) and value and is_component(value[0]):
            yield here, [value[:-1]]
            for index, part in enumerate(value):
                yield from structures(part, (*here, str(index)))
        elif others := alternatives(field.name, value):
            yield here, others


def alternatives(name, value):
    if name in FUNCTIONS:
        return [FUNCTIONS[name]]
    absent = ABSENT.get(name)
    if value == absent:
        return [OPTIONAL[name]] if name in OPTIONAL else [0.5, 1.5]
    if name in OPTIONAL:
        return [absent]
    if isinstance(value, str):
        return ["relu", "bfloat16"]
    if isinstance(value, int):
        return [value + 1, 2 * value]
    return [(*value, 3)] if isinstance(value, tuple) else []


def program(config):
    """The text of what starts a member and of what trains it."""
    config = as_arrays(config)
    run = jax.eval_shape(learner.init, config, jax.random.key(0))
    begins = jax.tree.map(lambda x: (x.shape, str(x.dtype)), run.replace(learner=()))
    known = jax.tree.map(lambda x: x.shape, run.learner.replace(config=()))
    trains = jax.make_jaxpr(learner.iteration)(run, Progress.at(0.0))
    return str(begins), str(known), str(trains)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:Config")
@pytest.mark.parametrize("config", [EVERYTHING, ANOTHER], ids=["everything", "another"])
def test_every_structure_is_compiled_for(config):
    """PROP-0: another one is another program, or an error that says why."""
    deep = rebuilt(config, ["network", "torso"], networks.Mlp(hidden=(4,)))
    base, idle = program(deep), []
    for path, others in structures(deep):
        programs = []
        for other in others:
            try:
                programs.append(program(rebuilt(deep, path, other)))
            except (ValueError, TypeError):
                continue
            break
        if base in programs:
            idle.append(".".join(path))
    assert not idle
