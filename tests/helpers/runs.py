"""Tiny experiments, the commands as a user runs them, and the files that they leave."""

import contextlib
import faulthandler
import hashlib
import io
import json
import os
import struct
import subprocess
import sys
import time
import warnings
from pathlib import Path

import chex
import jax
import numpy as np
import zygote
from tensorboardX.proto.event_pb2 import Event

from ppo_jax.__main__ import main
from ppo_jax.host.loop import training
from ppo_jax.host.run_dir import experiment
from ppo_jax.host.run_dir.checkpoint import Checkpointer

EXPERIMENT = """
from ppo_jax import Config, networks
from ppo_jax.envs.probes import TimeLimitChain

config = Config(
    env=TimeLimitChain(limit=5),
    num_envs=4,
    num_steps=8,
    num_minibatches=2,
    num_epochs=2,
    total_timesteps=32 * 24,
    phase_updates=4,
    eval_phases=1,
    eval_episodes=4,
    network=networks.ActorCritic(torso=networks.Mlp(hidden=()){memory}),
)
"""
SIZES = """
import jax.numpy as jnp

from ppo_jax import Config, critics, envs, networks, terms
from ppo_jax.component import component

SIZES = dict(
    num_envs=4,
    num_steps=8,
    num_minibatches=2,
    total_timesteps=32 * 2,
    phase_updates=1,
    eval_phases=1,
    eval_episodes=4,
    network=networks.ActorCritic(torso=networks.Mlp(hidden=())),
)
"""
WALK = (
    SIZES
    + """

@component
class Walk(envs.Env):
    limit: int = 4

    @property
    def action_space(self):
        return envs.Discrete(2)

    @property
    def max_episode_steps(self):
        return self.limit

    def reset(self, key):
        return jnp.zeros(1), jnp.zeros(())

    def transition(self, key, state, action):
        state = state + 1
        timestep = envs.outcome(state[None], action, truncated=state >= self.limit)
        return timestep, state


config = Config(env=Walk(), **SIZES)
"""
)
MEMORIES = {"mlp": "", "lstm": ", memory=networks.Lstm(size=8)"}
CACHE = Path(__file__).parents[2] / ".cache" / "jax"
ENVIRONMENT = (
    {"JAX_COMPILATION_CACHE_DIR": str(CACHE)}
    | os.environ
    | {
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
        "JAX_DISABLE_MOST_OPTIMIZATIONS": "1",
        "PYTHONUNBUFFERED": "1",
    }
)
HURRY = jax.config.read("jax_disable_most_optimizations")
ALIKE = ENVIRONMENT | {
    "JAX_DISABLE_MOST_OPTIMIZATIONS": str(int(HURRY)),
    zygote.DEVICES: "1",
}
"""Variables for as many devices as this process has, and for the same programs."""
FLAGS = ENVIRONMENT.get("XLA_FLAGS", "")
EXACT = ENVIRONMENT | {"XLA_FLAGS": f"{FLAGS} --xla_cpu_max_isa=SSE4_2"}
"""The same bits on all processors that have the same widest vectors."""
VECTORS = "avx512f" if "avx512f" in Path("/proc/cpuinfo").read_text() else "avx2"
BITS = f"jax {'.'.join(jax.__version__.split('.')[:2])}, {VECTORS}"
"""Each compiler has ways of its own, and each library of products for its vectors."""
SAYS_ALL = "def __call__(self, out, batch, context): return out.log_ratio, {}"


def part(kind, body):
    """Returns the text of an experiment with a part of its own."""
    mine = {
        "critics.Scalar": "critic=Mine()",
        "networks.Head": "env='Pendulum-v1', network=networks.ActorCritic(head=Mine())",
        "networks.Memory": "network=networks.ActorCritic(memory=Mine())",
        "networks.Torso": "network=networks.ActorCritic(torso=Mine())",
        "terms.Term": "terms=(terms.Surrogate(), Mine())",
    }[kind]
    return (
        f"{WALK}\n\n@component\nclass Mine({kind}):\n    {body}\n\n\n"
        f"config = Config(**SIZES | dict(env=Walk()) | dict({mine}))\n"
    )


def arguments(name, *options):
    return [sys.executable, "-m", f"ppo_jax.{name}", *map(str, options)]


def command(name, *options, environment=ENVIRONMENT, **how):
    """Runs a command in a process that has imported everything already."""
    words = arguments(name, *options)[1:]
    return zygote.run(words, environment, **how)


def called(name, *options, timeout=300):
    """Runs a command in this process, which compiles once for several commands.

    If it hangs, it prints where, and this process ends.
    """
    words = [name, *map(str, options)]
    with (
        _limited(timeout),
        contextlib.redirect_stdout(io.StringIO()) as out,
        contextlib.redirect_stderr(io.StringIO()) as err,
        warnings.catch_warnings(),
    ):
        warnings.simplefilter("default", UserWarning)
        warnings.showwarning = _show
        try:
            status = main(words)
        except SystemExit as ending:
            status = ending.code
    said = out.getvalue(), err.getvalue()
    return subprocess.CompletedProcess(words, status, *said)


@contextlib.contextmanager
def _limited(seconds):
    faulthandler.dump_traceback_later(seconds, exit=True, file=sys.__stderr__)
    try:
        yield
    finally:
        faulthandler.cancel_dump_traceback_later()


def _show(*warning):
    print(warnings.formatwarning(*warning[:4]), file=sys.stderr)


def on_sixteen_cores(program, folder):
    """Returns the arrays that a program of helpers writes, and the JSON it prints."""
    file = folder / "ended.npz"
    sixteen = ENVIRONMENT | {"NPROC": "16"}
    done = zygote.helper(program, file, timeout=240, environment=sixteen)
    assert done.returncode == 0, done.stderr
    with np.load(file) as arrays:
        return dict(arrays), json.loads(done.stdout)


def python(code, environment, timeout=120):
    """Returns what code prints in a process that has imported everything already."""
    done = zygote.run(["-c", code], environment, timeout=timeout)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


SESSION = """
import contextlib, io, json, sys, traceback
from ppo_jax.__main__ import main

told = []
for words in json.loads(sys.argv[1]):
    with contextlib.redirect_stdout(io.StringIO()) as text:
        with contextlib.redirect_stderr(text):
            try:
                status = main(words)
            except SystemExit as exit:
                status = exit.code
            except Exception:
                status = traceback.print_exc()
    told.append((status, text.getvalue()))
print(json.dumps(told))
"""
OFFLINE = dict.fromkeys(("http_proxy", "https_proxy"), "http://127.0.0.1:9")


def session(lines, cwd, timeout=300, environment=ALIKE):
    """Returns the exit status and text of many command lines, all in one process."""
    asked = json.dumps([[*map(str, words)] for words in lines])
    words = ["-c", SESSION, asked]
    done = zygote.run(words, environment | OFFLINE, cwd, timeout)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def begin(name, *options, environment=ENVIRONMENT):
    """Starts a command."""
    return subprocess.Popen(
        arguments(name, *options),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env=environment,
    )


def rows(run_dir):
    """Returns the metrics of a run, except those of the clock."""
    lines = (run_dir / "metrics.jsonl").read_text().splitlines()
    return [
        {k: v for k, v in json.loads(line).items() if not k.startswith("time/")}
        for line in lines
    ]


def events(run_dir):
    """Returns all tensorboard events of a run, in the order of the files."""
    found = []
    for path in sorted(run_dir.glob("events.out.tfevents.*")):
        data = path.read_bytes()
        while data:
            (size,) = struct.unpack("<Q", data[:8])
            found.append(Event.FromString(data[12 : 12 + size]))
            data = data[16 + size :]
    return found


def event_values(run_dir):
    """Returns the values of all events, with their steps and times."""
    return [(x.step, x.wall_time, y) for x in events(run_dir) for y in x.summary.value]


def event_steps(run_dir):
    """Returns the steps of all events with numbers."""
    return [
        event.step
        for event in events(run_dir)
        if any(value.HasField("simple_value") for value in event.summary.value)
    ]


def saved(run_dir):
    """Returns the updates of the whole checkpoints of a run."""
    paths = (run_dir / "checkpoints").glob("*")
    return sorted(int(path.name) for path in paths if path.name.isdigit())


def wait_for_checkpoint(process, run_dir, number=1):
    """Waits until a run that was begun has saved `number` checkpoints."""
    deadline = time.monotonic() + 120
    while len(saved(run_dir)) < number:
        assert time.monotonic() < deadline and process.poll() is None
        time.sleep(0.005)


def restored(run_dir):
    """Returns the update, the population and the rest of a run's newest checkpoint."""
    config = experiment.load(
        run_dir / "experiment.py", experiment.stored_overrides(run_dir)
    )
    checkpoints = Checkpointer(run_dir)
    found = checkpoints.read(lambda: training.start(config))
    checkpoints.close()
    return found


def leaves(run_dir):
    """Returns the update and every leaf of a run's newest checkpoint."""
    update, population, _ = restored(run_dir)
    runs = population.runs.replace(key=jax.random.key_data(population.runs.key))
    population = population.replace(runs=runs)
    return update, [np.asarray(leaf) for leaf in jax.tree.leaves(population)]


def digest(run_dir):
    """Returns a digest of a run's last state, whatever its parts' names and order."""
    update, arrays = leaves(run_dir)
    parts = sorted(f"{x.dtype}{x.shape}".encode() + x.tobytes() for x in arrays)
    return {"update": update, BITS: hashlib.sha256(b"".join(parts)).hexdigest()}


def assert_same(expected, found):
    """Asserts that two runs ended in the same state, after the same rows."""
    (update, theirs), (also, ours) = leaves(expected), leaves(found)
    assert update == also
    chex.assert_trees_all_equal(theirs, ours)
    for before, after in zip(rows(expected), rows(found), strict=True):
        assert before == after
    assert event_steps(found) == [row["step"] for row in rows(found)]
