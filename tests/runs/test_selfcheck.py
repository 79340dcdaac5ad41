"""The replay check as a user runs it: it passes, and fails on a wrong build."""

import re
from pathlib import Path

import pytest
from runs import EXPERIMENT, called, command

FORGETFUL = """
from ppo_jax.ppo import rollout

step = rollout._step

def without_reset(*args):
    (actor, slots), (transition, slot) = step(*args)
    return (actor.replace(reset=transition.last), slots), (transition, slot)

rollout._step = without_reset
"""


@pytest.mark.parametrize(
    ("build", "status", "verdict"), [("", 0, "ok    "), (FORGETFUL, 1, "FAIL  ")]
)
def test_a_memory_that_outlives_a_fault_is_found(tmp_path, build, status, verdict):
    """PROP-1.1, R-A20: as a user runs it, by the replay with faults and no other."""
    experiments = Path(__file__).parents[2] / "experiments"
    path = tmp_path / "experiment.py"
    path.write_text((experiments / "memory.py").read_text() + build)
    small = ("--num-envs", 16, "--num-steps", 32, "--network.torso.hidden", 8)
    done = command("selfcheck", path, *small)
    assert done.returncode == status, done.stderr
    figures, said = done.stdout.split("\n\n")
    lines = figures.splitlines()
    assert len(lines) == 5
    faults = "largest |ratio − 1| of a replay with faults"
    assert [line for line in lines if line.startswith(verdict + faults)]
    assert [line[:4] for line in lines].count("ok  ") == 5 - status
    assert "Traceback" not in done.stderr
    over = (
        r"Shown over 32 steps of 16 environments, .* \d+ resets .* \d+ faults .*:\n- "
    )
    assert re.match(over, said, re.DOTALL) and "no memory" not in said
    broken = "- NOT SO: after a step that broke, agent and replay begin anew"
    assert (broken in said) == ("Look at `reset` in the network" in said) == status
    assert said.count("\n- ") == 4


def test_of_a_memory_that_is_not_there_nothing_is_shown(tmp_path):
    path = tmp_path / "experiment.py"
    path.write_text(EXPERIMENT.format(memory=""))
    done = called("selfcheck", path, "--chunk-length", 4)
    assert done.returncode == 0, done.stderr
    assert "NOT SO" not in done.stdout
    assert done.stdout.endswith(
        "The network has no memory, so nothing was shown of one.\n"
    )
