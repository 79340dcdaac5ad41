"""What parts are called, and the paths that lead to them."""

import jax
import pytest

from ppo_jax.component import component
from ppo_jax.component.names import (
    children,
    descendants,
    is_component,
    joined,
    kinds,
    snake_case,
)


@component
class Leaf:
    rate: float = 0.5


@component
class CVaRLeaf(Leaf):
    alpha: float = 0.1


@component
class Tree:
    single: Leaf = Leaf()
    many: tuple[Leaf, ...] = (Leaf(), CVaRLeaf(), Leaf())
    limits: tuple[float, ...] = (1.0, 2.0)
    spare: Leaf | None = None


PATHS = [
    "limits.0",
    "limits.1",
    "many.cvar_leaf.alpha",
    "many.cvar_leaf.rate",
    "many.leaf.rate",
    "many.leaf_2.rate",
    "single.rate",
]


@pytest.mark.parametrize(
    ("name", "want"),
    [
        ("Value", "value"),
        ("EarlyStop", "early_stop"),
        ("CVaRConstraint", "cvar_constraint"),
        ("UPGDW", "upgdw"),
        ("PBT", "pbt"),
        ("OverAll", "over_all"),
        ("_Private", "private"),
        ("already_snake", "already_snake"),
    ],
)
def test_classes_become_parts_of_a_path(name, want):
    assert snake_case(name) == want
    assert snake_case(want) == want


def test_items_of_a_kind_are_counted_and_no_two_are_called_alike():
    """Also where a class is called as the second of another would be."""
    assert kinds([]) == []
    assert kinds(["Kl", "Value", "Kl"]) == ["kl", "value", "kl_2"]
    assert kinds(["Kl", "Kl_2", "Kl", "Kl"]) == ["kl", "kl_2", "kl_3", "kl_4"]


def test_children_are_parts_and_no_others():
    assert children(Leaf()) == {"rate": 0.5}
    assert [*children(Tree())] == ["single", "many", "limits", "spare"]
    assert children((Leaf(), CVaRLeaf())) == {"leaf": Leaf(), "cvar_leaf": CVaRLeaf()}
    for other in ((1.0, 2.0), (), [Leaf()], {"a": Leaf()}, None, 3.0):
        assert children(other) == {}


def test_descendants_are_all_below_outer_ones_first():
    found = descendants({"tree": Tree()})
    assert found["tree"] == Tree()
    assert found["tree.many.leaf_2"] == Leaf()
    assert found["tree.many.cvar_leaf.alpha"] == 0.1
    assert found["tree.limits"] == (1.0, 2.0) and found["tree.spare"] is None
    order = list(found)
    for path in order:
        owner, _, _ = path.rpartition(".")
        assert not owner or order.index(owner) < order.index(path)


def test_leaves_have_the_paths_of_fields_and_kinds():
    """As JAX finds them: in tuples of components by kind, in others by index."""
    found = [joined(Tree(), keys) for keys, _ in jax.tree.leaves_with_path(Tree())]
    assert sorted(found) == PATHS
    assert joined({"a": (Leaf(),)}, ()) == ""


def test_a_subclass_is_a_component_only_if_it_says_so():
    class Plain(Leaf):
        pass

    assert is_component(Leaf) and is_component(Leaf())
    assert not is_component(Plain) and not is_component(Tree().limits)
