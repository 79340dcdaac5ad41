"""A sweep in its directory: trained batch after batch, and loaded again."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from ppo_jax.host.agents.trained import Trained, member_of
from ppo_jax.host.process.console import Console
from ppo_jax.host.run_dir import history
from ppo_jax.host.run_dir.experiment import ExperimentError
from ppo_jax.host.run_dir.logger import Row, logged
from ppo_jax.host.run_dir.names import LOG
from ppo_jax.host.run_dir.recording import checkpoints
from ppo_jax.state import Population
from ppo_jax.sweeps import batches, cohorts, hparams, scores
from ppo_jax.sweeps.cohorts import Member
from ppo_jax.sweeps.plan import Plan
from ppo_jax.sweeps.scores import Score


def train(
    run_dir: Path,
    planned: Plan,
    sizes: Sequence[int],
    metric: str,
    hint: str,
    consoles: Callable[[], Console],
) -> tuple[list[Score], list[dict[str, Any]]]:
    """Trains the batches that are not finished, and writes results after each one.

    Args:
        run_dir: The directory of the sweep.
        planned: Its runs.
        sizes: The number of runs of each program that are trained at once.
        metric: The metric by whose last value settings are compared.
        hint: Message on how to go on after an interrupt.
        consoles: Makes a console for each batch.

    Returns:
        The scores of the runs, and the table of settings.
    """
    runs: list[Score] = []
    rows: list[dict[str, Any]] = []
    split = batches.split(planned.groups, sizes, run_dir)
    for more in batches.train(split, hint, consoles):
        runs += more
        rows = scores.write(run_dir, runs, planned.settings, metric)
        hparams.write(run_dir, more, planned.settings, metric)
    return runs, rows


def load(run_dir: Path, planned: Plan, sizes: Sequence[int]) -> list[Trained]:
    """Loads the trained agents, in the order in which they were asked for.

    Raises:
        ExperimentError: If some have not been trained yet.
    """
    if len(sizes) < len(planned.groups):
        raise _unfinished(run_dir)
    found: dict[Member, Trained] = {}
    for home, batch in batches.split(planned.groups, sizes, run_dir).items():
        known = scores.kept(home, batch)
        if known is None:
            raise _unfinished(home)
        found |= _restored(home, batch, known)
    return [found[member] for member in planned.members]


def each(
    members: Sequence[Member],
    population: Population,
    update: int,
    endings: Sequence[str],
    rows: Sequence[Row],
) -> dict[Member, Trained]:
    """Returns the members of one program as single agents."""
    return {
        member: Trained(
            member.alone,
            member_of(population, index),
            update,
            ending,
            rows if len(members) == 1 else history.of_member(rows, index),
        )
        for index, (member, ending) in enumerate(zip(members, endings, strict=True))
    }


def _unfinished(place: Path) -> ExperimentError:
    return ExperimentError(f"{place}: is not finished; resume the sweep first")


def _restored(
    home: Path, batch: Sequence[Member], known: Sequence[Score]
) -> dict[Member, Trained]:
    with checkpoints(home) as saved:
        update, population, _ = saved.read(cohorts.begin(batch))
    ended = {(score["setting"], score["seed"]): score["ending"] for score in known}
    endings = [ended[member.setting, member.seed] for member in batch]
    return each(batch, population, update, endings, [*logged(home / LOG, {})])
