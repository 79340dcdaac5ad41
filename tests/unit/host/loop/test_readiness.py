"""A run that is ready compiles nothing any more."""

import ctypes
import json
import resource
import subprocess
import sys
import threading
import time
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import Mock

import brief
import chex
import jax
import pytest
from runs import ENVIRONMENT, python

from ppo_jax.envs.probes import TimeLimitChain
from ppo_jax.host.devices.mesh import Layout
from ppo_jax.host.loop import training
from ppo_jax.host.loop.readiness import ready
from ppo_jax.host.programs.compiling import Compilation
from ppo_jax.host.run_dir.recording import Memory

COUNTED = """
import json, tempfile, jax
from jax import monitoring
from ppo_jax import Config, networks, optimizers, terms
from ppo_jax.envs.probes import TimeLimitChain
from ppo_jax.host.devices import streams
from ppo_jax.host.loop import phases, training
from ppo_jax.host.run_dir.checkpoint import Checkpointer
from ppo_jax.host.run_dir.recording import Memory
from ppo_jax.host.loop.readiness import ready
from ppo_jax.host.loop.stopwatch import COMPILED

config = Config(
    env={env},
    num_envs=4,
    num_steps=4,
    network=networks.ActorCritic(torso=networks.Mlp(hidden=(8,)), shared=True),
    optimizer=optimizers.Sgd(),
    terms=(terms.Surrogate(),),
    devices_per_member={devices},
    phase_updates=3,
    eval_episodes=4,
    eval_sample={sample},
)
compiled = []
monitoring.register_event_duration_secs_listener(
    lambda event, seconds, **_: compiled.append(event) if event == COMPILED else None
)
layout, members = ready(config, training.start, Memory())
before = len(compiled)
key = streams.evaluation(config.seed, 3)
how = config.eval_episodes, not config.eval_sample
checkpoints = Checkpointer(tempfile.mkdtemp())
middle = len(compiled)
for update in range(2):
    members, _ = phases.advance(config, layout, members, 3 * update, 3 + 3 * update)
    learners = layout.place(members).runs.learner
    layout.run_episodes(learners, key, *how)
    checkpoints.save(update, members, 0.0, {})
checkpoints.close()
layout.close()
print(json.dumps([before, len(compiled) - middle]))
"""


@pytest.mark.parametrize(("devices", "sample"), [(1, True), (2, False)])
def test_nothing_is_left_to_be_compiled(devices, sample):
    code = COUNTED.replace("{devices}", str(devices)).replace("{sample}", str(sample))
    code = code.replace("{env}", "TimeLimitChain(limit=5)")
    before, after = json.loads(python(code, ENVIRONMENT | {"JAX_NUM_CPU_DEVICES": "2"}))
    assert before >= 3  # How to begin, to train and to evaluate.
    assert after == 0


@pytest.mark.parametrize("sample", [True, False])
def test_nothing_is_left_where_simulators_are_stepped(sample):
    """Between two steps of a rollout or an evaluation, and around them."""
    env = '"gymnasium/CartPole-v1"'
    code = COUNTED.replace("{devices}", "None").replace("{sample}", str(sample))
    code = code.replace("{env}", env)
    before, after = json.loads(python(code, ENVIRONMENT))
    assert before >= 8  # Seeds, rollouts and episodes: first, next and last.
    assert after == 0


def test_others_are_traced_while_the_longest_program_is_compiled(monkeypatch):
    traced, others_traced = [], threading.Event()

    def longest():
        time.sleep(0.2)  # Others that were traced beside it would be done by then.
        traced.append("longest")
        return SimpleNamespace(compile=compiled)

    def compiled():
        assert others_traced.wait(timeout=60)

    def other():
        traced.append("other")
        others_traced.set()
        return SimpleNamespace(compile=Mock())

    wanted = [
        Compilation(lower.__name__, SimpleNamespace(lower=lower), ())
        for lower in (longest, other)
    ]
    monkeypatch.setattr(Layout, "programs", lambda *_: wanted)
    ready(brief.experiment(TimeLimitChain(limit=5)), training.start, Memory())
    assert traced == ["longest", "other"]


class GoingOn(Memory):
    resumes = True


def test_members_of_a_run_that_goes_on_are_blank(monkeypatch):
    """No program makes them; they have the shapes and places of those that are made.

    But no memory there: what is restored would be the second.
    """
    monkeypatch.setattr(Layout, "programs", lambda *_: [])
    config = brief.experiment(TimeLimitChain(limit=5))
    _, made = ready(config, training.start, Memory())
    monkeypatch.setattr(Compilation, "lower", Mock(side_effect=AssertionError))
    _, blank = ready(config, training.start, GoingOn())
    chex.assert_trees_all_equal_shapes_and_dtypes(blank, made)
    places = (jax.tree.map(lambda x: x.sharding, each) for each in (blank, made))
    chex.assert_trees_all_equal(*places)
    leaves = jax.tree.leaves(blank.runs.learner.params)
    assert not any(isinstance(leaf, jax.Array) for leaf in leaves)


@pytest.mark.skipif(sys.platform != "linux", reason="it is asked of glibc")
def test_what_compiling_left_is_no_longer_held(monkeypatch):
    """As compilers do: many small pieces, of which the last one stays."""
    monkeypatch.setattr(Layout, "programs", lambda *_: [])
    libc, held = ctypes.CDLL(None), []
    libc.malloc.restype = ctypes.c_void_p
    libc.free.argtypes = [ctypes.c_void_p]

    class Littering(Memory):
        def prepare(self):
            pieces = [libc.malloc(1000) for _ in range(300_000)]
            for piece in pieces[:-1]:
                libc.free(piece)
            held.append(resident())

    ready(brief.experiment(TimeLimitChain(limit=5)), training.start, Littering())
    assert resident() < held[0] - 150 * 2**20


def resident():
    """Bytes of this process in memory."""
    pages = Path("/proc/self/statm").read_text().split()[1]
    return int(pages) * resource.getpagesize()


def test_what_saves_is_not_imported_to_begin():
    """It takes a third of a second, for which compilers need no Python."""
    code = "import sys, ppo_jax.train; print('orbax.checkpoint' in sys.modules)"
    fresh = [sys.executable, "-c", code]
    done = subprocess.run(fresh, capture_output=True, text=True, timeout=120)
    assert (done.stdout, done.stderr) == ("False\n", "")
