"""What is said of a name that there is not."""

import pytest

from ppo_jax.component.suggestion import WIDTH, uncalled, unknown

PATHS = [
    "terms.entropy.coef",
    "gamma",
    "optimizer.b1",
    "optimizer.learning_rate",
    "optimizer.schedule",
    "gae_lambda",
]


@pytest.mark.parametrize(
    ("name", "closest"),
    [
        ("gama", "gamma"),
        ("GAMMA", "gamma"),
        ("learning_rate", "optimizer.learning_rate"),
        ("optimiser.learning_rate", "optimizer.learning_rate"),
        ("entropy.coeff", "terms.entropy.coef"),
        ("lambda", "gae_lambda"),
    ],
)
def test_the_closest_is_named(name, closest):
    said = unknown("number", name, PATHS)
    assert said == f"no number is called {name!r}; the closest is {closest!r}"


@pytest.mark.parametrize(
    ("name", "closest"),
    [
        ("lr", "optimizer.learning_rate"),
        ("LR", "optimizer.learning_rate"),
        ("--lr", "--optimizer.learning-rate"),
        ("ent_coef", "terms.entropy.coef"),
        ("--entropy-cost", "--terms.entropy.coef"),
        ("discounting", "gamma"),
        ("optimizer.lr", "optimizer.learning_rate"),
        ("--optimizer.lr", "--optimizer.learning-rate"),
        ("terms.entropy.ent_coef", "terms.entropy.coef"),
        ("--no-anneal-lr", "--optimizer.schedule"),
    ],
)
def test_what_other_libraries_call_it_is_known(name, closest):
    options = ["--cluster", *(f"--{path}".replace("_", "-") for path in PATHS)]
    known = options if name.startswith("--") else PATHS
    assert unknown("field", name, known).endswith(f"; the closest is {closest!r}")


def test_a_name_elsewhere_of_what_is_not_there_is_none():
    assert unknown("field", "lr", ["cluster", "coef"]).endswith(
        "there are: cluster, coef"
    )


def test_names_of_files_with_the_same_ending_are_no_more_alike():
    said = unknown("file", "pole.py", ["cartpole_long.py", "pole2.py"])
    assert said.endswith("; the closest is 'pole2.py'")


def test_of_two_that_are_as_close_the_outer_one_is_named():
    assert unknown("field", "rates", ["a.b.rate", "a.rate"]).endswith("'a.rate'")


def test_without_anything_like_it_all_are_named():
    said = unknown("metric", "xyz", ["a.bcd", "efg"])
    assert said == "no metric is called 'xyz'; there are: efg, a.bcd"
    assert unknown("metric", "xyz", []) == "no metric is called 'xyz'"


def test_many_names_are_cut_between_two():
    names = [f"name{i}" for i in range(1000)]
    listed = unknown("metric", "zzz", names).partition("there are: ")[2]
    shown = listed.removesuffix(", …").split(", ")
    assert shown == names[: len(shown)]
    one_more = ", ".join(names[: len(shown) + 1])
    assert len(listed) <= WIDTH < len(f"{one_more}, …")


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (int, "; a class has to be called: int(…)"),
        ([3, dict, int], "; a class has to be called: dict(…)"),
        ((), ""),
        ("int", ""),
        (None, ""),
    ],
)
def test_a_class_that_was_not_called_is_said_to_be_one(given, said):
    assert uncalled(given) == said
