"""Writes an experiment to the directory of a run: all of its files, or none."""

import json
from collections.abc import Callable
from pathlib import Path

from ppo_jax.config import Config
from ppo_jax.host.run_dir import batched, claims, files, script
from ppo_jax.host.run_dir.description import describe
from ppo_jax.host.run_dir.experiment import CONFIG, OVERRIDES, UNSAVED
from ppo_jax.host.run_dir.names import FORMER, SCHEDULE
from ppo_jax.host.run_dir.script import Texts


def store(run_dir: Path, texts: Texts, overrides: list[str], config: Config) -> None:
    """Writes the files that a run directory needs to stand alone.

    Other files of experiments, sweeps and replays are removed from the directory, as
    commands might prefer them.

    Args:
        run_dir: The directory.
        texts: The experiment's file and its modules, by path; `UNSAVED`, if the state
            that the run begins with is saved next; the schedule of a replay.
        overrides: Options that the experiment was loaded with.
        config: The config that resulted.

    Raises:
        ExperimentError: If the directory cannot be written.
        OSError: If the disk does not take it.
    """
    others = dict.fromkeys((UNSAVED, SCHEDULE, *batched.OF_BATCHES, *_code(run_dir)))
    with files.of_run(run_dir):
        files.replace(run_dir, others | texts | _told(overrides, config))


def store_options(run_dir: Path, overrides: list[str], config: Config) -> None:
    """Writes the options with which a run goes on, and leaves its other files.

    Raises:
        ExperimentError: If they cannot be written.
        OSError: If the disk does not take them.
    """
    with files.of_run(run_dir):
        files.replace(run_dir, _told(overrides, config))


def store_again(
    run_dir: Path,
    texts: Texts,
    overrides: list[str],
    config: Config,
    note: Callable[[str], None],
) -> None:
    """Writes the experiment of a run that goes on; keeps code of before, if it differs.

    The file that is kept there stays, with its options, where none can be made of the
    experiment: both have the same structure.

    Args:
        run_dir: The directory.
        texts: The experiment's file and its modules, by path, or why there is none.
        overrides: Options that the experiment was loaded with.
        config: The experiment.
        note: Prints that the code is not the one of before.

    Raises:
        ExperimentError: If it cannot be written.
        OSError: If the disk does not take it.
    """
    if script.MADE in texts and (run_dir / script.KEPT).exists():
        with files.of_run(run_dir):
            files.replace(run_dir, {CONFIG: _described(config)})
        return
    before, update = _code(run_dir), claims.newest(run_dir)
    names = changed_code(run_dir, texts)
    if not names or update is None:
        return store(run_dir, texts, overrides, config)
    place, former = f"{FORMER}/{update}", before | _options(run_dir)
    if not (run_dir / place).exists():  # Else what came since has trained nothing.
        texts = texts | {f"{place}/{name}": text for name, text in former.items()}
    store(run_dir, texts, overrides, config)
    note(
        f"resuming with another {', '.join(names)}; what it was trained with is kept "
        f"in {run_dir / place}"
    )


def changed_code(run_dir: Path, texts: Texts) -> list[str]:
    """Returns which files of an experiment's code are not as a run directory has them.

    Args:
        run_dir: The directory.
        texts: The experiment's file and its modules, by path.
    """
    before = _code(run_dir)
    return sorted(x for x in before | texts if before.get(x) != texts.get(x))


def _told(overrides: list[str], config: Config) -> Texts:
    """Returns the files that tell the options and the fields of an experiment."""
    options = (json.dumps(overrides) + "\n").encode()
    return {OVERRIDES: options, CONFIG: _described(config)}


def _code(run_dir: Path) -> Texts:
    """Returns the experiment's file and its modules that a run directory has."""
    places = [run_dir / name for name in (script.KEPT, script.MADE)]
    found = [*filter(Path.exists, places), *(run_dir / script.IMPORTED).rglob("*.py")]
    return {str(path.relative_to(run_dir)): path.read_bytes() for path in found}


def _options(run_dir: Path) -> Texts:
    return {OVERRIDES: (run_dir / OVERRIDES).read_bytes()}


def _described(config: Config) -> bytes:
    return (json.dumps(describe(config), indent=2) + "\n").encode()
