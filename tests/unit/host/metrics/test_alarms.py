"""Which alerts begin and last, for whom, phase after phase."""

import json
import math

import numpy as np

from ppo_jax.host.metrics.alarms import Alarms

NAN = math.nan


LOW, EXPLAINED = "warn/explained_variance_low", "train/explained_variance"
VARIATION = "train/target_return_variation"


def explaining(value, variation=1.0):
    """What a member says whose critic explains so much."""
    return {EXPLAINED: value, VARIATION: variation}


def test_an_alert_waits_its_phases_and_is_said_once():
    """PROP-14.4: what is unavailable changes no count."""
    values = [0.2, 0.2, NAN, 0.2, 0.1, NAN, 0.3, 0.2, 0.2, 0.2]
    alarms, found = Alarms(), []
    for value in values:
        flags, lines = alarms.check([explaining(value)])
        found.append((flags[LOW], len(lines)))
    ended = [(0, 0)] * 3
    assert found == [(0, 0)] * 3 + [(1, 1), (1, 0), (1, 0), *ended, (1, 0)]


def test_nothing_is_to_be_explained_where_returns_hardly_vary():
    """Such phases end a streak; what is unavailable does not."""
    rows = [(0.2, 0.5), (0.2, 0.5), (NAN, NAN), (-9.0, 0.01), (-9.0, 0.0)]
    rows += [(0.2, 0.011)] * 3
    alarms = Alarms()
    found = [alarms.check([explaining(*row)])[0][LOW] for row in rows]
    assert found == [0] * 7 + [1]


def test_members_wait_and_begin_by_themselves():
    """One low now and then, one for good, one never, one a phase later."""
    phases = np.array([[0.2] * 4, [0.5, 0.2, 0.2, 0.2], [0.9] * 4, [NAN, 0.1, 0, -1]])
    phases[0, 1] = 0.4
    alarms, found = Alarms(), []
    for values in np.concatenate([phases, phases[:, -1:]], axis=1).T:
        flags, lines = alarms.check([explaining(float(x)) for x in values])
        found.append((flags[LOW], lines))
    assert [flag for flag, _ in found] == [0, 0, 0, 2, 3]
    assert [len(lines) for _, lines in found] == [0, 0, 0, 1, 1]
    said = "warn/explained_variance_low: train/explained_variance = "
    assert found[3][1][0].startswith(f"{said}-1 to 0.2 in members 1, 3 of 4, healthy:")
    assert found[4][1][0].startswith(f"{said}0.2 in member 0 of 4, healthy:")


def test_a_run_that_resumes_goes_on_counting():
    """With the streaks as JSON, a resumed run says what one that never stopped says."""
    values = [0.2, NAN, 0.2, 0.2, 0.2]
    rows = [[explaining(value), explaining(0.9)] for value in values]
    for end in range(len(rows)):
        whole = Alarms()
        for row in rows[:end]:
            whole.check(row)
        resumed = Alarms(json.loads(json.dumps(whole.streaks)))
        for row in rows[end:]:
            assert whole.check(row) == resumed.check(row)
    assert whole.streaks == {f"{LOW} < 0.3, 3 phases in a row": [4, 0]}
