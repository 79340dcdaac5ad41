"""Fields of a config on the command line, after its file has been read."""

import contextlib
import dataclasses
import sys
import warnings
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import tyro
from tyro import constructors

from ppo_jax.component import children, descendants, former
from ppo_jax.component.coercion import coerced
from ppo_jax.component.paths import replace
from ppo_jax.component.suggestion import unknown
from ppo_jax.config import Config
from ppo_jax.envs import Env
from ppo_jax.errors import own_lines
from ppo_jax.host.process.command import warn
from ppo_jax.host.run_dir.script import ExperimentError
from ppo_jax.terms import Demonstrations

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
_RULES = constructors.ConstructorRegistry()


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
                registry=_RULES,
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
    """
    kept, keep = [], True
    for word in overrides:
        if word.startswith("--"):
            keep = word.partition("=")[0].partition(".")[0] != f"--{field}"
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


@_RULES.struct_rule
def _tuples(
    info: constructors.StructTypeInfo,
) -> constructors.StructConstructorSpec | None:
    """Names items of tuples of components as their paths do."""
    if not (isinstance(info.default, tuple) and children(info.default)):
        return None
    return constructors.StructConstructorSpec(
        instantiate=lambda **items: tuple(items.values()),
        fields=tuple(
            constructors.StructFieldSpec(name, type(item), item)
            for name, item in children(info.default).items()
        ),
    )


@_RULES.primitive_rule
def _integers(
    info: constructors.PrimitiveTypeInfo,
) -> constructors.PrimitiveConstructorSpec | None:
    """Reads integers, also if written as numbers without a fraction, such as 1e6."""
    if info.type is not int:
        return None

    def read(args: list[str]) -> int:
        for number in (int, float):
            with contextlib.suppress(ValueError):
                value = coerced(int, number(args[0]))
                if isinstance(value, int):
                    return value
        raise ValueError(f"{args[0]!r} is no whole number")

    return constructors.PrimitiveConstructorSpec(
        nargs=1,
        metavar="INT",
        instance_from_str=read,
        is_instance=lambda value: isinstance(value, int),
        str_from_instance=lambda value: [str(value)],
    )


@_RULES.primitive_rule
def _arrays(
    info: constructors.PrimitiveTypeInfo,
) -> constructors.PrimitiveConstructorSpec | None:
    """Refuses arrays on the command line: only the experiment's file can give them."""
    if not (isinstance(info.type, type) and issubclass(info.type, Demonstrations)):
        return None

    def refuse(args: list[str]) -> Demonstrations:
        raise ValueError(f"arrays are given in the experiment's file, not as {args}")

    return constructors.PrimitiveConstructorSpec(
        nargs=1,
        metavar="{fixed}",
        instance_from_str=refuse,
        is_instance=lambda value: isinstance(value, Demonstrations),
        str_from_instance=lambda value: [repr(value)],
    )
