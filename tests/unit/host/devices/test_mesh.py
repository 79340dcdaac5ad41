"""How members are shared by devices."""

import jax
import numpy as np
import pytest
from brief import experiment
from runs import ENVIRONMENT, python

from ppo_jax.envs.probes import TimeLimitChain
from ppo_jax.host.devices.mesh import on_one_device
from ppo_jax.host.loop import training
from ppo_jax.schedules import Progress


@pytest.mark.parametrize(
    ("members", "per_member", "devices", "used"),
    [
        (8, 1, 3, 2),
        (7, 1, 3, 1),
        (6, 1, 3, 3),
        (1, 1, 4, 1),
        (1, 3, 4, 3),
        (2, 2, 5, 4),
    ],
)
def test_as_many_devices_as_take_equal_shares(members, per_member, devices, used):
    code = (
        "from ppo_jax.host.devices.mesh import over_all_devices;"
        f"print(len(over_all_devices({members}, {per_member}).devices))"
    )
    environment = ENVIRONMENT | {"JAX_NUM_CPU_DEVICES": str(devices)}
    assert python(code, environment) == str(used)


@pytest.mark.parametrize(
    ("changes", "members", "shared"),
    [
        ("", 1, 1),  # 128 steps of a minibatch are fewer than 64 · 2²,
        ("num_envs=8", 1, 2),  # and 256 are not.
        ("num_envs=9", 1, 1),  # Which two cannot share.
        ("num_envs=64", 1, 4),  # 2048 steps are fewer than 64 · 8².
        ("num_envs=128", 1, 8),
        ("num_envs=2048", 1, 8),  # There are no more.
        ("num_envs=64", 2, 4),
        ("num_envs=64", 3, 4),  # One of them after the other.
        ("num_envs=64", 16, 1),
        ("num_envs=64, network=memory", 1, 4),
        ("network=memory", 1, 1),  # A minibatch is a single sequence.
        ("num_envs=64, opponent=Opponent(), obs_clip=5.0", 1, 1),
        ("num_envs=64, adversary=Mixed(), obs_clip=5.0", 1, 1),
    ],
)
def test_cores_that_are_left_over_share_a_member(changes, members, shared):
    code = f"""
from ppo_jax import Config, networks
from ppo_jax.attacks.adversaries import Mixed
from ppo_jax.attacks.opponents import Opponent
from ppo_jax.host.devices.mesh import worthwhile
memory = networks.ActorCritic(memory=networks.Lstm(size=4))
print(worthwhile(Config(env="CartPole-v1", {changes}), {members}))
"""
    environment = ENVIRONMENT | {"JAX_NUM_CPU_DEVICES": "8"}
    assert python(code, environment) == str(shared)


def test_programs_are_traced_in_the_way_of_their_devices():
    """With 2048 environments a CPU predicts and learns in parts; others do not."""
    many = {"num_envs": 2048, "total_timesteps": 2048 * 8}
    config = experiment(TimeLimitChain(limit=5), **many)
    members = jax.eval_shape(lambda: training.start(config))
    given = members, Progress.of(np.arange(1), config.num_updates), np.int32(1)
    program = str(on_one_device().advance.trace(*given).jaxpr)
    assert "scan" in program and "platform_index" not in program
