"""Groups of metrics, what is healthy, and what never changed."""

import math

import pytest
from reported import row, said, written

from ppo_jax.host.metrics.alarms import Alarms
from ppo_jax.host.metrics.alerts import ALERTS
from ppo_jax.reports import records
from ppo_jax.reports.diagnostics import healthy, section

LIMITED = sorted({alert.metric.replace("*", "1") for alert in ALERTS})


def folds(path, rows):
    _, *found = section(records.read(written(path, rows))).parts
    return found


@pytest.mark.parametrize("name", LIMITED)
def test_what_is_shaded_is_what_no_alert_speaks_of(name):
    """Each alert is asked, at values all over the place, three phases long."""
    low, high = healthy(name)
    others = {limit.metric: 1.0 for a in ALERTS for limit in a.limits if limit.metric}
    for value in (-200.0, -1.0, 0.0, 1e-9, 0.02, 0.5, 0.9, 3.0, 20.0, 50.0, 500.0):
        alarms = Alarms()
        for _ in range(3):
            active, _ = alarms.check([others | {name: value}])
        if low <= value <= high:
            assert not any(active.values()), (value, active)
        elif name != "train/policy_entropy" or value >= 0:
            assert any(active.values()), value


def test_metrics_are_in_the_groups_of_the_catalogue(tmp_path):
    """One's own are apart; what a pattern stands for is one chart."""
    rows = [
        row(i, mine__speed=i, train__approx_kl=i, train__learning_rate=0.5)
        | {f"train/grad_norm/head{n}": i * n for n in range(1, 10)}
        for i in (1, 2)
    ]
    found = {fold.title.partition(" · ")[0]: fold for fold in folds(tmp_path, rows)}
    (kl,) = found["Policy"].parts[0].charts
    assert kl.title == "train/approx_kl" and kl.unit == "nats" and "Last: 2." in kl.text
    (own,) = found["Of the experiment"].parts[0].charts
    assert own.title == "mine/speed" and found["Of the experiment"].open
    layers = [
        c for f in found.values() for p in f.parts for c in getattr(p, "charts", [])
    ]
    (layers,) = [chart for chart in layers if chart.title == "train/grad_norm/head*"]
    threads, *curves = layers.marks
    assert len(threads.lines) == 3 and [c.name for c in curves][:2] == [
        "1",
        "2",
    ]


def test_what_never_changed_is_in_a_table(tmp_path):
    """Unless members differ, or it was not always finite."""
    rows = [
        row(i, train__clip_range=0.25, train__loss=None if i == 2 else 1.0)
        | {"train/ent_coef": 0.5, "q25/train/ent_coef": 0.25, "q75/train/ent_coef": 1}
        for i in (1, 2)
    ]
    found = folds(tmp_path, rows)
    tables = [part.parts[0] for f in found for part in f.parts if hasattr(part, "open")]
    (table,) = tables
    assert "train/clip_range 0.25" in said(table)
    assert "ent_coef" not in said(table) and "loss" not in said(table)


def test_no_limit_is_no_shade():
    assert healthy("train/loss") is None
    assert healthy("train/explained_variance") == (0.3, math.inf)
