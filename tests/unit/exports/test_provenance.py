"""What the last evaluation said, by hand."""

from ppo_jax.exports.provenance import evaluation

ROWS = [
    {"time/iterations": 1.0},
    {"time/iterations": 2.0, "eval/mean_reward": 1.0, "eval/std_reward": 0.5},
    {"time/iterations": 4.0, "eval/mean_reward": 3.0},
]


def test_the_last_one_until_then_counts():
    assert evaluation(ROWS, 1, None) is None
    said = {"update": 2, "mean_reward": 1.0, "std_reward": 0.5}
    assert evaluation(ROWS, 2, None) == evaluation(ROWS, 3, None) == said
    assert evaluation(ROWS, 4, None) == {"update": 4, "mean_reward": 3.0}


def test_a_member_has_its_own():
    """The row of a population is its median."""
    row = {"time/iterations": 2.0, "eval/mean_reward": 1.0}
    row |= {f"each/eval/mean_reward/{i}": x for i, x in enumerate((0.0, 2.0))}
    assert evaluation([row], 2, 1) == {"update": 2, "mean_reward": 2.0}
    assert evaluation(ROWS, 4, 1) is None


def test_who_has_copied_another_one_plays_as_that_one():
    """A generation comes after the evaluation of its row."""
    scores = {f"each/eval/mean_reward/{i}": 10.0 * i for i in range(3)}
    rows = [
        {"time/iterations": 2.0} | scores,
        {"time/iterations": 4.0, "pbt/parent/0": 1.0, "pbt/parent/1": 1.0},
        {"time/iterations": 6.0, "pbt/parent/0": 0.0, "pbt/parent/1": 2.0},
    ]
    found = [
        [evaluation(rows, update, member)["mean_reward"] for member in (0, 1)]
        for update in (2, 4, 6)
    ]
    assert found == [[0.0, 10.0], [10.0, 10.0], [10.0, 20.0]]
    rows[0] |= {"pbt/parent/0": 2.0}
    assert evaluation(rows, 2, 0)["mean_reward"] == 20.0
