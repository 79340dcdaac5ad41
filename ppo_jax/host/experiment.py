"""Experiments on disk: a Python file whose `config` is the default of a command line.

A run directory holds copies of the file and of the modules that it imports from its
folder, the overrides and a description of every field, so that it can be evaluated and
resumed by itself.
"""

import dataclasses
import functools
import importlib
import inspect
import json
import time
import warnings
from pathlib import Path
from typing import Any

from ppo_jax.component import is_component
from ppo_jax.component.suggestion import uncalled
from ppo_jax.config import Config
from ppo_jax.errors import kind
from ppo_jax.host import files, script
from ppo_jax.host.overrides import with_overrides
from ppo_jax.host.script import ExperimentError


def load(path: Path, overrides: list[str], command: str = "ppo_jax.train") -> Config:
    """An experiment's config with fields overridden, as on the command line.

    Raises:
        ExperimentError: If the file or a value in it is wrong.
        SystemExit: With status 2 for an unknown option or a value of a wrong type.
    """
    return load_with_names(path, overrides, command)[0]


def load_with_names(
    path: Path, overrides: list[str], command: str
) -> tuple[Config, dict[str, Any]]:
    """An experiment's config, and the names that a value of a field may use.

    Args:
        path: The experiment's file.
        overrides: Options such as `--optimizer.learning-rate 1e-3`.
        command: What help and errors call the program.

    Returns:
        The config with fields overridden, and what the file defines beside the names
        that this package exports.

    Raises:
        ExperimentError: If the file or a value in it is wrong.
        SystemExit: With status 2 for an unknown option or a value of a wrong type.
    """
    with warnings.catch_warnings():
        # What the file's config warns of, the one with the options says again.
        warnings.simplefilter("ignore", UserWarning)
        names = script.run(path)
    config = names.get("config")
    if not isinstance(config, Config):
        said = _instead(names)
        raise ExperimentError(f"{path}: expected a Config named `config`, got {said}")
    config = with_overrides(config, path, overrides, command)
    package = importlib.import_module("ppo_jax")
    return config, {name: getattr(package, name) for name in package.__all__} | names


def describe(config: Any, prefix: str = "") -> dict[str, dict[str, str]]:
    """Every field by path: its kind (number, host or structure) and its value.

    >>> describe(Config("CartPole-v1"))["optimizer.learning_rate"]
    {'kind': 'number', 'value': '0.00025'}
    """
    if isinstance(config, tuple):
        items = [(str(i), item, False) for i, item in enumerate(config)]
    else:
        items = [
            (field.name, getattr(config, field.name), "host" in field.metadata)
            for field in dataclasses.fields(config)
        ]
    fields = (
        {}
        if isinstance(config, tuple)
        else {prefix + "type": {"kind": "structure", "value": type(config).__name__}}
    )
    for name, value, is_host in items:
        nested = is_component(value) or (
            isinstance(value, tuple) and any(map(is_component, value))
        )
        if nested:
            fields |= describe(value, f"{prefix}{name}.")
        else:
            number = "number" if isinstance(value, float) else "structure"
            kind = "host" if is_host else number
            fields[prefix + name] = {"kind": kind, "value": _shown(value)}
    return fields


def create(
    run_dir: Path | None, path: Path, overrides: list[str], config: Config
) -> Path:
    """A new run directory, in `runs` unless another one is named.

    Raises:
        ExperimentError: If it cannot be written, or holds a run.
    """
    stamp = time.strftime("%Y%m%d-%H%M%S")
    run_dir = run_dir or Path("runs") / f"{path.stem}__{config.seed}__{stamp}"
    require_new(run_dir)
    store(run_dir, script.texts(path), overrides, config)
    return run_dir


def require_new(run_dir: Path) -> None:
    """Checks that a directory holds nothing yet that one could go on with.

    Raises:
        ExperimentError: If it does.
    """
    saved = (*run_dir.glob("checkpoints/*"), *run_dir.glob("batches/*/checkpoints/*"))
    if any(path.name.isdigit() for path in saved):
        raise ExperimentError(
            f"{run_dir}: holds a run already; give --resume to go on with it, or "
            "another --run-dir"
        )


def store(
    run_dir: Path, texts: dict[str, str], overrides: list[str], config: Config
) -> None:
    """Writes what a run directory needs to stand alone.

    Args:
        run_dir: The directory.
        texts: The experiment's file and its modules, by path.
        overrides: Options that it was loaded with.
        config: What came of them.

    Raises:
        ExperimentError: If it cannot be written.
    """
    described = json.dumps(describe(config), indent=2)
    keep(
        run_dir,
        texts
        | {"overrides.json": json.dumps(overrides) + "\n"}
        | {"config.json": described + "\n"},
    )


def keep(run_dir: Path, texts: dict[str, str]) -> None:
    """Writes files of a run directory, by path.

    Raises:
        ExperimentError: If they cannot be written.
    """
    try:
        for name, text in texts.items():
            (run_dir / name).parent.mkdir(parents=True, exist_ok=True)
            files.write(run_dir / name, text)
    except OSError as error:
        raise ExperimentError(
            f"{run_dir}: no run can be kept there: {error}"
        ) from error


def stored_overrides(run_dir: Path) -> list[str]:
    """The options that a run was started with.

    Raises:
        ExperimentError: If the directory holds no run.
    """
    return stored(run_dir, "overrides.json", list)


def require_same_structure(run_dir: Path, config: Config) -> None:
    """Checks that a run can be continued with a config.

    Raises:
        ExperimentError: If more than numbers and host settings differ from those of
            the run; the message lists what.
    """
    old, new = stored(run_dir, "config.json"), describe(config)
    structure = [
        f"  {name}: {change}"
        for name, change in differences(old, new).items()
        if "structure"
        in {fields[name]["kind"] for fields in (old, new) if name in fields}
    ]
    if structure:
        raise ExperimentError(
            f"{run_dir}: the experiment is not the one of this run; a resumed run may "
            "change numbers and budgets only:\n" + "\n".join(structure)
        )


def differences(old: dict, new: dict) -> dict[str, str]:
    """Fields of two descriptions that differ, and how.

    >>> cartpole = Config("CartPole-v1")
    >>> other = dataclasses.replace(cartpole, gamma=0.9)
    >>> differences(describe(cartpole), describe(other))
    {'gamma': '0.99 -> 0.9'}
    """
    return {
        name: f"{old.get(name, {}).get('value')} -> {new.get(name, {}).get('value')}"
        for name in sorted(old.keys() | new.keys())
        if old.get(name) != new.get(name)
    }


def _shown(value: Any) -> str:
    """A value as text that is the same in every process."""
    if inspect.isfunction(value):
        return f"{value.__module__}.{value.__qualname__}"
    if isinstance(value, functools.partial):
        return f"partial{(_shown(value.func), value.args, value.keywords)}"
    return repr(value)


def require_same(run_dir: Path, config: Config) -> None:
    """Checks that a config is the one of a run directory.

    Raises:
        ExperimentError: If any field differs; the message lists which.
    """
    changed = differences(stored(run_dir, "config.json"), describe(config))
    if changed:
        lines = "".join(f"\n  {name}: {change}" for name, change in changed.items())
        raise ExperimentError(f"{run_dir}: the experiment is another one:{lines}")


def stored(run_dir: Path, name: str, wanted: type = dict) -> Any:
    """What a file of a run directory says, as JSON.

    Raises:
        ExperimentError: If there is none, it cannot be read, or is of another kind.
    """
    try:
        found = json.loads((run_dir / name).read_text())
    except (FileNotFoundError, NotADirectoryError):
        raise ExperimentError(f"{run_dir}: no run to be found there") from None
    except (OSError, ValueError) as error:
        raise ExperimentError(f"{run_dir / name}: cannot be read: {error}") from error
    if not isinstance(found, wanted):
        said = f"expected a {wanted.__name__}, got {found!r:.80}"
        raise ExperimentError(f"{run_dir / name}: {said}")
    return found


def _instead(names: dict[str, Any]) -> str:
    """What a file has instead of its Config."""
    if "config" in names:
        return kind(names["config"]) + uncalled(names["config"])
    others = [name for name, value in names.items() if isinstance(value, Config)]
    return f"one named `{others[0]}`" if others else "none"
