"""What computes in bfloat16 or with few digits, and what does not."""

import dataclasses
import re

import chex
import jax
import jax.numpy as jnp
import pytest
from brief import experiment as brief

from ppo_jax import (
    adversaries,
    attacks,
    critics,
    networks,
    opponents,
    optimizers,
    schedules,
    terms,
)
from ppo_jax.component import component, program
from ppo_jax.envs.probes import RecallCue, Target
from ppo_jax.host.loop import training
from ppo_jax.host.process.console import QUIET, Console
from ppo_jax.host.run_dir import experiment, files, storing
from ppo_jax.host.run_dir.checkpoint import Checkpointer
from ppo_jax.host.run_dir.recording import Folder
from ppo_jax.normalization.return_scale import ReturnNormalization
from ppo_jax.ppo import learner
from ppo_jax.schedules import Progress

SHORT = {"compute_dtype": "bfloat16"}
MLP = networks.Mlp(hidden=(24,))
ATOMS = 7
"""Numbers of a critic, as many as nothing else has."""
CASES = {
    "choices, a memory and twin critics": (
        RecallCue(num_cues=5),
        {"torso": MLP, "memory": networks.Lstm(size=24), "critic_hidden": (24,)},
        {"num_critics": 2, "return_scale": ReturnNormalization()},
    ),
    "a shared memory": (
        RecallCue(num_cues=5),
        {"torso": MLP, "memory": networks.Gru(size=24), "shared": True},
        {},
    ),
    "real actions under attack": (
        "Pendulum-v1",
        {"torso": MLP, "head": networks.TanhHead()},
        {
            "obs_clip": 5.0,
            "adversary": adversaries.Mixed(),
            "opponent": opponents.Opponent(attacks.Pgd(0.1, steps=2)),
        },
    ),
    "grids": (
        "Breakout-MinAtar",
        {"torso": networks.Cnn(channels=(24,), hidden=(24,))},
        {},
    ),
}


def made(env, parts, fields, **network):
    """An experiment with critics of seven numbers and a network of these parts."""
    return brief(
        env,
        network=networks.ActorCritic(**parts, **network),
        critic=critics.Quantile(ATOMS, clip=critics.PerQuantile()),
        terms=(terms.Surrogate(), terms.Value(clip_eps=0.2), terms.Entropy()),
        num_minibatches=4,
        **fields,
    )


def types_of_floats(tree):
    types = {x.dtype for x in jax.tree.leaves(tree)}
    return {str(x) for x in types if jnp.issubdtype(x, jnp.floating)}


def traced(config):
    """A member before and after an update, metrics, and what a GPU is to compile."""
    begin = jax.eval_shape(lambda: learner.init(program(config), jax.random.key(0)))
    lowered = for_gpus(learner.iteration, begin, Progress.at(0.0))
    return begin, *lowered.out_info, lowered.as_text()


def for_gpus(function, *args):
    return jax.jit(function).trace(*args).lower(lowering_platforms=("cuda",))


def products(text):
    """Types and shapes of what is multiplied, and whether all digits are."""
    operation = r"stablehlo\.(?:dot_general|convolution)(.*): \((.*)\) ->"
    for how, both in re.findall(operation, text):
        left, right = (
            (dtype, tuple(int(n) for n in sizes.split("x") if n))
            for sizes, dtype in re.findall(r"tensor<((?:\d+x)*)(\w+)>", both)
        )
        yield left, right, "HIGHEST, HIGHEST" in how


def sums(text):
    """Types of the floats that are added up to fewer."""
    operation = r"applies stablehlo\.add across .*: \(tensor<(?:\d+x)+(f\w+|bf16)>"
    return {*re.findall(operation, text)}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_only_hidden_layers_compute_in_short_floats(case):
    """In a whole update, forward and backward.

    Matrices of last layers have an output for every choice or component of an action,
    or for every number of a critic; no other matrix is as small.
    """
    config = made(*case, **SHORT)
    count = config.network.head.num_outputs(config.env.action_space)
    before, after, metrics, text = traced(config)
    chex.assert_trees_all_equal_shapes_and_dtypes(before, after)
    assert types_of_floats((after, metrics)) == {"float32"}
    kinds = set()
    for (left, a), (right, b), whole in products(text):
        last = bool(len(a) == 2 and {count, ATOMS} & {*a, *b})
        assert left == right == ("f32" if last else "bf16"), (a, b)
        assert whole is last, (a, b)
        kinds.add(left)
    assert kinds == {"f32", "bf16"}
    assert sums(text) == {"f32"}  # Of biases, too, over the rows of a minibatch.


@component
class Turned(Target):
    """Shows a point, and remembers it, as a matrix turns it."""

    size: int = 3

    def draw(self, key):
        return self.turned(super().draw(key))

    def observe(self, state):
        return self.turned(state)

    def renew(self, key, state):
        return self.turned(state)

    def turned(self, x):
        return jnp.eye(3)[::-1] @ x


def test_environments_multiply_with_all_digits():
    """Where they begin, in every step, before a rollout, and anew after a fault."""
    config = program(made(Turned(), {"torso": MLP}, {}))
    start = for_gpus(learner.init, config, jax.random.key(0)).as_text()
    *_, text = traced(config)
    for count, said in ((2, start), (6, text)):
        own = [whole for (_, a), _, whole in products(said) if a == (3, 3)]
        assert own == [True] * count


def test_what_is_said_is_in_long_floats():
    """Logits, predictions and carries, of observations of either type."""
    config = made(*CASES["choices, a memory and twin critics"], **SHORT)
    network = config.build()
    params = jax.eval_shape(network.init, jax.random.key(0))
    carry = network.initial_carry(2)
    for dtype in (jnp.float32, jnp.bfloat16):
        obs, reset = jnp.ones((3, 2, 6), dtype), jnp.zeros((3, 2), bool)
        said = jax.eval_shape(network.apply, params, carry, obs, reset)
        assert types_of_floats(said) == {"float32"}


def test_an_experiment_in_long_floats_has_no_short_ones():
    *_, text = traced(made(*CASES["choices, a memory and twin critics"]))
    assert "bf16" not in text


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """Run directories of an experiment in short floats: whole, and in two parts."""
    env, parts, _ = CASES["a shared memory"]
    config = brief(
        env,
        network=networks.ActorCritic(**parts, **SHORT),
        terms=(terms.Surrogate(), terms.Value()),
        optimizer=optimizers.Adam(schedule=schedules.Constant()),
    )
    half = dataclasses.replace(config, total_timesteps=config.total_timesteps // 3)
    home = tmp_path_factory.mktemp("runs")
    training.train(config, Folder(home / "whole"), Console(QUIET))
    training.train(half, Folder(home / "parts"), Console(QUIET))
    training.train(config, Folder(home / "parts", resumes=True), Console(QUIET))
    return config, home


def restored(config, run_dir):
    checkpoints = Checkpointer(run_dir)
    _, members, _ = checkpoints.read(lambda: training.start(config))
    checkpoints.close()
    return members


def test_a_run_in_short_floats_goes_on(runs):
    """What is kept is in long floats, and the same to the bit."""
    config, home = runs
    whole, parts = (restored(config, home / name) for name in ("whole", "parts"))
    chex.assert_trees_all_equal(whole, parts)
    assert types_of_floats(whole) == {"float32"}
    last = files.rows(home / "whole" / "metrics.jsonl")[-1]
    assert last["train/n_minibatches_done"] > 0 and not last["error/skipped_steps"]


def test_the_type_of_a_run_stays(runs, tmp_path):
    """It is part of what the program is compiled for."""
    config, _ = runs
    storing.store(tmp_path, {}, [], config)
    experiment.require_same_structure(tmp_path, config)
    network = dataclasses.replace(config.network, compute_dtype="float32")
    other = dataclasses.replace(config, network=network)
    said = r"network\.compute_dtype: 'bfloat16' -> 'float32'"
    with pytest.raises(experiment.ExperimentError, match=said):
        experiment.require_same_structure(tmp_path, other)
