"""What words of the command line are taken for, and what is said of others."""

import dataclasses
import math
from collections.abc import Callable
from pathlib import Path

import pytest

from ppo_jax.component import component
from ppo_jax.config import Config
from ppo_jax.envs.probes import IdenticalRewards
from ppo_jax.host.run_dir.overrides import with_overrides

CONFIG = Config(IdenticalRewards(), stop_at={"eval/mean_reward": 475})


def given(*words):
    return with_overrides(CONFIG, Path("mine.py"), [*words], "ppo_jax.train")


@pytest.mark.parametrize(
    ("words", "field", "value"),
    [
        ("--gamma 1", "gamma", 1.0),
        ("--gamma .5e0", "gamma", 0.5),
        ("--seed 4294967295", "seed", 2**32 - 1),
        ("--total-timesteps 2e6", "total_timesteps", 2_000_000),
        ("--obs-clip 5", "obs_clip", 5.0),
        ("--obs-clip inf", "obs_clip", math.inf),
        ("--obs-clip None", "obs_clip", None),
        ("--chunk-length 64.0", "chunk_length", 64),
        ("--chunk-length None", "chunk_length", None),
        ("--network.critic-hidden 8 1e1", "network.critic_hidden", (8, 10)),
        ("--network.torso.hidden", "network.torso.hidden", ()),
        ("--stop-at a 1 b -2.5", "stop_at", (("a", 1.0), ("b", -2.5))),
        ("--stop-at None", "stop_at", None),
        ("--seed 1", "stop_at", (("eval/mean_reward", 475.0),)),
    ],
)
def test_numbers_are_of_the_field_s_type(words, field, value):
    found = given(*words.split())
    for name in field.split("."):
        found = getattr(found, name)
    assert found == value and repr(found) == repr(value)


@component
class Odd(IdenticalRewards):
    """An environment with fields that words of the command line do not give."""

    shape: tuple[int, int] = (2, 3)
    pair: tuple[float] = (0.5,)
    draw: Callable[[int], float] = float
    either: int | str = "x"


def test_fields_of_other_types_are_read_as_before():
    config = dataclasses.replace(CONFIG, env=Odd())
    words = ["--env.shape", "4", "5", "--env.pair", ".25", "--env.either", "7"]
    found = with_overrides(config, Path("mine.py"), words, "ppo_jax.train").env
    assert found == Odd(shape=(4, 5), pair=(0.25,), either=7)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("--gamma high", "--gamma: expected a number, got 'high'"),
        ("--gamma None", "--gamma: expected a number, got 'None'"),
        ("--num-envs 2.5", "--num-envs: expected a whole number, got '2.5'"),
        ("--num-envs inf", "--num-envs: expected a whole number, got 'inf'"),
        ("--num-envs True", "--num-envs: expected a whole number, got 'True'"),
        ("--obs-clip high", "--obs-clip: expected a number or None, got 'high'"),
        ("--chunk-length .5", "expected a whole number or None, got '.5'"),
        ("--network.torso.hidden 8 x", "expected whole numbers, got 'x'"),
        ("--stop-at a high", "--stop-at: expected a number after each metric, got 'h"),
        ("--stop-at a 1 b", "expected a number after each metric, got ['a', '1', 'b']"),
        ("--stop-at a=1", "expected a number after each metric, got ['a=1']"),
        (f"--gamma 1{400 * '0'}", "Config.gamma: expected a number in (0, 1], got inf"),
    ],
)
def test_other_words_are_told_with_what_was_expected(words, said, capsys):
    with pytest.raises(SystemExit) as ending:
        given(*words.split())
    text = " ".join(capsys.readouterr().err.replace("│", "").split())
    assert ending.value.code == 2 and said in text
