"""Programs of runs before, and all that they must not be taken for."""

import dataclasses
import importlib
import shutil
import sys
import warnings
from pathlib import Path
from types import ModuleType, SimpleNamespace

import brief
import chex
import flax
import jax
import numpy as np
import pytest
from jax import monitoring
from jax._src import cache_key, compilation_cache
from jax.tree_util import Partial
from newborn import newborn

from ppo_jax import component, networks, optimizers, terms
from ppo_jax.arrays import devices
from ppo_jax.envs.probes import TimeLimitChain
from ppo_jax.envs.trading.sources import PriceFile
from ppo_jax.envs.trading.trading import Trading
from ppo_jax.host.agents import fitting
from ppo_jax.host.devices import mesh, streams
from ppo_jax.host.loop import evaluation, phases, training
from ppo_jax.host.loop.readiness import ready
from ppo_jax.host.programs import recall, sources, store
from ppo_jax.host.programs.compiling import Compilation
from ppo_jax.host.run_dir import experiment, script
from ppo_jax.host.run_dir.recording import Memory
from ppo_jax.pbt import PBT
from ppo_jax.pbt.ranges import Uniform
from ppo_jax.sweeps import cohorts
from ppo_jax.sweeps.cohorts import Member

LOWERED = "/jax/core/compile/jaxpr_to_mlir_module_duration"
ALL = {"start", "phase", "play"}
"""Functions of which programs are made."""
SIMPLE = {"optimizer": optimizers.Sgd(), "terms": (terms.Surrogate(),)}
RATE = "optimizer.learning_rate"
RULES = PBT({RATE: Uniform(1e-4, 1e-2)}, size=4, interval=2)
CONFIG = brief.experiment(
    TimeLimitChain(limit=5),
    num_envs=4,
    num_steps=4,
    total_timesteps=16 * 6,
    pbt=RULES,
    network=networks.ActorCritic(torso=networks.Mlp(hidden=())),
    **SIMPLE,
)
NUMBERS = np.arange(4, dtype=np.float32)


@pytest.fixture(autouse=True)
def process(home, monkeypatch):
    devices.prepare()
    with newborn(monkeypatch, home):
        yield


def forget():
    """As in a new process, which has run no other file."""
    script.replaced.clear()
    jax.clear_caches()
    mesh.over_all_devices.cache_clear()
    compilation_cache.reset_cache()
    store.keep()


def run(config, begin=training.start):
    """What a new process makes ready for the compiler, and what it comes to.

    That is its members at first, and after a phase, with metrics and returns.
    """
    forget()
    lowered = set()

    def listen(event, seconds, fun_name="", **_):
        if event == LOWERED:
            lowered.add(fun_name.removeprefix("jit(").removesuffix(")"))

    monitoring.register_event_duration_secs_listener(listen)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        layout, members = ready(config, begin, Memory())
        begun = jax.device_get(members)
        members, history = phases.advance(config, layout, members, 0, 2)
        how = config.eval_episodes, not config.eval_sample
        returns, _ = evaluation.evaluate(members, config.seed, 2, *how, layout)
    monitoring.unregister_event_duration_listener(listen)
    return lowered & ALL, (begun, jax.device_get(members), history, returns)


def untouched(config):
    """What it comes to where all is traced, though the same is not compiled twice."""
    with pytest.MonkeyPatch.context() as nowhere:
        nowhere.setattr(store, "kept", lambda: None)
        lowered, result = run(config)
    assert lowered == ALL
    return result


@pytest.fixture(scope="module")
def shelf(tmp_path_factory):
    """A folder, empty at first, for programs and what the run of them came to."""
    return tmp_path_factory.mktemp("shelf") / "ppo_jax", []


@pytest.fixture
def warm(home, shelf):
    """The caches of somebody who has trained `CONFIG`, and what that came to."""
    folder, results = shelf
    if results:
        shutil.copytree(folder, home / "ppo_jax")
    else:
        lowered, result = run(CONFIG)
        assert lowered == ALL
        shutil.copytree(home / "ppo_jax", folder)
        results.append(result)
    return results[0]


def test_nothing_is_traced_twice(warm):
    lowered, result = run(CONFIG)
    assert lowered == set()
    chex.assert_trees_all_equal(result, warm)


def test_other_numbers_and_another_seed_are_no_reason_to_trace(warm):
    """They are arguments; the programs do with them what ones of their own do."""
    other = dataclasses.replace(CONFIG, gamma=0.5, seed=2**32 - 1)
    lowered, result = run(other)
    assert lowered == set()
    chex.assert_trees_all_equal(result, untouched(other))
    rates, others = (numbers_of(x[0])[RATE] for x in (warm, result))
    assert not (rates == others).any()  # They were drawn with its seed.


def test_a_longer_run_of_longer_phases_is_no_reason_to_trace(warm):
    rules = dataclasses.replace(RULES, interval=6)
    lengths = {"total_timesteps": 16 * 60, "phase_updates": 6, "pbt": rules}
    longer = dataclasses.replace(CONFIG, **lengths)
    assert (phases.length(CONFIG), phases.length(longer)) == (2, 6)
    assert run(longer)[0] == set()


def test_a_population_begins_with_numbers_of_its_own_space(warm):
    space = {RATE: Uniform(1e-4, 1e6)}
    other = dataclasses.replace(CONFIG, pbt=dataclasses.replace(RULES, space=space))
    lowered, (begun, *_) = run(other)
    assert lowered == {"start"}
    assert numbers_of(begun)[RATE].max() > 1e-2
    assert run(CONFIG)[0] == set()


def numbers_of(members):
    return component.numbers(members.runs.learner.config)


def test_another_structure_is_traced(warm):
    other = dataclasses.replace(CONFIG, pbt=None, obs_clip=5.0)
    lowered, result = run(other)
    assert lowered == ALL
    chex.assert_trees_all_equal(result, untouched(other))


def test_other_evaluations_are_traced_alone(warm):
    lowered, (*_, returns) = run(dataclasses.replace(CONFIG, eval_episodes=6))
    assert lowered == {"play"}
    assert returns.shape == (4, 6)


def test_members_of_a_sweep_begin_with_numbers_and_seeds_of_their_own(warm):
    """They are arguments too; what trains as many of a population trains them."""
    single = dataclasses.replace(CONFIG, pbt=None)

    def sweep(seed, *gammas):
        configs = [dataclasses.replace(single, gamma=gamma) for gamma in gammas]
        members = [Member(0, seed + i, one) for i, one in enumerate(configs)]
        return run(single, cohorts.begin(members))

    assert sweep(0, 0.9, 0.8, 0.7, 0.6)[0] == {"start"}
    lowered, (begun, *_) = sweep(4, 0.5, 0.4, 0.3, 0.2)
    assert lowered == set()
    assert numbers_of(begun)["gamma"].tolist() == pytest.approx([0.5, 0.4, 0.3, 0.2])


def shifted(members, by):
    """The same members with other parameters."""
    params = jax.tree.map(lambda x: x + by, members.runs.learner.params)
    learner = dataclasses.replace(members.runs.learner, params=params)
    runs = dataclasses.replace(members.runs, learner=learner)
    return dataclasses.replace(members, runs=runs)


def test_members_who_begin_otherwise_are_not_taken_for_others(warm):
    """What makes them has no name by which it is found."""
    learned = shifted(warm[0], 1)
    for _ in range(2):
        lowered, (found, *_) = run(CONFIG, lambda *_: learned)
        assert "phase" not in lowered
        chex.assert_trees_all_equal(found, learned)
    assert run(CONFIG)[0] == set()


def test_members_that_are_given_are_those_that_begin(warm):
    """As with `fit(begin=agent)`: another agent is an argument of the same program."""
    for by, traced in ((1, {"start"}), (2, set())):
        given = shifted(warm[0], by)
        lowered, (found, *_) = run(CONFIG, Partial(fitting._as_given, given))
        assert lowered == traced
        chex.assert_trees_all_equal(found, given)


class Program:
    """One of an experiment, and how often it was made ready for the compiler."""

    def __init__(self, function):
        self.lowered, self._program = 0, jax.jit(function)

    def lower(self, *args):
        self.lowered += 1
        return self._program.lower(*args)


def made(function, args, config):
    """What a new process makes of a program, and whether it traces it."""
    forget()
    kept = component.program(config, "pbt"), "here", jax.devices()[:1]
    shelf, program = recall.Shelf(store.kept(), *kept), Program(function)
    wanted = Compilation("program", program, args)
    load = shelf.find(wanted)
    found = load() if load else shelf.compile(wanted.lower(), wanted)
    return found(*args), bool(program.lowered)


def square(x):
    return x * x


def traced(config=CONFIG):
    """Whether a new process traces a program of an experiment."""
    squares, lowered = made(square, (NUMBERS,), config)
    assert squares.tolist() == [0, 1, 4, 9]
    return lowered


def test_prices_are_known_by_what_they_are(tmp_path):
    """Not by the name of their file."""
    path, gains = tmp_path / "prices.csv", []
    for growth, again in ((1.0, False), (1.01, False), (1.01, True)):
        bars = np.arange(np.datetime64("2020-01-01"), np.datetime64("2020-04-01"))
        rows = [f"{bar},{100 * growth**i}" for i, bar in enumerate(bars)]
        path.write_text("\n".join(["date,close", *rows]))
        config = brief.experiment(Trading(PriceFile(str(path)), window=5), **SIMPLE)
        gain, lowered = made(gain_of(config.env), (jax.random.key(0),), config)
        assert lowered != again
        gains.append(gain)
    assert gains[0] != gains[1] == gains[2]


def reward_of(env):
    return env.reward


def gain_of(env):
    """A function that buys at a close, and says what that gains until the next."""

    def buy(key):
        _, state = env.reset(key)
        _, state = env.step(key, state, np.ones(1, np.float32))
        return env.step(key, state, np.ones(1, np.float32))[0].reward

    return buy


FILE = """
from ppo_jax import Config
from ppo_jax.envs.probes import TimeLimitChain
{code}
config = Config(env={env}, num_envs=4, num_steps=4)
"""
CHAIN = "TimeLimitChain(limit=5)"
OWN = """
from ppo_jax.component import component

@component
class Own(TimeLimitChain):
    pass
"""
REGISTERED = """
import gymnax
from gymnax.environments.classic_control.cartpole import CartPole

class Own(CartPole):
    pass

if "Own-v0" not in gymnax.registered_envs:
    gymnax.register("Own-v0", Own)
"""


@pytest.mark.parametrize(
    ("code", "env"),
    [
        (OWN, "Own(limit=5)"),
        (REGISTERED, "'Own-v0'"),
        ("def unused():\n    pass", CHAIN),
        ("import beside", CHAIN),
        ("unused = (lambda: None).__name__", CHAIN),
        ("TimeLimitChain.unused, other = 1.0, 2.0", CHAIN),
        ("print(end='')", CHAIN),
        ("if True:\n    unused = 1", CHAIN),
    ],
    ids=[
        *("environment", "registered", "function", "module"),
        *("lambda", "attribute", "call", "condition"),
    ],
)
def test_code_of_ones_own_is_traced(tmp_path, monkeypatch, code, env):
    """Nobody can tell what it reads, nor what it puts into others."""
    monkeypatch.setattr(TimeLimitChain, "unused", 0.0, raising=False)
    (tmp_path / "beside.py").write_text("def unused():\n    pass\n")
    path = tmp_path / "own.py"
    path.write_text(FILE.format(code=code, env=env))
    for _ in range(2):
        assert traced(experiment.load(path, []))
    plain = tmp_path / "plain.py"
    plain.write_text(FILE.format(code="", env=CHAIN))
    sys.modules.pop("beside", None)
    assert [traced(experiment.load(plain, [])) for _ in range(2)] == [True, False]
    assert traced(experiment.load(path, []))


def test_a_file_that_only_says_what_to_train_is_none(tmp_path):
    """Nor are its modules that have but numbers, and wherever it is kept."""
    for name in ("here", "there"):
        folder = tmp_path / name
        folder.mkdir()
        (folder / "sizes.py").write_text("LIMIT, OTHER = 5, 6\n")
        path = folder / "experiment.py"
        code, env = "from sizes import LIMIT", "TimeLimitChain(LIMIT)"
        path.write_text(FILE.format(code=code, env=env))
        assert traced(experiment.load(path, [])) == (name == "here")


def test_a_module_without_a_place_is_none(monkeypatch):
    """As PyTorch's `torch.ops`, an object that poses as one."""
    module = ModuleType("poses")
    module.__file__ = "_ops.py"
    monkeypatch.setitem(sys.modules, "poses", module)
    assert [traced(), traced()] == [True, False]


def test_a_namesake_of_the_standard_library_is_ones_own(tmp_path, monkeypatch):
    path, module = tmp_path / "turtle.py", ModuleType("turtle")
    path.write_text("def unused():\n    pass\n")
    module.__file__ = str(path)
    monkeypatch.setitem(sys.modules, "turtle", module)
    assert [traced(), traced()] == [True, True]


def test_an_experiment_is_read_wherever_it_is(tmp_path):
    """One that is installed, with a package of the user's, is no part of JAX."""
    path = tmp_path / "site-packages" / "own.py"
    path.parent.mkdir()
    path.write_text(FILE.format(code=REGISTERED, env="'Own-v0'"))
    for _ in range(2):
        assert traced(experiment.load(path, []))


@pytest.fixture
def package(tmp_path, monkeypatch):
    """An installed package that is not known to depend on itself alone."""
    folder = tmp_path / "site-packages"
    folder.mkdir()
    chain = "from ppo_jax.envs.probes import TimeLimitChain\n"
    (folder / "mine.py").write_text(chain + OWN)
    monkeypatch.syspath_prepend(str(folder))
    return importlib.import_module("mine")


@pytest.mark.usefixtures("package")
@pytest.mark.parametrize("code", ["from mine import Own", "import mine"])
def test_what_an_unknown_package_computes_is_traced(tmp_path, code):
    path = tmp_path / "experiment.py"
    path.write_text(FILE.format(code=code, env=CHAIN))
    for _ in range(2):
        assert traced(experiment.load(path, []))


def test_an_argument_of_an_unknown_package_is_traced(package):
    """Where no file of an experiment names it, as from Python."""
    for kind, again in ((TimeLimitChain, False), (package.Own, True)):
        env = component.as_arrays(kind(limit=5))
        seen = [made(reward_of, (env,), CONFIG) for _ in range(2)]
        assert seen == [(1.0, True), (1.0, again)]


def test_an_edited_file_is_traced(tmp_path):
    """Whatever is edited: it is no matter of numbers that an option gives."""
    path = tmp_path / "experiment.py"
    for text in ("# First.", "# Second."):
        path.write_text(FILE.format(code=text, env=CHAIN))
        config = experiment.load(path, [])
        assert [traced(config), traced(config)] == [True, False]


def test_what_a_file_puts_into_others_is_traced(tmp_path, monkeypatch):
    """The same text may put another number there, as from a file or a variable."""
    monkeypatch.setattr(streams, "MEMBERS", streams.MEMBERS)
    path = tmp_path / "patches.py"
    code = "import os\nfrom ppo_jax.host.devices import streams\n"
    code += "streams.MEMBERS = int(os.environ['MEMBERS'])"
    path.write_text(FILE.format(code=code, env=CHAIN))
    for number in ("7", "8"):
        monkeypatch.setenv("MEMBERS", number)
        assert traced(experiment.load(path, []))


@pytest.mark.parametrize(
    "change", [(1, 0, 0), (0, 1, 0), (0, 0, 1)], ids=["content", "file", "size"]
)
def test_changed_code_is_traced(monkeypatch, change):
    """As Python knows that its bytecode is out of date."""
    assert [traced(), traced()] == [True, False]
    stamp = sources._stamp

    def changed(name):
        file, *facts = stamp(name)
        ours = name == recall.__file__
        return file, *(x + ours * y for x, y in zip(facts, change, strict=True))

    with monkeypatch.context() as edited:
        edited.setattr(sources, "_stamp", changed)
        assert [traced(), traced()] == [True, False]
    assert [traced(), traced()] == [True, False]


def test_code_from_elsewhere_is_traced(monkeypatch, tmp_path):
    """As of another checkout; of both, no file has changed since it was loaded."""
    assert traced()
    (tmp_path / "site-packages").mkdir()
    copy = shutil.copy2(streams.__file__, tmp_path / "site-packages")
    with monkeypatch.context() as elsewhere:
        elsewhere.setattr(streams, "__file__", str(copy))
        assert traced()
    assert traced()  # What was found by the same name is of the other one now.
    assert not traced()


def test_code_that_may_have_changed_meanwhile_is_traced(monkeypatch):
    """A process that began before has read what was there before."""
    newest = max(max(x) for _, *x, _ in sources.code().values()) / 1e9
    for after, expected in ((-1, [True, True]), (1, [True, False]), (-1, [True, True])):
        monkeypatch.setattr(sources, "BEGAN", newest + sources.SETTLED + after)
        assert [traced(), traced()] == expected


def test_other_settings_of_jax_are_traced():
    assert traced()
    before = jax.config.jax_default_matmul_precision
    jax.config.update("jax_default_matmul_precision", "float32")
    assert traced()
    jax.config.update("jax_default_matmul_precision", before)
    assert not traced()


def test_other_settings_of_flax_are_traced():
    """Another key for every parameter, for example."""
    assert traced()
    with flax.config.temp_flip_flag("fix_rng_separator", True):
        assert traced()
    assert not traced()


def test_other_arguments_of_a_tpu_are_traced(monkeypatch):
    """As JAX has them in its own key."""
    assert traced()
    with monkeypatch.context() as other:
        other.setenv("LIBTPU_INIT_ARGS", "--xla_tpu_unused=true")
        assert traced()
    assert not traced()


def test_devices_that_a_compiler_sees_apart_are_traced(monkeypatch):
    """By what JAX's own key has of them."""
    assert traced()
    with monkeypatch.context() as other:
        found = SimpleNamespace(fingerprint=lambda: 1)
        name = "get_topology_for_devices"
        other.setattr(cache_key.xla_client, name, lambda devices: found)
        assert traced()
    assert not traced()


def test_a_program_of_another_kind_is_not_found():
    forget()
    wanted = Compilation("squares", jax.jit(square), (NUMBERS,))
    longer = dataclasses.replace(CONFIG, env=TimeLimitChain(limit=6))
    here, there, other = (
        recall.Shelf(store.kept(), known, place, jax.devices()[:1])
        for known, place in ((CONFIG, "here"), (CONFIG, "there"), (longer, "here"))
    )
    here.compile(wanted.lower(), wanted)
    assert here.find(wanted) and not there.find(wanted) and not other.find(wanted)
    assert not here.find(wanted._replace(name="cubes"))
    assert not here.find(wanted._replace(name=""))
    assert not here.find(wanted._replace(args=(NUMBERS[:2],)))
    assert not here.find(wanted._replace(args=({"x": NUMBERS},)))


@pytest.mark.parametrize("damaged", [Path.unlink, lambda file: file.write_bytes(b"no")])
def test_what_is_damaged_or_gone_is_made_anew(home, damaged):
    """Each file by itself, that of a program or that of how it is found."""
    assert traced()
    files = [*(home / "ppo_jax" / "programs").iterdir()]
    assert len(files) >= 2
    for file in files:
        damaged(file)
        traced()  # Whether or not, it says what it should.
        assert not traced()


@pytest.mark.parametrize("asks", [False, True])
def test_what_xla_cannot_load_is_made_anew(monkeypatch, asks):
    """Whether or not JAX has asked for it: what was asked for before is another one."""
    load = compilation_cache.get_executable_and_time

    def fault(*asked):
        if asks:
            load(*asked)
        raise jax.errors.JaxRuntimeError

    assert traced()
    with monkeypatch.context() as broken:
        broken.setattr(compilation_cache, "get_executable_and_time", fault)
        assert traced()
    assert not traced()
