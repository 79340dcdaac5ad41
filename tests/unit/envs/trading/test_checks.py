"""Each way in which a file is broken is told, and where."""

import pytest
from price_files import BROKEN, GOOD

from ppo_jax.envs.trading import PriceError, PriceFile
from ppo_jax.envs.trading.checks import REPAIRS, STAGES

REFUSED = (
    "other",
    "zones",
    "disorder",
    "again",
    "infinite",
    "zero",
    "missing",
    "calendars",
    "outside",
    "unadjusted",
    "gap",
    "split",
    "few",
)
"""A file for each check."""


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_file_is_told(name, tmp_path):
    text, said = BROKEN[name]
    path = tmp_path / f"{name}.csv"
    path.write_text(text)
    with pytest.raises(PriceError) as told:
        PriceFile(str(path))
    assert str(told.value).startswith(str(path))
    for part in said:
        assert part in str(told.value), str(told.value)


def test_every_check_refuses_some_file(tmp_path, monkeypatch):
    """Without it, some other thing is said of the file, or nothing."""
    for stage, name in zip(STAGES, REFUSED, strict=True):
        path = tmp_path / f"{name}.csv"
        path.write_text(BROKEN[name][0])
        others = tuple(each for each in STAGES if each is not stage)
        with monkeypatch.context() as patched:
            patched.setattr("ppo_jax.envs.trading.checks.STAGES", others)
            assert BROKEN[name][1][0] not in str(_said(path)), stage.check.__name__


def _said(path):
    try:
        PriceFile(str(path))
    except Exception as error:
        return error


def test_a_repair_is_one_of_those_that_there_are(tmp_path):
    path = tmp_path / "good.csv"
    path.write_text(GOOD)
    with pytest.raises(ValueError, match=r"no repair is called 'sort_row'; the clo"):
        PriceFile(str(path), repairs=("sort_row",))
    assert len(REPAIRS) == len({repair.__name__ for repair in REPAIRS})
