"""Lineages on disk, and the past of a member."""

import json

import chex
import numpy as np

from ppo_jax.host.run_dir.lineage import (
    Family,
    Lineage,
    beginning,
    in_force,
    line,
    schedule,
    unpacked,
)
from ppo_jax.ppo.population import Generation


def generation(update, parent, rates):
    parent = np.array(parent)
    copied = parent != np.arange(parent.size)
    fitness = np.array([1.0, np.nan, -np.inf])
    numbers = {"rate": np.float32(rates)}
    return line(
        update,
        Generation(parent, copied, copied, ~copied, fitness, numbers, np.array(False)),
    )


LINES = [
    beginning(3, {"rate": np.float32([0.1, 0.2, 0.3])}),
    generation(4, [0, 0, 2], [0.1, 0.12, 0.3]),
    generation(8, [0, 1, 2], [0.1, 0.12, 0.3]),
    generation(12, [0, 1, 1], [0.1, 0.12, 0.15]),
]


def test_a_member_has_the_past_of_its_parents():
    """Member 2 copied 1 after 12 updates, which had copied 0 after 4."""
    past = schedule(LINES, member=2)
    assert [update for update, _ in past] == [0, 4, 8, 12]
    rates = [numbers["rate"] for _, numbers in past]
    chex.assert_trees_all_close(rates, [0.1, 0.12, 0.12, 0.15], rtol=1e-6)
    rates = [numbers["rate"] for _, numbers in schedule(LINES, member=0)]
    chex.assert_trees_all_close(rates, [0.1] * 4, rtol=1e-6)


def test_a_line_is_json_and_keeps_every_bit_of_a_number():
    """A fitness that is not finite is null."""
    text = json.dumps(LINES[1], allow_nan=False)
    assert json.loads(text) == LINES[1]
    assert LINES[1]["fitness"] == [1.0, None, None]
    chex.assert_trees_all_equal(
        np.float32(LINES[1]["numbers"]["rate"]), np.float32([0.1, 0.12, 0.3])
    )


def test_a_lineage_goes_on_from_what_is_known(tmp_path):
    """What the file has beyond it is cut off; counts are of all generations."""
    (tmp_path / "lineage.jsonl").write_text('{"update": 99}\n{"upd')
    family = Lineage(tmp_path, LINES[:2])
    for later in LINES[2:]:
        family.append(later)
    lines = (tmp_path / "lineage.jsonl").read_text().splitlines()
    assert [json.loads(text) for text in lines] == family.lines == LINES
    assert family.count("copied") == 2


def test_a_generation_is_written_once_for_its_file_and_all_checkpoints(
    tmp_path, monkeypatch
):
    """Thousands of them take no time to save; a checkpoint has those of its time."""
    written, write = [], json.dumps
    monkeypatch.setattr(json, "dumps", lambda x: written.append(x) or write(x))
    family = Lineage(tmp_path, LINES[:2])
    checkpoints = [family.packed]
    for later in LINES[2:]:
        family.append(later)
        checkpoints.append(family.packed)
    assert written == LINES
    assert [unpacked(each) for each in checkpoints] == [LINES[:n] for n in (2, 3, 4)]


def test_generations_take_a_checkpoint_less_than_half_of_their_file():
    rng = np.random.default_rng(0)
    rates, lines = rng.lognormal(size=64), []
    for update in range(100):
        parent = np.where(rng.random(64) < 0.2, rng.integers(0, 64, 64), np.arange(64))
        moved = parent != np.arange(64)
        rates = np.where(moved, 1.25, 1.0) * rates[parent]
        found = np.float32(rng.normal(size=64)), {"rate": rates}, np.array(False)
        lines.append(line(update, Generation(parent, moved, moved, ~moved, *found)))
    size = sum(len(json.dumps(each)) for each in lines)
    assert len(Family(lines).packed) < size / 2


def test_without_a_population_there_is_no_file(tmp_path):
    (tmp_path / "lineage.jsonl").write_text('{"update": 0}\n')  # Of another run.
    Lineage(tmp_path, [])
    assert not list(tmp_path.iterdir())


def test_numbers_of_a_lineage_by_hand():
    """Member 1 copied 0 after two updates, and moved; 0 copied 1 after four."""
    lines = [
        beginning(2, {"rate": np.array([0.25, 0.5])}),
        {"update": 2, "parent": [0, 0], "numbers": {"rate": [0.25, 0.125]}},
        {"update": 4, "parent": [1, 1], "numbers": {"rate": [0.0625, 0.125]}},
    ]
    moves = schedule(lines, 0)
    found = [in_force(moves, update)["rate"] for update in range(6)]
    assert found == [0.25, 0.25, 0.125, 0.125, 0.0625, 0.0625]
