"""The one rule of configuration: floats are numbers, everything else is structure."""

import dataclasses
import math
import pickle
import re

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from ppo_jax.component import (
    as_arrays,
    checked,
    component,
    converted,
    host,
    is_component,
    numbers,
    program,
    replace_at,
    require_range,
)


@component
class Part:
    """A base with one number and one integer."""

    rate: float = 0.5
    passes: int = 4

    def validate(self):
        require_range(self, "rate", "a number ≥ 0", lambda x: x >= 0)


@component
class Other(Part):
    """A subclass with a further number."""

    extra: float = 2.0


@component
class Whole:
    """Every kind of field."""

    name: str
    part: Part = Part()
    parts: tuple[Part, ...] = (Part(), Other())
    clip: float | None = None
    limits: tuple[float, ...] = (1.0, 2.0)
    sizes: tuple[int, ...] = (64, 64)
    spare: Part | None = None
    seed: int = host(default=0)


@component
class Search:
    """Fields for the host, and a check that its default does not pass."""

    interval: int = host(default=1)
    ranges: dict | None = host(default=None)
    part: Part = Part()

    def validate(self):
        if self.interval < 2:
            raise ValueError("interval too short")


@component
class Experiment:
    """A component with a component that has fields for the host."""

    search: Search = Search(interval=2)
    searches: tuple[Search, ...] = ()
    budget: int = host(default=1000)


def test_floats_are_leaves_and_the_rest_is_structure():
    assert numbers(Whole("a")) == {
        "part.rate": 0.5,
        "parts.part.rate": 0.5,
        "parts.other.extra": 2.0,
        "parts.other.rate": 0.5,
        "limits.0": 1.0,
        "limits.1": 2.0,
    }
    assert "clip" in numbers(Whole("a", clip=0.2))
    structure = jax.tree.structure
    assert structure(Whole("a")) == structure(Whole("a", part=Part(rate=0.1)))
    for changed in (
        Whole("b"),
        Whole("a", clip=0.2),
        Whole("a", sizes=(64,)),
        Whole("a", part=Part(passes=1)),
        Whole("a", part=Other()),
        Whole("a", spare=Part()),
    ):
        assert structure(changed) != structure(Whole("a"))


def test_components_are_values():
    assert Whole("a") == Whole("a")
    assert hash(Whole("a")) == hash(Whole("a"))
    assert Whole("a") != Whole("a", part=Part(rate=0.1))
    assert Part() != Other()
    assert pickle.loads(pickle.dumps(Whole("a"))) == Whole("a")
    assert eval(repr(Whole("a"))) == Whole("a")
    with pytest.raises(dataclasses.FrozenInstanceError):
        Part().rate = 1.0


def test_trees_of_components_round_trip():
    leaves, structure = jax.tree.flatten(Whole("a", clip=0.2))
    assert jax.tree.unflatten(structure, leaves) == Whole("a", clip=0.2)
    doubled = jax.tree.map(lambda x: 2 * x, Whole("a"))
    assert doubled.part == Part(rate=1.0)
    assert doubled.sizes == (64, 64)


def test_is_component():
    assert is_component(Part) and is_component(Part())
    assert not is_component(0.5)

    class Plain(Part):
        pass

    assert not is_component(Plain)
    with pytest.raises(TypeError, match="Plain: a subclass of a component needs"):
        Plain()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Part(passes=1.5), "Part.passes: expected int, got 1.5 (float)"),
        (lambda: Part(passes=True), "Part.passes: expected int, got True (bool)"),
        (lambda: Part(passes=math.inf), "Part.passes: expected int, got inf (float)"),
        (lambda: Part(passes=np.ones(2)), "Part.passes: expected int, got array"),
        (lambda: Whole("a", parts=[0.5]), "Whole.parts: expected tuple"),
        (lambda: Part(rate="1"), "Part.rate: expected float, got '1' (str)"),
        (lambda: Part(rate=True), "Part.rate: expected float, got True (bool)"),
        (lambda: Part(rate=None), "Part.rate: expected float, got None (NoneType)"),
        (lambda: Whole(1), "Whole.name: expected str, got 1 (int)"),
        (lambda: Whole("a", clip=True), "Whole.clip: expected float | None"),
        (lambda: Whole("a", part=Search(2)), "Whole.part: expected Part, got Search"),
        (lambda: Whole("a", part=Part), "Whole.part: expected Part, got <class"),
        (lambda: Whole("a", parts=(0.5,)), "Whole.parts: expected tuple"),
        (lambda: Whole("a", limits=3.0), "Whole.limits: expected tuple[float, ...]"),
        (lambda: Whole("a", limits=(1, "2")), "Whole.limits: expected tuple"),
        (lambda: Whole("a", sizes=(1, 2.5)), "Whole.sizes: expected tuple[int, ...]"),
    ],
)
def test_a_wrong_type_is_named(make, message):
    with pytest.raises(TypeError, match=re.escape(message)):
        make()


@pytest.mark.parametrize(
    ("made", "value"),
    [
        (lambda: Part(rate=1).rate, 1.0),
        (lambda: Part(rate=np.float32(0.25)).rate, 0.25),
        (lambda: Part(rate=jnp.array(3)).rate, 3.0),
        (lambda: Part(passes=1e6).passes, 1_000_000),
        (lambda: Part(passes=np.uint8(4)).passes, 4),
        (lambda: Part(passes=np.float64(4)).passes, 4),
        (lambda: Part(passes=jnp.array(4.0)).passes, 4),
        (lambda: Whole("a", clip=2).clip, 2.0),
        (lambda: Whole("a", limits=(1, 2)).limits, (1.0, 2.0)),
        (lambda: Whole("a", limits=[np.int32(1), 2]).limits, (1.0, 2.0)),
        (lambda: Whole("a", sizes=[64, 3.0]).sizes, (64, 3)),
        (lambda: Whole("a", parts=[Part()]).parts, (Part(),)),
        (lambda: Whole("a", seed=7.0).seed, 7),
    ],
)
def test_what_loses_nothing_is_taken(made, value):
    """As Python's own numbers and tuples, so that components stay values."""
    assert repr(made()) == repr(value)


def test_numbers_that_are_mapped_or_traced_stay_arrays():
    many = np.array([1.0, 2.0])
    assert Part(rate=many).rate is many
    traced = jax.jit(lambda x: Part(rate=x).rate + Whole("a", limits=[x]).limits[0])
    assert traced(1.5) == 3.0


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: Part(rat=1), "Part: no field is called 'rat'; the closest is 'rate'"),
        (lambda: Whole("a", parts=(), extr=1), "'extr'; there are: name, part, "),
        (lambda: Whole("a", spare=Other(), ekstra=1), "the closest is 'spare.extra'"),
        (lambda: Whole("a", LIMIT=1), "the closest is 'limits'"),
        (
            lambda: Whole("a", rat=1),
            "'rat'; the closest is 'part.rate'; give part=Part(rate=…)",
        ),
        (
            lambda: Whole("a", **{"part.rate": 1.0}),  # pyright: ignore
            "Whole: part.rate is a field of a part; give part=Part(rate=…)",
        ),
        (
            lambda: Whole("a", **{"parts.other.extra": 1}),  # pyright: ignore
            "parts.other.extra is a field of a part; give parts=(…, Other(extra=…))",
        ),
    ],
)
def test_a_field_that_there_is_not_is_told_by_the_closest_path(make, said):
    """At any depth, of what was given as of defaults; the outer ones first."""
    with pytest.raises(TypeError, match=re.escape(said)):
        make()


@component
class Odd(Part):
    """Advises against four passes."""

    def advise(self):
        if self.passes == 4:
            yield "Odd.passes: four are many"


def test_advice_is_a_warning_to_whoever_constructs():
    with pytest.warns(UserWarning, match=r"^Odd\.passes: four are many$") as caught:
        odd = Odd()
    assert [warning.filename for warning in caught] == [__file__]
    assert checked(odd) is odd
    assert Odd(passes=3).passes == 3


def test_a_range_is_checked_on_numbers_that_are_known():
    with pytest.raises(ValueError, match=r"Part\.rate: expected a number ≥ 0, got -1"):
        Part(rate=-1.0)
    with pytest.raises(ValueError, match=r"Other\.rate: .*, got nan"):
        Other(rate=math.nan)
    assert jax.jit(lambda x: Part(rate=x).rate)(-1.0) == -1.0


@pytest.mark.parametrize("asarray", [jnp.asarray, np.asarray], ids=["jax", "numpy"])
def test_fields_can_be_replaced_whatever_the_leaves_are(asarray):
    whole = jax.tree.map(lambda x: asarray(x, np.float32), Whole("a", clip=0.2))
    changed = dataclasses.replace(whole, sizes=(8,))
    assert changed.sizes == (8,)
    assert changed.limits == whole.limits
    traced = jax.jit(lambda w: dataclasses.replace(w, clip=2 * w.clip))(whole)
    chex.assert_trees_all_close(traced.clip, 0.4, rtol=1e-7)


def test_a_converter_is_applied_at_construction():
    @component
    class Holder:
        part: Part = converted(lambda x: Part(passes=x) if isinstance(x, int) else x)

    assert Holder(3) == Holder(Part(passes=3))
    assert numbers(Holder(3)) == {"part.rate": 0.5}
    with pytest.raises(TypeError, match=r"Holder\.part: expected Part"):
        Holder("3")


def test_replace_at_changes_one_number():
    changed = replace_at(Whole("a"), "parts.other.rate", 0.25)
    assert changed == Whole("a", parts=(Part(), Other(rate=0.25)))
    with pytest.raises(
        KeyError, match=r"'parts.other.rat'; the closest is 'parts.other.rate'"
    ):
        replace_at(Whole("a"), "parts.other.rat", 0.25)
    with pytest.raises(KeyError, match=r"clip is no number, .*replace\(…, clip=…\)"):
        replace_at(Whole("a"), "clip", 0.25)
    with pytest.raises(KeyError, match=r"replace\(…, part=Part\(passes=…\)\)"):
        replace_at(Whole("a"), "part.passes", 8)
    with pytest.raises(ValueError, match=r"part\.rate: expected a number, got '1e-3'"):
        replace_at(Whole("a"), "part.rate", "1e-3")
    with pytest.raises(KeyError, match=r"no number is called 'x'\"$"):
        replace_at((), "x", 0.25)


def test_program_blanks_what_only_the_host_reads():
    """At any depth, and without checking what the host alone has to keep."""
    search = Search(interval=9, ranges={"a": [1]}, part=Part(rate=0.1))
    experiment = Experiment(search, (search, search), budget=7)
    blanked = program(experiment)
    assert blanked.budget == 1000
    for part in (blanked.search, *blanked.searches):
        assert (part.interval, part.ranges, part.part) == (1, None, Part(rate=0.1))
    assert experiment.search.ranges == {"a": [1]}
    same = Experiment(Search(5, None, Part(rate=0.1)), (Search(6), Search(7)), 8)
    chex.assert_trees_all_equal_structs(program(same), blanked)
    hash(jax.tree.structure(blanked))


def test_a_changed_number_does_not_retrace():
    """A changed structure does; a number as a float or as an array does not."""
    chex.clear_trace_counter()

    @jax.jit
    @chex.assert_max_traces(n=1)
    def run(whole):
        return whole.part.rate * whole.limits[0] * len(whole.sizes)

    for rate in (0.5, 0.25, 3.0):
        whole = replace_at(
            as_arrays(program(Whole("a"))), "part.rate", jnp.float32(rate)
        )
        assert run(whole) == 2 * rate
    run(as_arrays(program(Whole("a", limits=(2.0, 2.0), seed=3))))
    with pytest.raises(AssertionError, match="traced > 1 times"):
        run(as_arrays(program(Whole("a", sizes=(64,)))))


def test_as_arrays_gives_strong_float32():
    leaves = [0.5, np.float64(0.5), jnp.asarray(0.5), np.ones(2), jnp.float16(1)]
    for leaf in jax.tree.leaves(as_arrays([*leaves, Part()])):
        chex.assert_type(leaf, jnp.float32)
        assert not leaf.weak_type


def test_members_have_numbers_of_their_own():
    members = as_arrays(Whole("a", part=Part(rate=jnp.array([1.0, 2.0, 3.0]))))
    axes = jax.tree.map(lambda x: 0 if x.ndim else None, members)
    product = jax.vmap(lambda w: w.part.rate * w.limits[1], in_axes=(axes,))(members)
    assert product.tolist() == [2.0, 4.0, 6.0]
    run = jax.vmap(lambda rate: replace_at(Whole("a"), "part.rate", rate))
    assert run(jnp.arange(3.0)).part.rate.tolist() == [0.0, 1.0, 2.0]


def test_what_a_subclass_validates_comes_on_top():
    """Whether or not what it derives from has a `validate` of its own."""

    @component
    class Base:
        rate: float = 0.5

    @component
    class Capped(Base):
        def validate(self):
            super().validate()
            if self.rate > 1:
                raise ValueError("Capped.rate: at most 1")

    assert Capped(rate=1.0).rate == 1.0
    with pytest.raises(ValueError, match=r"Capped\.rate"):
        Capped(rate=2.0)
