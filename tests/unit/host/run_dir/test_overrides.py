"""Fields of a config on the command line: what is taken, and what is said."""

from pathlib import Path

import numpy as np
import pytest

from ppo_jax import Config, envs, optimizers, terms
from ppo_jax.envs.probes import IdenticalRewards
from ppo_jax.host.run_dir.overrides import with_overrides
from ppo_jax.host.run_dir.script import ExperimentError

CONFIG = Config(
    IdenticalRewards(),
    terms=(
        terms.Surrogate(),
        terms.Value(),
        terms.Entropy(0.1),
        terms.Imitation(terms.Demonstrations(np.zeros((2, 1)), [0, 1])),
    ),
    optimizer=optimizers.Adam(learning_rate=1e-3),
)


def overridden(*options, config=CONFIG):
    return with_overrides(config, Path("mine.py"), [*options], "ppo_jax.train")


def test_nothing_given_is_the_file_s_config():
    assert overridden() == CONFIG


def test_fields_of_any_depth_and_kind():
    """Dashes or underscores; terms by kind; whole numbers written as others are."""
    config = overridden(
        *("--gamma", "0.5", "--total-timesteps", "1e6", "--num_envs=8"),
        *("--optimizer.learning-rate", "2", "--optimizer.max_grad_norm", "None"),
        *("--terms.entropy.coef", "0.3", "--network.torso.hidden", "4", "5"),
        *("--obs-clip", "3"),
    )
    assert (config.gamma, config.total_timesteps, config.num_envs) == (0.5, 10**6, 8)
    assert repr(config.total_timesteps) == "1000000"
    assert config.optimizer == optimizers.Adam(2.0, max_grad_norm=None)
    assert config.terms[2:] == (terms.Entropy(0.3), CONFIG.terms[3])
    assert config.network.torso.hidden == (4, 5) and config.obs_clip == 3.0


def test_an_environment_by_its_id():
    """Fields of what it is replace those of what it was."""
    plain = Config(IdenticalRewards())
    found = overridden("--env", "Pendulum-v1", "--env.params.g", "3", config=plain)
    assert found.env == envs.Gymnax("Pendulum-v1", params={"g": 3.0})
    found = overridden("--env=gymnax/Acrobot-v1", config=plain)
    assert found.env == envs.make("Acrobot-v1")


def test_an_environment_within_another_by_its_id():
    pooled = Config(envs.ResetPool(IdenticalRewards(), size=3))
    found = overridden(*("--env.env", "Catch-bsuite", "--env.size", "2"), config=pooled)
    assert found.env == envs.ResetPool("Catch-bsuite", size=2)


@pytest.mark.parametrize("options", [["--env"], ["--env="], ["--env", "Pendulun-v1"]])
def test_an_id_that_there_is_not(options):
    with pytest.raises(ExperimentError, match="no environment of gymnax is called"):
        overridden(*options)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (
            ["--terms.2.coef", "0.5"],
            "--terms.2.coef: terms are addressed by their kind; this one is "
            "--terms.entropy.coef",
        ),
        (["--terms.1.clip-eps=0.5"], "this one is --terms.value.clip-eps"),
    ],
)
def test_a_former_path_is_told_the_one_of_now(options, said):
    with pytest.raises(ExperimentError, match=said):
        overridden(*options)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (
            ["--learning-rat", "1"],
            "no option is called '--learning-rat'; the closest is "
            "'--optimizer.learning-rate'",
        ),
        (["--lr=1"], "called '--lr'; the closest is '--optimizer.learning-rate'"),
        (["--seed", "1", "--zzz"], "no option is called '--zzz'; there are: --env, "),
        (["--seed", "1", "2"], "'2': expected --FIELD before it"),
        (
            ["--eval-sample", "True"],
            "--eval-sample: expected --eval-sample or --no-eval-sample, got a value, "
            "'True'",
        ),
        (["--network.shared=no"], "expected --network.shared or --network.no-shared,"),
        (["--eval-sample", "--gama", "1"], "no option is called '--gama'; the closest"),
        (["--optimizer", "Sgd"], "--optimizer: its fields can be given; which compone"),
        (["--early_stop=KlStop"], "--early_stop: its fields can be given; which compo"),
    ],
)
def test_what_is_no_option_is_told_the_closest(options, said):
    with pytest.raises(ExperimentError) as refused:
        overridden(*options)
    assert said in str(refused.value)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--num-envs", "1.5"], "--num-envs: expected a whole number, got '1.5'"),
        (["--gamma", "2.0"], "Config.gamma: expected a number in (0, 1], got 2.0"),
        (["--num-minibatches", "3"], "Config.num_minibatches: expected"),
        (["--terms.surrogate.clip-eps", "-1"], "Surrogate.clip_eps: expected"),
        (["--terms.imitation.demonstrations", "x"], "given in the experiment's file"),
    ],
)
def test_an_option_that_cannot_be_taken_ends_with_what_can_be_done(
    options, said, capsys
):
    with pytest.raises(SystemExit) as ending:
        overridden(*options)
    shown = capsys.readouterr()
    text = " ".join(shown.err.replace("│", "").split())
    assert ending.value.code == 2 and said in text
    assert "python -m ppo_jax.train --help" in text and shown.out == ""


def test_help_lists_the_fields_with_their_values(capsys):
    with pytest.raises(SystemExit) as ending:
        overridden("--help")
    assert ending.value.code == 0
    text = capsys.readouterr().out
    assert "--terms.entropy.coef" in text and "--seed" in text
    assert text.endswith("python -m ppo_jax.train mine.py --seed 1\n")
