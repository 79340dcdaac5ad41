"""Programs are those of any platform, wherever they are made.

What a GPU or a TPU would compile is exported by a machine that has none, and read. No
program may ask for the host, a 64-bit float, or a routine that not every platform has.
"""

import re
from pathlib import Path

import brief
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from brought import or_skip
from jax.extend.core import ClosedJaxpr, Jaxpr
from jax.sharding import AbstractDevice, AbstractMesh, AxisType

from ppo_jax import networks
from ppo_jax.envs.probes import RecallCue
from ppo_jax.host.devices import mesh, streams
from ppo_jax.host.loop import training
from ppo_jax.host.run_dir import experiment
from ppo_jax.schedules import Progress

FOLDER = Path(__file__).parents[2] / "experiments"
PATHS = sorted(
    path
    for path in FOLDER.glob("*.py")
    if "\nconfig = " in (text := path.read_text()) and "gymnasium/" not in text
)
"""But for what is stepped on the host, between programs, and a loop of one's own."""
PLATFORMS = ("cpu", "cuda", "tpu")
QUICK = {"cartpole": "float32", "sa_memory": "bfloat16"}
"""Experiments whose programs are read every time, and what they compute in."""

CALLS = frozenset[str]()
"""Custom calls that a program may make: none is needed. Random numbers and orders are
written out, and how members lie is said by operations of Shardy."""
HOST = ("send", "recv", "infeed", "outfeed")
"""How a program talks with its host, where that is no call."""


LSTM = networks.ActorCritic(
    torso=networks.Mlp(hidden=(8,)), memory=networks.Lstm(size=4)
)


@pytest.fixture(autouse=True)
def beside(monkeypatch):
    """Experiments may import others that lie beside them."""
    monkeypatch.syspath_prepend(FOLDER)


@pytest.fixture
def exported(monkeypatch):
    """The text of a program for platforms, made without asking where it is made."""

    def ask():
        raise AssertionError("a program asks which platform makes it")

    def export(function, platforms, *arguments):
        with monkeypatch.context() as patch:
            for name in ("default_backend", "devices", "local_devices"):
                patch.setattr(jax, name, lambda *_: ask())
            made = jax.export.export(function, platforms=platforms)(*arguments)
        assert made.platforms == tuple(platforms)
        return made.mlir_module()

    return export


def foreign(text):
    """What a program has that some device lacks."""
    calls = set(re.findall(r"custom_call @([\w.$]+)", text))
    calls |= set(re.findall(r'call_target_name = "([^"]+)"', text))
    found = calls - CALLS | {name for name in HOST if f"stablehlo.{name}" in text}
    return found | set(re.findall(r"\b(?:\d+x)*(f64)>", text))


@pytest.fixture
def gpu(monkeypatch):
    """One device, for which programs are made as for a GPU."""
    device = AbstractDevice("NVIDIA H100", 132, "gpu")

    def of(grid, axes):
        how = (AxisType.Auto,) * len(axes)
        return AbstractMesh(grid.shape, axes, axis_types=how, abstract_device=device)

    monkeypatch.setattr(mesh, "Mesh", of)
    return mesh.Layout([device])


def programs(config, layout):
    """What a run compiles, and what it is given, by what it does."""
    members = jax.eval_shape(lambda: training.start(config))
    progress = Progress.of(np.arange(1), config.num_updates)

    def play(learners, key):
        return layout.run_episodes(learners, key, config.eval_episodes, True)

    key = streams.evaluation(config.seed, 0)
    keys = streams.generation(config.seed, 0, config.num_members)
    found = {
        "training": (layout.advance, members, progress, np.int32(1)),
        "evaluation": (jax.jit(play), members.runs.learner, key),
    }
    if config.pbt is not None:
        found["generation"] = (layout.evolve, config.pbt, members, keys)
    return found


def check(config, layout, exported):
    for name, (function, *arguments) in programs(config, layout).items():
        text = exported(function, PLATFORMS, *arguments)
        assert text.count("stablehlo.") > 100
        assert not foreign(text), name


@pytest.mark.parametrize("name", QUICK)
def test_some_experiments_are_programs_of_any_platform(name, gpu, exported):
    """One has a memory and is attacked; all of them are below."""
    options = [f"--network.compute-dtype={QUICK[name]}"]
    check(experiment.load(FOLDER / f"{name}.py", options), gpu, exported)


def test_what_makes_members_factorises_and_no_more(gpu, exported):
    """By a library, which every platform has: weights are orthogonal."""
    config = experiment.load(FOLDER / "cartpole.py", [])
    making = gpu.making(training.start, config)
    text = exported(making.program, PLATFORMS, *making.args)
    factorised = exported(jax.jit(jnp.linalg.qr), PLATFORMS, X)
    assert foreign(text) == foreign(factorised)


def loops(jaxpr, length):
    """Of all loops of a length: how many arrays they carry, and their steps at once."""
    for equation in jaxpr.eqns:
        how = equation.params
        if equation.primitive.name == "scan" and how["length"] == length:
            yield carried(equation), how["unroll"]
        for inside in jax.tree.leaves(list(how.values()), is_leaf=is_program):
            if is_program(inside):
                yield from loops(getattr(inside, "jaxpr", inside), length)


def carried(loop):
    """How many results a loop hands from step to step; of others it keeps all steps."""
    inside = loop.params["jaxpr"].jaxpr.outvars
    pairs = zip(loop.outvars, inside, strict=True)
    return sum(one.aval.ndim == step.aval.ndim for one, step in pairs)


def is_program(part):
    return isinstance(part, Jaxpr | ClosedJaxpr)


@pytest.fixture
def cpu():
    return mesh.Layout(jax.local_devices()[:1])


@pytest.mark.parametrize(
    ("where", "arrays", "at_once"), [("gpu", 1, 16), ("cpu", 11, 4)]
)
def test_loops_of_a_gpu_are_of_few_and_large_kernels(where, arrays, at_once, request):
    """A rollout carries an array of all, or one per leaf: each array is copied.

    Advantages are of many steps at once.
    """
    config = experiment.load(FOLDER / "cartpole.py", ["--num-envs=64"])
    layout = request.getfixturevalue(where)
    function, *arguments = programs(config, layout)["training"]
    found = {*loops(function.trace(*arguments).jaxpr.jaxpr, config.num_steps)}
    assert found == {(arrays, 1), (1, at_once)}


@pytest.mark.parametrize(("where", "at_once"), [("gpu", 8), ("cpu", 1)])
def test_a_gpu_remembers_several_steps_at_once(where, at_once, request):
    """Forwards, with h and c, and backwards, with their gradients."""
    config = brief.experiment(RecallCue(), network=LSTM)
    layout = request.getfixturevalue(where)
    function, *arguments = programs(config, layout)["training"]
    found = [*loops(function.trace(*arguments).jaxpr.jaxpr, config.chunk)]
    assert found.count((2, at_once)) >= 2


@pytest.mark.slow
@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.stem)
def test_every_experiment_is_a_program_of_any_platform(path, gpu, exported):
    with or_skip():
        config = experiment.load(path, [])
    check(config, gpu, exported)


X = jax.ShapeDtypeStruct((4, 3), jnp.float32)


def doubled(x):
    return x.astype(jnp.float64) * 2


@pytest.mark.parametrize("platform", PLATFORMS)
def test_what_is_no_program_of_a_platform_is_found(platform, exported):
    """A 64-bit float, and a factorisation by a library."""
    with jax.enable_x64(True):
        assert foreign(exported(jax.jit(doubled), [platform], X)) == {"f64"}
    text = exported(jax.jit(jnp.linalg.qr), [platform], X)
    (called, *_) = foreign(text)
    assert re.match("lapack_|cusolver_|Qr|Product", called)
    assert called in foreign(exported(jax.jit(jnp.linalg.qr), PLATFORMS, X))
    assert not foreign(exported(jax.jit(jnp.sin), [platform], X))


@pytest.mark.parametrize("platform", PLATFORMS)
def test_a_call_to_the_host_is_found(platform, exported):
    """By the export itself, and in the text of what this machine compiles."""

    def told(x):
        jax.debug.callback(lambda x: None, x)
        return x

    said = "host_callbacks" if platform == "cpu" else "specified backend cpu"
    with pytest.raises((NotImplementedError, ValueError), match=said):
        exported(jax.jit(told), [platform], X)
    assert foreign(jax.jit(told).lower(X).as_text())
    assert foreign("%0 = stablehlo.send %x, %token") == {"send"}


@pytest.mark.parametrize(
    "asked", [lambda: jax.default_backend(), lambda: jax.devices()[0].platform]
)
def test_a_program_that_asks_for_its_platform_is_found(asked, exported):
    def choosy(x):
        return x if asked() == "cpu" else 2 * x

    with pytest.raises(AssertionError, match="asks which platform"):
        exported(jax.jit(choosy), ["cuda"], X)
