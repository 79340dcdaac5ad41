"""What training leaves in real directories: what the document names, and a page."""

import pytest
from reported import named, parsed, said, unnamed
from runs import EXPERIMENT, session

POPULATION = """
import dataclasses

from ppo_jax import PBT, Uniform

search = PBT({"gamma": Uniform(0.5, 0.9)}, size=4, interval=2)
sizes = {"phase_updates": 2, "total_timesteps": 32 * 4}
config = dataclasses.replace(config, pbt=search, **sizes)
"""


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    """Populations, one without a page, of a file with a module beside it."""
    home = tmp_path_factory.mktemp("directories")
    (home / "sizes.py").write_text("LIMIT = 5\n")
    text = "from sizes import LIMIT\n" + EXPERIMENT.format(memory="") + POPULATION
    (home / "mine.py").write_text(text)
    lines = (
        "train mine.py --run-dir run",
        "train mine.py --run-dir bare --no-report --quiet",
    )
    told = session((line.split() for line in lines), home)
    assert [status for status, _ in told] == [0, 0], told
    assert "  run/report.html\n" in told[0][1] and "report" not in told[1][1]
    return home


def test_every_file_is_in_the_document(home):
    """And of the document all that training leaves is there."""
    assert unnamed(home / "run", "A run") == set()
    left = [name for name, by in named("A run").items() if by.startswith("`train`")]
    assert len(left) == 12
    for pattern in left:
        assert list((home / "run").glob(pattern)), pattern


def test_training_leaves_a_page_unless_it_is_told_not_to(home):
    text = said(parsed((home / "run" / "report.html").read_text()))
    for part in ("finished", "Population", "4 members", "gamma", "PBT"):
        assert part in text
    bare = {path.name for path in (home / "bare").iterdir()}
    assert "metrics.jsonl" in bare and "report.html" not in bare
