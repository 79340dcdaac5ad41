"""How much memory there is, of made-up files of Linux."""

from types import SimpleNamespace

import jax
import pytest

from ppo_jax.errors import UserError
from ppo_jax.sweeps import capacity

WHOLE = capacity.of_process()
CONTAINER = "0::/\n"
JOB = "0::/system.slice/job_7/step_0\n"
FORMER = "9:cpuset:/\n4:cpuacct,memory:/slurm/job_7\n1:name=systemd:/x\n0::/\n"
NONE = "9223372036854771712"


def placed(root, groups, limits):
    """A tree of files: which groups a process is in, and limits by their paths."""
    for path, text in {"proc/self/cgroup": groups, **limits}.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)
    return root


@pytest.mark.parametrize(
    ("groups", "limits", "expected"),
    [
        (CONTAINER, {"memory.max": "8192\n"}, 8192),
        (CONTAINER, {"memory.max": "max\n"}, WHOLE),
        (CONTAINER, {}, WHOLE),
        (CONTAINER, {"memory.max": f"{2 * WHOLE}\n"}, WHOLE),
        (
            JOB,
            {
                "system.slice/memory.max": "max\n",
                "system.slice/job_7/memory.max": "4096\n",
                "system.slice/job_7/step_0/memory.max": "8192\n",
                "system.slice/job_8/memory.max": "1024\n",
            },
            4096,
        ),
        (JOB, {"memory.max": "2048\n"}, 2048),
        (
            FORMER,
            {
                "cpuacct,memory/memory.limit_in_bytes": f"{NONE}\n",
                "cpuacct,memory/slurm/memory.limit_in_bytes": "9000\n",
                "cpuacct,memory/slurm/job_7/memory.limit_in_bytes": "8000\n",
                "cpuset/memory.limit_in_bytes": "7\n",
            },
            8000,
        ),
        (
            "4:memory:/outside/job_7\n",
            {"memory/memory.limit_in_bytes": "5000\n"},
            5000,
        ),
    ],
)
def test_the_least_of_the_machine_and_of_what_a_job_may_use(
    tmp_path, groups, limits, expected
):
    """Of its group and of all above, in either version of control groups."""
    limits = {f"sys/fs/cgroup/{path}": text for path, text in limits.items()}
    assert capacity.of_process(placed(tmp_path, groups, limits)) == expected


def test_a_system_without_groups_has_its_whole_memory(tmp_path):
    assert capacity.of_process(tmp_path) >= WHOLE > 2**28


def test_a_device_has_memory():
    assert 2**28 < capacity.of_device() < 2**50


@pytest.mark.parametrize("stats", [None, {}])
def test_a_gpu_that_does_not_say_what_it_has_is_not_as_large_as_the_host(
    stats, monkeypatch
):
    """PJRT keeps no statistics for every allocator; the user knows."""
    gpu = SimpleNamespace(
        platform="gpu", device_kind="NVIDIA L4", memory_stats=lambda: stats
    )
    monkeypatch.setattr(jax, "devices", lambda: [gpu])
    with pytest.raises(UserError, match=r"NVIDIA L4 .* --memory"):
        capacity.of_device()
    gpu.memory_stats = lambda: {"bytes_limit": 77}
    assert capacity.of_device() == 77
