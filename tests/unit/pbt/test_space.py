"""Which numbers are searched: by path, drawn, read and written."""

import jax
import numpy as np
import pytest

from ppo_jax.component import component
from ppo_jax.pbt.ranges import Choice, LogUniform, Uniform
from ppo_jax.pbt.space import Space

RANGES = [LogUniform(1e-5, 5e-4), Uniform(0.05, 0.3)]


def test_what_numbers_are_called_is_nothing_to_what_is_drawn():
    """P12: keys go by the order in which ranges are given, not by that of names."""
    key = jax.random.key(3)
    drawn = [
        Space.of(dict(zip(names, RANGES, strict=True))).sample(key)
        for names in (("terms.0.x", "terms.2.x"), ("terms.surrogate.x", "terms.cvar.x"))
    ]
    assert [*drawn[0].values()] == [*drawn[1].values()]


@component
class Inner:
    rate: float = 0.1
    size: int = 3


@component
class Outer:
    inner: Inner = Inner()
    coef: float = 0.5
    other: Inner | None = None


SPACE = Space.of({"inner.rate": LogUniform(0.01, 1.0), "coef": Uniform(0.0, 1.0)})


def test_a_space_names_numbers_by_path():
    assert SPACE.paths == ("inner.rate", "coef")
    SPACE.require_in(Outer())
    assert SPACE.read(Outer()) == {"inner.rate": 0.1, "coef": 0.5}
    moved = SPACE.write(Outer(), {"inner.rate": 0.2, "coef": 0.7})
    assert moved == Outer(Inner(0.2), 0.7)
    wrong = Space.of({"inner.rat": Uniform(0.0, 1.0)})
    with pytest.raises(KeyError, match=r"closest is 'inner\.rate'"):
        wrong.require_in(Outer())
    structure = Space.of({"inner.size": Uniform(0.0, 1.0)})
    with pytest.raises(KeyError, match=r"inner\.size is structure, .* `ppo_jax.sweep`"):
        structure.require_in(Outer())
    absent = Space.of({"other.rate": Uniform(0.0, 1.0)})
    with pytest.raises(
        KeyError, match=r"^'other\.rate: other is absent, give it a value"
    ):
        absent.require_in(Outer())
    absent.require_in(Outer(other=Inner()))


def test_samples_of_a_space_are_independent():
    """Members and numbers alike: no two are correlated."""
    space = Space.of({name: Uniform(0.0, 1.0) for name in "abc"})
    drawn = jax.jit(jax.vmap(space.sample))(jax.random.split(jax.random.key(0), 2_000))
    columns = np.stack([drawn[name] for name in "abc"])
    correlation = np.corrcoef(columns) - np.eye(3)
    assert np.abs(correlation).max() < 0.1
    assert abs(np.corrcoef(columns[0, :-1], columns[0, 1:])[0, 1]) < 0.1


def test_spaces_are_hashable_and_compared_by_value():
    same = Space.of({"inner.rate": LogUniform(0.01, 1.0), "coef": Uniform(0.0, 1.0)})
    assert {SPACE: 1}[same] == 1
    assert Space.of({"coef": Uniform(0.0, 1.0)}) != SPACE
    assert hash(Choice([1.0, 2.0])) == hash(Choice((1.0, 2.0)))
