"""How a command with many runs begins."""

from types import SimpleNamespace

import pytest

from ppo_jax.sweeps import going, plan

TEXT = """\
from ppo_jax import PBT, Config, LogUniform, NearOne

searched = PBT({"gamma": NearOne(0.9, 0.99)}, interval=99)
config = Config("CartPole-v1", total_timesteps=4096, pbt=searched)
"""


def asked(tmp_path):
    """Options of a sweep of six runs."""
    (tmp_path / "mine.py").write_text(TEXT)
    return SimpleNamespace(
        experiment=tmp_path / "mine.py",
        run_dir=tmp_path / "run",
        resume=False,
        grid=["terms=(terms.Value(),)"],
        space=["optimizer.learning_rate=LogUniform(1e-4, 1e-2)"],
        random=2,
        seeds=3,
    )


def run(options, train=lambda options, planned: None):
    going.run("sweep", options, [], lambda options: None, plan.plan, train)


@pytest.mark.filterwarnings("default")
def test_what_is_odd_in_settings_is_told_once(tmp_path, capsys):
    """And once what is odd in the experiment, however many settings have it."""
    done = []
    run(asked(tmp_path), lambda options, planned: done.append(planned))
    assert len(done[0].members) == 6
    said = capsys.readouterr().err.splitlines()
    assert [line.partition(": ")[2].partition(": ")[0] for line in said] == [
        *("Config.pbt.space", "PBT.interval", "Config.terms")
    ]


@pytest.mark.filterwarnings("default")
def test_code_that_has_changed_since_is_told(tmp_path, capsys):
    """Runs that are left are trained with it, and what is finished was not."""
    options = asked(tmp_path)
    run(options)
    options.resume = True
    run(options)
    assert "goes on" not in capsys.readouterr().err
    options.experiment.write_text(TEXT + "# Edited.\n")
    run(options)
    said = f"{options.run_dir}: goes on with another experiment.py than it was begun"
    assert said in capsys.readouterr().err
    options.experiment = options.run_dir / "experiment.py"
    run(options)
    assert "goes on" not in capsys.readouterr().err
