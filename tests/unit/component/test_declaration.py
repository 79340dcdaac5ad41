"""What a component's class says in vain is an error at its decoration."""

import pytest

from ppo_jax.component import component
from ppo_jax.optimizers import Adam


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("__init__", "Late: declare its fields, with a type each, instead of __init__"),
        ("__post_init__", "Late: call it `validate` instead of __post_init__"),
    ],
)
def test_methods_of_the_component_s_own_making_are_refused(name, said):
    with pytest.raises(TypeError, match=f"^{said}$"):
        component(type("Late", (), {name: lambda self: None}))


def test_another_default_has_its_type_as_well():
    """Without one it is no field, and the subclass had the default of its base."""
    own = {"learning_rate": 1e-5}
    said = r"^Late\.learning_rate: expected its type as well, .*, got 1e-05 alone"
    with pytest.raises(TypeError, match=said):
        component(type("Late", (Adam,), own))
    typed = own | {"__annotations__": {"learning_rate": float}}
    assert component(type("Late", (Adam,), typed))().learning_rate == 1e-5
