"""Names of versions before: understood where they are kept, told where they are new."""

import pytest

from ppo_jax import Config, terms
from ppo_jax.component import former
from ppo_jax.terms import term

CONFIG = Config(
    "CartPole-v1", terms=(terms.Surrogate(), terms.Value(), terms.Entropy())
)
NAMES = {
    "terms.0": "terms.surrogate",
    "terms.1": "terms.value",
    "terms.2": "terms.entropy",
}


def test_items_had_an_index():
    assert former.names_in(CONFIG) == NAMES
    assert former.names_in((CONFIG.terms, 3.0)) == {}


def test_classes_by_path_say_the_same():
    """Of a run of which only the description is known; tuples within tuples too."""
    classes = {"": "Config", "critic": "Scalar"}
    classes |= {"terms.10": "Kl"} | {f"terms.{i}": "Value" for i in range(10)}
    names = former.names_by(classes)
    assert names["terms.9"] == "terms.value_10" and names["terms.10"] == "terms.kl"
    assert len(names) == 11
    within = {"a.0": "Pair", "a.0.b.0": "Kl", "a.0.b.1": "Kl", "a.1": "Pair"}
    assert former.names_by(within) == {
        "a.0": "a.pair",
        "a.1": "a.pair_2",
        "a.0.b.0": "a.pair.b.kl",
        "a.0.b.1": "a.pair.b.kl_2",
    }


@pytest.mark.parametrize(
    ("before", "now"),
    [
        ("terms.2", "terms.entropy"),
        ("terms.2.coef", "terms.entropy.coef"),
        ("--terms.2.coef=0.5", "--terms.entropy.coef=0.5"),
        ("pbt/terms.1.coef/0", "pbt/terms.value.coef/0"),
        ("terms.22.coef", "terms.22.coef"),
        ("my.terms.2.coef", "my.terms.2.coef"),
        ("--my-terms.2.coef", "--my-terms.2.coef"),
        ("coef", "coef"),
        (["terms.0", {"terms.1": 2}], ["terms.surrogate", {"terms.value": 2}]),
        (0.25, 0.25),
        (None, None),
    ],
)
def test_paths_are_translated_wherever_they_are(before, now):
    """And nothing that only looks like one."""
    assert former.translated(before, NAMES) == now
    assert former.translated(now, NAMES) == now
    assert former.translated(before, {}) == before


def test_options_have_dashes_where_paths_have_underscores():
    names = {"my_terms.0": "my_terms.value"}
    assert former.translated("--my-terms.0.coef", names) == "--my_terms.value.coef"


def test_the_longest_former_path_is_meant():
    names = {"a.1": "a.one", "a.1.b.0": "a.one.b.kl"}
    assert former.translated("a.1.b.0.x, a.1.c", names) == "a.one.b.kl.x, a.one.c"


def test_whoever_writes_a_former_path_is_told_the_one_of_now():
    said = "terms.2.coef: terms are addressed by their kind; this one is terms.entropy"
    with pytest.raises(KeyError, match=said):
        former.resolved(CONFIG, "terms.2.coef")
    assert former.resolved(CONFIG, "terms.entropy.coef") == "terms.entropy.coef"
    assert former.resolved(CONFIG, "gamma") == "gamma"


def test_in_the_file_of_a_run_former_names_are_understood():
    """Paths and classes, and only meanwhile, whatever happens there."""
    with former.understood():
        assert former.resolved(CONFIG, "terms.2.coef") == "terms.entropy.coef"
        for module in (terms, term):
            assert module.Rollout is module.RolloutTargets
    with pytest.raises(ZeroDivisionError), former.understood():
        1 / 0  # noqa: B018
    assert not hasattr(terms, "Rollout") and not hasattr(term, "Rollout")
    with pytest.raises(KeyError):
        former.resolved(CONFIG, "terms.2.coef")


def test_names_within_each_other_are_undone_one_by_one():
    with former.understood():
        with former.understood():
            assert hasattr(terms, "Rollout")
        assert former.resolved(CONFIG, "terms.0") == "terms.surrogate"
        assert hasattr(terms, "Rollout")
    assert not hasattr(terms, "Rollout")
