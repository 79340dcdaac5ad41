"""How members are shared by devices."""

import pytest
from runs import ENVIRONMENT, python


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
        "from ppo_jax.host.mesh import over_all_devices;"
        f"print(len(over_all_devices({members}, {per_member}).devices))"
    )
    environment = ENVIRONMENT | {"JAX_NUM_CPU_DEVICES": str(devices)}
    assert python(code, environment) == str(used)
