"""Alerts on a time line, with what to do."""

from reported import row, said, written

from ppo_jax.reports import records
from ppo_jax.reports.elements import element
from ppo_jax.reports.troubles import section, troubles

KL, ENTROPY = "warn/kl_over_target", "warn/entropy_collapse"


def run(path, *values):
    rows = [row(i, **{KL: kl, ENTROPY: e}) for i, (kl, e) in enumerate(values, start=1)]
    return records.read(written(path, rows))


def test_spells_are_phases_in_a_row(tmp_path):
    """A phase is what lies between its row and the one before."""
    found = troubles(run(tmp_path, (0, 0), (1, 0), (1, 0), (0, 0), (3, 1)))
    kl, entropy = found
    assert (kl.name, kl.spells) == (KL, [(100, 300), (400, 500)])
    assert (kl.share, kl.members, kl.lasts) == (0.6, 3, True)
    assert entropy.spells == [(400, 500)] and entropy.share == 0.2


def test_what_no_eye_could_tell_apart_is_one(tmp_path):
    """Every other of ten thousand phases is one long spell."""
    flicker = [(i % 2, 0) for i in range(10_000)]
    (kl,) = troubles(run(tmp_path, *flicker))
    assert len(kl.spells) == 1 and kl.share == 0.5


def test_cause_and_remedy_are_there(tmp_path):
    parts = section(run(tmp_path, (0, 0), (1, 0), (0, 0))).parts
    text = said(element("div", parts))
    assert "1 of 2 alerts were active" in text
    assert "33% of the run, within steps 100 to 200" in text
    assert "Steps are too large for the target" in text and "Lower the learning" in text
    assert "python -m ppo_jax.alerts warn/kl_over_target" in text


def test_both_limits_of_an_alert_are_told(tmp_path):
    """What is in one row is written out in the other."""
    name = "warn/normalization_mean_nonzero"
    found = records.read(written(tmp_path, [row(1, **{name: 1})]))
    text = said(element("div", section(found).parts))
    for limit in ("> 0.1", "< -0.1"):
        assert f"train/advantages_norm_mean {limit} healthy" in text
    assert text.count("does not centre") == 2


def test_a_calm_run_says_so(tmp_path):
    (calm,) = section(run(tmp_path, (0, 0))).parts
    assert said(calm) == "None of the 2 alerts that were watched was ever active."
