"""Walking forward on disk: trains, selects and tests batch after batch.

A batch is a run of many members, in a directory of its own. Its tracks are
written once, at its end; a batch that has them is not trained again.
"""

import io
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from ppo_jax.backtests import playing
from ppo_jax.backtests.evolving import Evolution
from ppo_jax.backtests.plan import Plan
from ppo_jax.backtests.selection import Selection
from ppo_jax.host.loop import conclusion
from ppo_jax.host.loop.training import Steer
from ppo_jax.host.process.console import Console
from ppo_jax.host.run_dir import batched, files
from ppo_jax.host.run_dir.experiment import ExperimentError
from ppo_jax.host.run_dir.names import LOG
from ppo_jax.state import Population
from ppo_jax.sweeps import batches, cohorts
from ppo_jax.sweeps.cohorts import Member

KEPT = batched.TRACKS


class Tracks(NamedTuple):
    """Tracks of the members of a batch, as selected; leaves `[P, ...]`."""

    place: np.ndarray
    """Numbers of setting, fold and seed, `[P, 3]`."""
    growth: np.ndarray
    """Log growth of each bar of the test, `[P, bars]`."""
    turnover: np.ndarray
    exposure: np.ndarray
    positions: np.ndarray
    """Positions once orders were filled, in the test, `[P, bars, A]`."""
    predicted: np.ndarray
    """Quantiles of the return to come in the test, `[P, bars, levels]`."""
    trained: np.ndarray
    """Log growth per bar in training, `[P]`."""
    validated: np.ndarray
    """Log growth per bar in validation, `[P]`."""
    updates: np.ndarray
    """Updates after which each member was at its best in validation, `[P]`."""
    failed: np.ndarray
    """Whether each took no finite step for too long before its end, bool `[P]`."""


def walk(
    plan: Plan,
    sizes: Sequence[int],
    run_dir: Path,
    hint: str,
    consoles: Callable[[], Console],
) -> Iterator[Tracks]:
    """Trains and tests batches that are not finished; yields the tracks of each.

    Args:
        plan: The plan.
        sizes: The number of members of each program that are trained at once.
        run_dir: The directory of the walk-forward.
        hint: Message on how to go on after an interrupt.
        consoles: Makes a console for each batch.

    Raises:
        KeyboardInterrupt: If a batch was interrupted, and has been saved.
    """
    divided = batches.split(plan.groups, sizes, run_dir)
    for number, (home, batch) in enumerate(divided.items(), start=1):
        found = kept(home)
        if found is None:
            console = consoles()
            console.note(f"batch {number} of {len(divided)}, {len(batch)} agents")
            tracks = _trained(plan, batch, home, hint, console)
            files.write_bytes(home / KEPT, _packed(tracks))
            found = _once(tracks)
        yield found


def kept(home: Path) -> Tracks | None:
    """Returns the kept tracks of a batch, each member once; None: it is not finished.

    Tracks that cannot be read are as if there were none: a batch whose agents are
    trained and selected has the same again.
    """
    try:
        arrays = files.arrays(home / KEPT)
    except ExperimentError:
        return None
    if "place" in arrays:
        # Files of earlier versions have no batch whose training failed.
        arrays.setdefault("failed", np.zeros(len(arrays["place"]), bool))
    return _once(Tracks(**arrays)) if arrays.keys() == {*Tracks._fields} else None


def _once(tracks: Tracks) -> Tracks:
    """Returns each member once, in the order of places."""
    _, once = np.unique(tracks.place, axis=0, return_index=True)
    return Tracks(*(leaf[once] for leaf in tracks))


def _trained(
    plan: Plan, batch: list[Member], home: Path, hint: str, console: Console
) -> Tracks:
    """Trains a batch, selects its members at their best, and tests those."""
    folds = [plan.folds[plan.place_of(member)[1]] for member in batch]
    config, seeds = batch[0].config, [member.seed for member in batch]
    selection = Selection(config, [fold.validation for fold in folds], home)
    evolution = Evolution(config, seeds, selection, home)
    interval = 0 if config.pbt is None else config.pbt.interval
    steer = Steer(evolution, interval)
    ended = cohorts.train(batch, home, hint, console, steer)
    population = ended.layout.fetch(ended.population)
    if ended.ending == "interrupted":
        console.say(hint)
        raise KeyboardInterrupt
    endings = cohorts.endings(batch, ended)
    if ended.ending == "failed":
        rows = files.rows(home / LOG)
        why = conclusion.cause(rows, config.max_failures, home)
        console.say(f"this batch failed: {why}")
    selection.look(population, ended.update)
    return _tested(plan, batch, selection, population, endings)


def _tested(
    plan: Plan,
    batch: list[Member],
    selection: Selection,
    population: Population,
    endings: list[str],
) -> Tracks:
    places = np.array([plan.place_of(member) for member in batch])
    folds = [plan.folds[fold] for fold in places[:, 1]]
    selected, config = selection.of(population), batch[0].config

    def played(spans):
        seen = playing.through(config, selected.learners, spans)
        return playing.play(seen, max(span.bars for span in spans))

    train, validation, test = zip(*folds, strict=True)
    outcome = played(test)
    trained = np.asarray(played(train).track.growth, np.float64).sum(axis=1)
    return Tracks(
        places,
        *map(np.asarray, outcome.track),
        positions=np.asarray(outcome.positions),
        predicted=np.asarray(outcome.predicted),
        trained=trained / [span.bars for span in train],
        validated=selected.scores / [span.bars for span in validation],
        updates=selected.updates,
        failed=np.array([ending == "failed" for ending in endings]),
    )


def _packed(tracks: Tracks) -> bytes:
    text = io.BytesIO()
    np.savez(text, **tracks._asdict())
    return text.getvalue()
