"""How a run has ended is known afterwards, and never left over from before."""

import json

import pytest

from ppo_jax.errors import UserError
from ppo_jax.host.run_dir.ending import last, recorded


def told(run_dir):
    return vars(last(run_dir))


def test_an_ending_is_written_as_it_was_said(tmp_path):
    with recorded(tmp_path) as ending:
        ending.state = "interrupted"
    assert told(tmp_path) == {"state": "interrupted", "why": ""}


ERRORS = pytest.mark.parametrize(
    ("error", "state", "why"),
    [
        (UserError("x: expected y\nmore"), "failed", "x: expected y"),
        (OSError(28, "No space left"), "failed", "OSError: [Errno 28] No space left"),
        (KeyboardInterrupt(), "interrupted", ""),
    ],
)


@ERRORS
def test_an_error_is_an_ending_with_its_cause(tmp_path, error, state, why):
    with pytest.raises(type(error)), recorded(tmp_path) as ending:
        ending.state = "finished"  # Its last checkpoint could not be saved.
        raise error
    assert told(tmp_path) == {"state": state, "why": why}


@ERRORS
def test_an_error_that_is_raised_later_is_one_too(tmp_path, error, state, why):
    with recorded(tmp_path) as ending:
        ending.became("stopped", error)
    assert told(tmp_path) == {"state": state, "why": why}


def test_a_run_that_goes_on_has_not_ended(tmp_path):
    """Killed then, it ended without a word, whatever it had said before."""
    with recorded(tmp_path) as ending:
        ending.state = "finished"
    with recorded(tmp_path):
        assert told(tmp_path)["state"] == ""
    assert told(tmp_path)["state"] == ""


@pytest.mark.parametrize("text", ["", "{", "[]", "3", '{"state": "finished"}'])
def test_what_is_no_ending_is_none(tmp_path, text):
    (tmp_path / "ending.json").write_text(text)
    assert told(tmp_path) == {"state": "", "why": ""}


def test_a_disk_that_is_full_hides_no_error(tmp_path, monkeypatch):
    with pytest.raises(UserError, match="first"), recorded(tmp_path / "gone"):
        raise UserError("first")
    assert not (tmp_path / "gone").exists()
    with recorded(tmp_path) as ending:
        ending.state = "finished"
    assert json.loads((tmp_path / "ending.json").read_text())["state"] == "finished"
