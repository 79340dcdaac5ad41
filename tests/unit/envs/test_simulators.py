"""Simulators side by side, in processes that end with this one."""

import os
import signal
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import chex
import gymnasium
import gyms
import numpy as np
import pytest

from ppo_jax import envs
from ppo_jax.component import replace_at
from ppo_jax.envs.simulators import SimulatorError
from ppo_jax.host.process.interrupt import SIGNALS
from ppo_jax.host.run_dir import script

CARTPOLE = envs.make("gymnasium/CartPole-v1")
FENCED = envs.Gymnasium("Fenced-v0", params={"fault": 0.0})
REUSED = envs.make("gymnasium/Reused-v0")
WALK = envs.Gymnasium("Walk-v0", params={"fault": 0.0, "bonus": 0.0})


def walks(fault):
    env = FENCED if fault >= gyms.SAYS_NOTHING else WALK
    return replace_at(env, "params.fault", float(fault))


@pytest.mark.parametrize("processes", [1, 3])
def test_a_trajectory_is_that_of_gymnasium(processes):
    """The same seeds and actions, stepped one by one; ends and new episodes included,
    over however many processes."""
    rng = np.random.default_rng(0)
    seeds, ends = rng.integers(2**32, size=(2, 2)), 0
    singles = [gymnasium.make("CartPole-v1") for _ in range(4)]
    with closing(CARTPOLE.simulators([CARTPOLE] * 2, 2, processes)) as simulators:
        simulators.reset(seeds)
        first = [
            env.reset(seed=int(x))[0]
            for env, x in zip(singles, seeds.ravel(), strict=True)
        ]
        np.testing.assert_array_equal(simulators.shown[0].reshape(4, 4), first)
        for _ in range(60):
            actions = rng.integers(2, size=(2, 2))
            answer = simulators.step(actions)
            for i, (env, action) in enumerate(zip(singles, actions.flat, strict=True)):
                place = divmod(i, 2)
                led, reward, *flags, _ = env.step(action)
                np.testing.assert_array_equal(answer.final_obs[place], led)
                assert answer.reward[place] == reward
                said = [answer.terminated[place], answer.truncated[place]]
                assert said == flags
                ends += any(flags)
                now = env.reset()[0] if any(flags) else led
                np.testing.assert_array_equal(answer.obs[place], now)
    assert ends > 4


def test_what_is_written_into_again_was_read_before():
    """By a step, a new episode or another simulator: what is shown is that of walks."""
    rng, cut = np.random.default_rng(0), 0
    with (
        closing(WALK.simulators([WALK], 3, 1)) as apart,
        closing(REUSED.simulators([REUSED], 3, 1)) as reused,
    ):
        for simulators in (apart, reused):
            simulators.reset(np.zeros((1, 3)))
        for _ in range(20):
            actions = rng.integers(2, size=(1, 3))
            expected, answer = apart.step(actions), reused.step(actions)
            chex.assert_trees_all_equal(answer, expected)
            cut += answer.truncated.sum()
    assert cut > 2


def test_members_have_their_own_numbers():
    members = [replace_at(WALK, "params.bonus", x) for x in (0.0, 8.0)]
    with closing(WALK.simulators(members, 3, 2)) as simulators:
        simulators.reset(np.zeros((2, 3)))
        reward = simulators.step(np.ones((2, 3), int)).reward
    assert reward.tolist() == [[1.0] * 3, [9.0] * 3]


@pytest.mark.parametrize("processes", [1, 3])
def test_what_is_allowed_and_what_it_costs_is_what_gymnasium_says(processes):
    """After an end, it is what the next episode says."""
    rng, ends, fenced = np.random.default_rng(0), 0, 0
    singles = [gymnasium.make("Fenced-v0") for _ in range(4)]
    allowed = np.stack([env.reset()[1]["action_mask"] for env in singles])
    with closing(FENCED.simulators([FENCED] * 2, 2, processes)) as simulators:
        simulators.reset(np.zeros((2, 2)))
        for _ in range(40):
            _, state = simulators.shown
            np.testing.assert_array_equal(state.reshape(4, 2), allowed)
            actions = rng.integers(2, size=4) * allowed[:, 1]
            answer = simulators.step(actions.reshape(2, 2))
            for i, env in enumerate(singles):
                *_, terminated, truncated, info = env.step(actions[i])
                assert answer.cost[divmod(i, 2)] == info["cost"]
                if terminated or truncated:
                    ends, (_, info) = ends + 1, env.reset()
                allowed[i] = info["action_mask"]
            np.testing.assert_array_equal(answer.state.reshape(4, 2), allowed)
            assert answer.state.dtype == bool
            fenced += not allowed.all()
    assert ends > 4 and fenced > 4


BROKEN = {
    gyms.RAISES: "gymnasium/Walk-v0: RuntimeError: the floor is wet\n  File ",
    gyms.DIES: "gymnasium/Walk-v0: a process of simulators ended by signal 6",
    gyms.GROWS: "gymnasium/Walk-v0: ValueError: observation: expected the shape (2,)",
    gyms.NO_NUMBER: "gymnasium/Walk-v0: ValueError: could not convert string to float",
    gyms.SAYS_NOTHING: "gymnasium/Fenced-v0: ValueError: info['action_mask']: expected"
    " one, as after the first reset",
    gyms.SAYS_MORE: "gymnasium/Fenced-v0: ValueError: info['action_mask']: expected 2 ",
    gyms.FORBIDS_ALL: "gymnasium/Fenced-v0: ValueError: info['action_mask']: no action",
    gyms.COSTS_WORDS: "gymnasium/Fenced-v0: ValueError: info['cost']: expected a numb",
}


@pytest.mark.parametrize("fault", BROKEN)
def test_what_breaks_is_said_and_nothing_is_left(fault):
    """In mid-rollout; the lines of the user's own simulator are shown."""
    one = walks(fault)
    simulators = one.simulators([one], 2, 2)
    simulators.reset(np.zeros((1, 2)))
    with pytest.raises(SimulatorError) as error:
        for _ in range(20):
            simulators.step(np.zeros((1, 2), int))
    assert str(error.value).startswith(BROKEN[fault])
    assert ("the floor is wet" in str(error.value)) == (
        "raise Runt" in str(error.value)
    )
    assert not children()


@pytest.mark.parametrize("processes", [1, 2])
def test_where_observations_are_not_finite_episodes_begin_anew(processes):
    """Also beside a process in which nothing is broken."""
    members = [walks(0), walks(gyms.NAN_OBS)]
    with closing(WALK.simulators(members, 2, processes)) as simulators:
        simulators.reset(np.zeros((2, 2)))
        for time_ in range(11):
            simulators.step(np.full((2, 2), time_ % 2))
        assert np.isnan(simulators.shown[0][1]).all()
        before = simulators.shown[0][0].copy()
        assert simulators.restart_broken().tolist() == [[False] * 2, [True] * 2]
        assert not simulators.shown[0][1].any()
        np.testing.assert_array_equal(simulators.shown[0][0], before)
        assert not simulators.restart_broken().any()


def test_what_cannot_be_closed_ends_in_silence(capfd):
    one = envs.make("gymnasium/Stuck-v0")
    with closing(one.simulators([one], 2, 1)) as simulators:
        simulators.reset(np.zeros((1, 2)))
        simulators.step(np.zeros((1, 2), int))
    assert capfd.readouterr() == ("", "")


@pytest.fixture
def loud(monkeypatch):
    """Steps simulators of a process that prints, as to a file, in ASCII alone."""
    monkeypatch.delenv("PYTHONUNBUFFERED", raising=False)
    monkeypatch.setenv("PYTHONIOENCODING", "ascii")
    one = envs.make("gymnasium/Loud-v0")

    def step():
        with closing(one.simulators([one], 1, 1)) as simulators:
            simulators.reset(np.zeros((1, 1)))
            simulators.step(np.zeros((1, 1), int))

    return step


def test_all_that_a_simulator_prints_is_shown(loud, capfd):
    loud()
    assert capfd.readouterr() == ("\\xe9" * 9000 + "\nstep 0", "")


def test_simulators_outlive_whoever_reads_what_they_print(loud):
    theirs, ours = os.pipe()
    os.close(theirs)
    kept = os.dup(1)
    os.dup2(ours, 1)
    try:
        loud()
    finally:
        os.dup2(kept, 1)
        os.close(kept)
        os.close(ours)


def test_simulators_leave_accelerators_alone(monkeypatch):
    """One that uses JAX would take most of a GPU's memory, in every process."""
    monkeypatch.setenv("JAX_PLATFORMS", "cuda")
    with closing(WALK.simulators([WALK], 1, 1)) as simulators:
        simulators.reset(np.zeros((1, 1)))
        number = simulators._workers[0]._process.pid
        told = Path(f"/proc/{number}/environ").read_text().split("\0")
    assert "JAX_PLATFORMS=cpu" in told and "JAX_PLATFORMS=cuda" not in told


KILLED = """
import os, gyms, numpy as np
from ppo_jax import envs
env = envs.Gymnasium("Walk-v0", params={"fault": gyms.HANGS})
simulators = env.simulators([env], 4, 2)
simulators.reset(np.zeros((1, 4)))
print(*[x._process.pid for x in simulators._workers], flush=True)
for _ in range(20):
    simulators.step(np.zeros((1, 4), int))
"""


def test_processes_end_with_the_one_that_began_them():
    """Killed, while its simulators hang; no signal to its group ends them before."""
    with subprocess.Popen(
        [sys.executable, "-c", KILLED],
        env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as process:
        workers = [int(word) for word in process.stdout.readline().split()]
        assert len(workers) == 2
        for worker in workers:
            os.kill(worker, signal.SIGINT)
            os.kill(worker, signal.SIGTERM)
        time.sleep(0.5)
        assert all(map(alive, workers))
        process.kill()
    deadline = time.monotonic() + 20
    while any(map(alive, workers)):
        assert time.monotonic() < deadline
        time.sleep(0.05)


def alive(number):
    """Whether there is such a process."""
    try:
        with open(f"/proc/{number}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def children():
    """Processes that this one began, and that are there."""
    found = subprocess.run(
        ["ps", "-o", "args=", "--ppid", str(os.getpid())],
        capture_output=True,
        text=True,
        check=False,
    )
    return [line for line in found.stdout.splitlines() if "worker.py" in line]


@pytest.mark.parametrize("number", SIGNALS, ids=lambda each: each.name)
def test_what_interrupts_this_process_does_not_end_simulators(number):
    """A terminal sends it to all of its processes; simulators end with the last."""
    with closing(WALK.simulators([WALK], 1, 1)) as simulators:
        simulators.reset(np.zeros((1, 1)))
        (worker,) = simulators._workers
        worker._process.send_signal(number)
        for _ in range(3):
            assert np.isfinite(simulators.step(np.zeros((1, 1), int)).reward).all()


FILE = """
import functools
import gymnasium, gyms

def halved(x):
    if x == 0:  # As when it is made.
        return [0.0, 0.0], 0.0, False, False, {}
    return int(x) / 0

class Mine(gyms.Walk):
    def __init__(self, how=None):
        super().__init__()
        self.how = how or halved

    def step(self, action):
        return self.how(action)

gymnasium.register("OfAFile-v0", entry_point=Mine)
gymnasium.register("PartlyGiven-v0", entry_point=functools.partial(Mine, how=halved))
gymnasium.register("Given-v0", entry_point="gyms:Given", kwargs={"how": halved})

def wrapped():
    return gymnasium.Wrapper(gymnasium.make("OfAFile-v0"))

gymnasium.register("Outer-v0", entry_point=wrapped)
"""


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    """The file of an experiment, which was run."""
    path = tmp_path_factory.mktemp("own") / "experiment.py"
    path.write_text(FILE)
    script.run(path)
    return path


@pytest.mark.parametrize(
    "name", ["OfAFile-v0", "PartlyGiven-v0", "Given-v0", "Outer-v0"]
)
def test_what_the_file_of_an_experiment_defines_fails_with_its_lines(name, path):
    env = envs.Gymnasium(name)
    with closing(env.simulators([env], 1, 1)) as simulators:
        simulators.reset(np.zeros((1, 1)))
        with pytest.raises(SimulatorError) as told:
            simulators.step(np.ones((1, 1), int))
    line = 1 + FILE[: FILE.index("return int(x) / 0")].count("\n")
    assert f'File "{path}", line {line}, in halved\n    return int(x) / 0' in str(
        told.value
    )
    assert f"{name}: ZeroDivisionError: " in str(told.value)
