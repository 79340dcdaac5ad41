"""How a command with many runs begins."""

from types import SimpleNamespace

import pytest

from ppo_jax.sweeps import going, plan

TEXT = """\
from ppo_jax import PBT, Config, LogUniform, NearOne

searched = PBT({"gamma": NearOne(0.9, 0.99)}, interval=99)
config = Config("CartPole-v1", total_timesteps=4096, pbt=searched)
"""


@pytest.mark.filterwarnings("default")
def test_what_is_odd_in_settings_is_told_once(tmp_path, capsys):
    """And once what is odd in the experiment, however many settings have it."""
    (tmp_path / "mine.py").write_text(TEXT)
    options = SimpleNamespace(
        experiment=tmp_path / "mine.py",
        run_dir=tmp_path / "run",
        resume=False,
        grid=["terms=(terms.Value(),)"],
        space=["optimizer.learning_rate=LogUniform(1e-4, 1e-2)"],
        random=2,
        seeds=3,
    )
    done = []
    begun = plan.plan, lambda options, planned: done.append(planned)
    going.run("sweep", options, [], lambda options: None, *begun)
    assert len(done[0].members) == 6
    said = capsys.readouterr().err.splitlines()
    assert [line.partition(": ")[2].partition(": ")[0] for line in said] == [
        *("Config.pbt.space", "PBT.interval", "Config.terms")
    ]
