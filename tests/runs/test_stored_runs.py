"""Runs that an earlier version wrote go on, and end as this one says that they do."""

import json
import shutil
from pathlib import Path

import pytest
from runs import BITS, EXACT, digest, rows, session

STORED = Path(__file__).parent / "stored"


def as_now(text):
    """Terms had indices, and have the names of their kinds; the third is an entropy."""
    return text.replace("terms.2.coef", "terms.entropy.coef")


KINDS = ("feed_forward", "recurrent", "population")
IN_ORDER = """
import jax.numpy as jnp
from ppo_jax.component import component
from ppo_jax.pbt.select import Selection, Selector

@component
class InOrder(Selector):
    def __call__(self, fitness, ready, keys):
        copied = jnp.arange(4) == 3
        return Selection(jnp.where(copied, 0, jnp.arange(4)), copied)

"""
"""A rule by which, of four equals, the last copies the first, as it did."""


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    """Where stored runs went on and a new one began: one process, compiling once."""
    home = tmp_path_factory.mktemp("stored")
    lines = []
    for kind in KINDS:
        shutil.copytree(STORED / kind, home / kind)
        lines.append(f"train {kind}/experiment.py --run-dir {kind} --resume")
    experiment = (STORED / "population" / "experiment.py").read_text()
    again = experiment.replace("interval=2,", "interval=2, selector=InOrder(),")
    (home / "new.py").write_text(IN_ORDER + as_now(again))
    lines.append("train new.py --run-dir new")
    ends = session([line.split() for line in lines], home, environment=EXACT)
    for kind, (status, text) in zip([*KINDS, "new"], ends, strict=True):
        assert status == 0, text
        (home / kind / "said").write_text(text)
    return home


@pytest.mark.parametrize("kind", KINDS)
def test_a_stored_run_goes_on(kind, home):
    """PROP-18.1: from their checkpoint, and to the same end every time.

    What was written before the checkpoint stays as it was. Bits that nobody recorded
    for this JAX and the vectors of this processor are not compared.
    """
    run_dir, written = home / kind, rows(STORED / kind)
    assert "resuming after update" in (run_dir / "said").read_text()
    expected, found = json.loads((run_dir / "digest.json").read_text()), digest(run_dir)
    assert found["update"] == expected["update"]
    assert found[BITS] == expected.get(BITS, found[BITS])
    again = rows(run_dir)
    for before, now in zip(written, again, strict=True):
        kept = {name: now[as_now(name)] for name in before}
        assert kept == before if now["step"] <= 128 else kept.keys() == before.keys()
        assert not {name for name in before if name != as_now(name)} & now.keys()


def test_a_new_run_searches_as_a_former_one_did(home):
    """P12: the same draws in the same order, whatever the numbers are called."""
    lines = (STORED / "population" / "lineage.jsonl").read_text()
    assert (home / "new" / "lineage.jsonl").read_text() == as_now(lines)
