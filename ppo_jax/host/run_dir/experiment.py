"""Experiments on disk: a Python file whose `config` is the default of a command line.

A run directory holds copies of the file and of the modules that it imports from its
folder, the overrides and a description of every field, so that it can be evaluated and
resumed by itself.
"""

import contextlib
import dataclasses
import importlib
import itertools
import json
import textwrap
import time
import warnings
from pathlib import Path
from typing import Any

from ppo_jax.component import former
from ppo_jax.component.paths import require_single
from ppo_jax.component.suggestion import WIDTH, closest, uncalled
from ppo_jax.config import Config
from ppo_jax.errors import kind
from ppo_jax.host.run_dir import batched, description, files, script
from ppo_jax.host.run_dir.description import Description, describe, differences
from ppo_jax.host.run_dir.overrides import with_overrides
from ppo_jax.host.run_dir.script import ExperimentError

OVERRIDES, CONFIG = "overrides.json", "config.json"
FREE = ("stop_at", "max_seconds", "stall_seconds", "devices_per_member", "sinks")
"""Fields that may be others whenever training goes on: how far and where it runs."""
UNSAVED = "unsaved.txt"
"""Name of a file that exists until the state that a run begins with is saved."""


def load(path: Path, overrides: list[str], command: str = "ppo_jax.train") -> Config:
    """Loads an experiment's config, with fields overridden as on the command line.

    Raises:
        ExperimentError: If the file or a value in it is wrong.
        SystemExit: With status 2 for an unknown option or a value of a wrong type.
    """
    return load_with_names(path, overrides, command)[0]


def load_with_names(
    path: Path, overrides: list[str], command: str
) -> tuple[Config, dict[str, Any]]:
    """Loads an experiment's config, and the objects that a field's value may name.

    Args:
        path: The experiment's file.
        overrides: Options such as `--optimizer.learning-rate 1e-3`.
        command: Name of the program in help and errors.

    Returns:
        The config with fields overridden, and by name the objects that the file defines
        or this package exports.

    Raises:
        ExperimentError: If the file or a value in it is wrong.
        SystemExit: With status 2 for an unknown option or a value of a wrong type.
    """
    with former.understood() if _is_kept(path) else contextlib.nullcontext():
        with warnings.catch_warnings():
            # The config with the overrides gives the same warnings again.
            warnings.simplefilter("ignore", UserWarning)
            names = script.run(path)
        config = names.get("config")
        if not isinstance(config, Config):
            message = f"expected a Config named `config`, got {_instead(names)}"
            raise ExperimentError(f"{path}: {message}")
        config = _as_now(with_overrides(config, path, overrides, command))
    require_single(config, "one number; ppo_jax.sweep trains several")
    package = importlib.import_module("ppo_jax")
    return config, {name: getattr(package, name) for name in package.__all__} | names


def place(path: Path, config: Config) -> Path:
    """Makes the run directory of an experiment for which none is named.

    Each of several runs that begin in the same second has one of its own.

    Raises:
        ExperimentError: If none can be made.
        OSError: If the disk does not take it.
    """
    stamp = time.strftime("%Y%m%d-%H%M%S")
    first = Path("runs") / f"{path.stem}__{config.seed}__{stamp}"
    later = (first.with_name(f"{first.name}-{n}") for n in itertools.count(2))
    with files.of_run(first):
        files.require_plain(first)
        first.parent.mkdir(exist_ok=True)
        return next(filter(_is_made, itertools.chain([first], later)))


def stored_overrides(run_dir: Path) -> list[str]:
    """Returns the options that a run was started with.

    Raises:
        ExperimentError: If the directory holds no run, or they are no texts.
    """
    options = stored(run_dir, OVERRIDES, list)
    if not all(isinstance(each, str) for each in options):
        given = f"expected a list of texts, got {options!r:.80}"
        raise ExperimentError(f"{run_dir / OVERRIDES}: {given}")
    return options


def missing(run_dir: Path) -> str:
    """Returns the message that a folder holds no run, with those that may be meant."""
    message, home = f"{run_dir}: no run to be found there", run_dir.parent.parent
    kind = batched.kind_of(home) if run_dir.parent.name == batched.BATCHES else None
    if kind is not None and run_dir.is_dir():
        return f"{run_dir}: is a batch of {home}, which holds {batched.INSTEAD[kind]}"
    if below := ", ".join(_kept_in(run_dir)):
        names = textwrap.shorten(below, WIDTH, placeholder=" …")
        return f"{message}; below it there are: {names}"
    beside = [name for name in _kept_in(run_dir.parent) if name != run_dir.name]
    close = closest(run_dir.name, beside)
    return f"{message}; the closest is {run_dir.parent / close}" if close else message


def is_kept(run_dir: Path) -> bool:
    """Returns whether a directory is that of a run, by the options kept there."""
    try:
        return isinstance(stored_overrides(run_dir), list)
    except ExperimentError:
        return False


def require_same_structure(run_dir: Path, config: Config) -> None:
    """Checks that a run can be continued with a config.

    Raises:
        ExperimentError: If there are many runs, or more than numbers and host settings
            differ from those of the run; the message lists them.
    """
    batched.require_single(run_dir)
    structure = changed_structure(run_dir, config)
    if structure:
        raise ExperimentError(
            f"{run_dir}: the experiment is not the one of this run; a resumed run may "
            f"change numbers and budgets only:{_listed(structure)}"
        )


def changed_structure(run_dir: Path, config: Config) -> dict[str, str]:
    """Returns the fields by which a config's structure differs from a run's, and how.

    Raises:
        ExperimentError: If the directory holds no run.
    """
    both = stored_description(run_dir), describe(config)

    def kinds(name: str) -> set[str]:
        return {fields[name]["kind"] for fields in both if name in fields}

    changed = differences(*both)
    return {
        name: change for name, change in changed.items() if "structure" in kinds(name)
    }


def require_same(run_dir: Path, config: Config, free: tuple[str, ...] = ()) -> None:
    """Checks that a config is the one of a run directory, but for its `free` fields.

    Raises:
        ExperimentError: If any other field differs; the message lists which.
    """
    found = differences(stored_description(run_dir), describe(config))
    changed = {x: y for x, y in found.items() if x.partition(".")[0] not in free}
    if changed:
        message = "the experiment is another one"
        raise ExperimentError(f"{run_dir}: {message}:{_listed(changed)}")


def stored(run_dir: Path, name: str, wanted: type = dict) -> Any:
    """Reads a JSON file of a run directory; former paths are replaced by present ones.

    Raises:
        ExperimentError: If the file is missing, unreadable or not of the wanted type.
    """
    return former.translated(_read(run_dir, name, wanted), stored_names(run_dir))


def stored_names(run_dir: Path) -> former.Names:
    """Maps former names of tuples' items in a run's files to their present names."""
    if not (run_dir / CONFIG).exists():
        return {}
    return description.former_names(_described(run_dir))


def stored_description(run_dir: Path) -> Description:
    """Reads the description of a run's experiment, by present paths.

    Raises:
        ExperimentError: If there is no description, or it cannot be read.
    """
    return description.as_now(_described(run_dir))


def _kept_in(folder: Path) -> list[str]:
    """Returns the names of the runs in a folder."""
    return sorted(kept.parent.name for kept in folder.glob(f"*/{OVERRIDES}"))


def _is_made(folder: Path) -> bool:
    """Makes a folder; returns False if there is one already."""
    try:
        folder.mkdir()
    except FileExistsError:
        return False
    return True


def _listed(changed: dict[str, str]) -> str:
    """Formats changed fields, a line each."""
    return "".join(f"\n  {name}: {change}" for name, change in changed.items())


def _described(run_dir: Path) -> Description:
    """Reads the description of a run's experiment, with former paths as they are."""
    found = _read(run_dir, CONFIG, dict)
    for path, field in found.items():
        if not description.is_field(field):
            message = f"{path}: expected a kind and a value, got {field!r:.80}"
            raise ExperimentError(f"{run_dir / CONFIG}: {message}")
    return found


def _read(run_dir: Path, name: str, wanted: type) -> Any:
    """Reads a JSON file of a run directory, with former paths as they are."""
    try:
        found = json.loads((run_dir / name).read_bytes())
    except (FileNotFoundError, NotADirectoryError):
        if (run_dir / CONFIG).exists():
            message = f"{run_dir}: holds a run of another command, without {name}"
            raise ExperimentError(message) from None
        raise ExperimentError(missing(run_dir)) from None
    except (OSError, ValueError) as error:
        raise ExperimentError(f"{run_dir / name}: cannot be read: {error}") from error
    if not isinstance(found, wanted):
        message = f"expected a {wanted.__name__}, got {found!r:.80}"
        raise ExperimentError(f"{run_dir / name}: {message}")
    return found


def _is_kept(path: Path) -> bool:
    """Returns whether a file is a run directory's copy of an experiment."""
    return path.name == script.KEPT and (path.parent / CONFIG).exists()


def _as_now(config: Config) -> Config:
    """Returns the same experiment, with present paths in its population's space."""
    if config.pbt is None:
        return config
    space = config.pbt.space.named_in(config)
    if space == config.pbt.space:
        return config
    with warnings.catch_warnings(action="ignore"):  # `config` has warned.
        pbt = dataclasses.replace(config.pbt, space=space)
        return dataclasses.replace(config, pbt=pbt)


def _instead(names: dict[str, Any]) -> str:
    """Describes the object that a file has instead of a Config named `config`."""
    if "config" in names:
        return kind(names["config"]) + uncalled(names["config"])
    others = [name for name, value in names.items() if isinstance(value, Config)]
    return f"one named `{others[0]}`" if others else "none"
