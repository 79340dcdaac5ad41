"""Fields of a config on the command line, after its file has been read."""

import dataclasses
import sys
import warnings
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import tyro

from ppo_jax.component import children, descendants, former
from ppo_jax.component.paths import replace
from ppo_jax.component.suggestion import unknown
from ppo_jax.config import Config
from ppo_jax.envs import Env
from ppo_jax.errors import own_lines
from ppo_jax.host.process.command import warn
from ppo_jax.host.run_dir.script import ExperimentError
from ppo_jax.host.run_dir.words import RULES

FIELDS = """\
These are the fields of the experiment; all else is in `python -m {command} --help`.

An environment can also be given by its id, --env gymnax/CartPole-v1 for example.

Example:
    python -m {command} {path} --seed 1
"""
PARTS = "its fields can be given; which components there are is for the file to say"
REFUSED = """\
All other options: python -m {command} --help
"""


def with_overrides(
    config: Config, path: Path, overrides: list[str], command: str
) -> Config:
    """Returns a config with fields overridden.

    Args:
        config: Config of the file.
        path: The file.
        overrides: Options such as `--optimizer.learning-rate 1e-3`, or `--env` with the
            id of another environment.
        command: Name of the program in help and errors.

    Raises:
        ExperimentError: If a value is wrong, or an option is unknown or has a former
            name.
        SystemExit: With status 2 for a value of a wrong type.
    """
    _require_present(config, overrides)
    try:
        with warnings.catch_warnings():
            warnings.showwarning = warn
            config, overrides = _with_environments(config, overrides)
            if not overrides:
                return _remade(config)
            changed, others = tyro.cli(
                Config,
                default=config,
                args=overrides,
                prog=f"python -m {command} {path}",
                config=(tyro.conf.AvoidSubcommands,),
                registry=RULES,
                return_unknown_args=True,
            )
            _require_none(others, overrides, config)
            return changed
    except (ValueError, TypeError) as error:
        raise ExperimentError(f"{error}{own_lines(error)}") from error
    except SystemExit as ending:
        template, file = (REFUSED, sys.stderr) if ending.code else (FIELDS, sys.stdout)
        print(template.format(command=command, path=path), end="", file=file)
        raise


def given(overrides: list[str], paths: Iterable[str]) -> list[str]:
    """Returns those of some paths for which there is an option.

    >>> given(["--optimizer.learning-rate=0.5"], ["gamma", "optimizer.learning_rate"])
    ['optimizer.learning_rate']
    """
    options = {word.partition("=")[0].replace("-", "_") for word in overrides}
    return [path for path in paths if f"__{path}" in options]


def without(overrides: list[str], field: str) -> list[str]:
    """Returns options without those for a component and its fields.

    >>> without(["--pbt.size", "4", "--gamma", "0.5", "--pbt.interval=2"], "pbt")
    ['--gamma', '0.5']
    >>> without(["--env", "CartPole-v1", "--environment", "x"], "env")
    ['--environment', 'x']
    >>> without(["--max-seconds=60"], "max_seconds")
    []
    """
    kept, keep = [], True
    for word in overrides:
        if word.startswith("--"):
            option = word.partition("=")[0].partition(".")[0]
            keep = option.replace("-", "_") != f"__{field}"
        kept += [word] if keep else []
    return kept


def _require_present(config: Config, overrides: list[str]) -> None:
    """Raises an `ExperimentError` for an option by a former path."""
    names = former.names_in(config)
    for word in overrides:
        option = word.partition("=")[0].replace("_", "-")
        now = former.translated(option, names).replace("_", "-")
        if option.startswith("--") and now != option:
            raise ExperimentError(former.moved(option, now))


def _require_none(words: list[str], overrides: list[str], config: Config) -> None:
    """Raises a `ValueError` for words that are no fields, and no values of fields."""
    if not words:
        return
    name = words[0].partition("=")[0]
    parts = descendants(children(config))
    known = {f"--{path}".replace("_", "-"): part for path, part in parts.items()}
    if not name.startswith("-"):
        _require_no_value(words[0], overrides, known)
        raise ValueError(f"{name!r}: expected --FIELD before it")
    if name.replace("_", "-") in known:
        raise ValueError(f"{name}: {PARTS}")
    raise ValueError(unknown("option", name, known))


def _require_no_value(
    word: str, overrides: list[str], known: Mapping[str, Any]
) -> None:
    """Raises a `ValueError` for a word that is given as the value of a flag."""
    for given, following in zip(overrides, [*overrides[1:], ""], strict=True):
        option, equals, value = given.partition("=")
        option = option.replace("_", "-")
        flag = isinstance(known.get(option), bool)
        if flag and (value if equals else following) == word:
            owner, dot, field = option.removeprefix("--").rpartition(".")
            either = f"{option} or --{owner}{dot}no-{field}"
            raise ValueError(f"{option}: expected {either}, got a value, {word!r}")


def _with_environments(
    config: Config, overrides: list[str]
) -> tuple[Config, list[str]]:
    """Returns a config with the environments of given ids, and all other options."""
    parts = descendants(children(config))
    envs = {f"--{path}": path for path in parts if isinstance(parts[path], Env)}
    ids, others, words = {}, [], iter(overrides)
    for word in words:
        option, equals, value = word.partition("=")
        if option in envs:
            ids[envs[option]] = value if equals else next(words, "")
        else:
            others.append(word)
    with warnings.catch_warnings(action="ignore"):  # The whole config will warn.
        return replace(config, ids), others


def _remade(part: Any) -> Any:
    """Returns a component made once more, from the inside out: so all parts warn."""
    below = children(part)
    made = {name: _remade(child) for name, child in below.items() if children(child)}
    if isinstance(part, tuple):
        return tuple((below | made).values())
    return dataclasses.replace(part, **made)
