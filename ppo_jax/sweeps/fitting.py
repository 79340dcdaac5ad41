"""Sweeps from Python: `fit_all` is the command `sweep` for any experiments."""

from collections.abc import Callable, Iterable
from pathlib import Path

from ppo_jax.config import Config
from ppo_jax.host.agents.fitting import guests, require, require_config
from ppo_jax.host.agents.trained import Trained
from ppo_jax.host.loop import training
from ppo_jax.host.metrics.figures import SCORE
from ppo_jax.host.process.console import Console
from ppo_jax.host.run_dir import batched, claims, experiment, presence, source, storing
from ppo_jax.host.run_dir.ending import recorded
from ppo_jax.host.run_dir.recording import Memory
from ppo_jax.sweeps import batches, cohorts, plan, running
from ppo_jax.sweeps.cohorts import Member
from ppo_jax.sweeps.plan import Plan


def fit_all(
    configs: Iterable[Config],
    run_dir: str | Path | None = None,
    *,
    resume: bool = False,
    quiet: bool = False,
) -> list[Trained]:
    """Trains single agents, those of a structure and a budget in one program.

    Agents of one program differ in seeds and numbers. Bounds apply to all of them
    together: `stop_at` is reached when their median has reached it.

    Args:
        configs: Their experiments.
        run_dir: Directory of the sweep, as of the command; None: agents are kept in
            memory alone.
        resume: Whether to go on with the sweep of these experiments in `run_dir`. Of
            what they share, only bounds, devices and sinks may be others.
        quiet: Whether to show warnings only.

    Returns:
        The trained agents, in the order of `configs`. Of the metrics that a run logs,
        agents of one program have evaluations and the clock.

    Raises:
        UserError: If an argument is not possible; the message says which.
        RunError: If the disk does not take a checkpoint or a log.
        KeyboardInterrupt: At a Ctrl-C, once the state of `run_dir`, if any, is saved.
    """
    require(isinstance(configs, Iterable), "configs", configs, "a list of Configs")
    configs = [*configs]
    for number, config in enumerate(configs):
        require_config(f"configs[{number}]", config)
        require(config.pbt is None, f"configs[{number}].pbt", config.pbt, "None")
    place = (str, Path, type(None))
    require(isinstance(run_dir, place), "run_dir", run_dir, "a path")
    require(run_dir is not None or not resume, "run_dir", run_dir, "a path to resume")
    require(bool(configs) or run_dir is None, "configs", configs, "one at least")
    consoles = guests(quiet)
    planned = plan.of(configs)
    if not resume:
        cohorts.require_known(planned.groups)
    if run_dir is not None:
        return _kept(configs, planned, Path(run_dir), resume, consoles)
    found: dict[Member, Trained] = {}
    for group in planned.groups:
        found |= _together(group, consoles())
    return [found[member] for member in planned.members]


def load_all(
    run_dir: str | Path, configs: Iterable[Config] | None = None
) -> list[Trained]:
    """Loads the trained agents of a sweep from its directory.

    Args:
        run_dir: The directory, of `fit_all` or of the command `sweep`.
        configs: Its experiments, if parts of them are in no file; None: as in its file.

    Returns:
        For a sweep of `fit_all`, the agents that it returned, in the order of
        `configs`; for one of the command, all seeds of the first setting, then of the
        next.

    Raises:
        ExperimentError: If the directory holds no sweep, another one, or one that is
            not finished.
        CheckpointError: If a checkpoint cannot be restored.
    """
    place = Path(run_dir)
    sizes = plan.recall(place)["sizes"]
    if configs is None:
        planned = plan.again(place, "ppo_jax.load_all")
    else:
        planned = plan.of([*configs])
        _require_same(place, planned)
    return running.load(place, planned, sizes)


def _kept(
    configs: list[Config],
    planned: Plan,
    place: Path,
    resume: bool,
    consoles: Callable[[], Console],
) -> list[Trained]:
    """Trains the unfinished runs of a directory, and loads all runs from it."""
    if resume:
        _require_same(place, planned)
    else:
        plan.require_told_apart(planned)
    with presence.alone(place):
        sizes = plan.recall(place)["sizes"] if resume else []
        if not resume:
            claims.require_new(place)
            runs = plan.runs(planned)
            texts = source.texts_of_all(configs, runs)
            storing.store(place, texts, [], configs[0])
        hint = f"go on with: {batched.call(place)}"
        made = plan.made(planned) | {"metric": SCORE}

        def remember(sizes: list[int]) -> None:
            plan.remember(place, made | {"sizes": sizes})

        with recorded(place) as ending:
            say = consoles().note
            sizes = batches.sizes(planned.groups, sizes, None, say, remember)
            running.train(place, planned, sizes, SCORE, hint, consoles)
            ending.state = "finished"
    return running.load(place, planned, sizes)


def _require_same(place: Path, planned: Plan) -> None:
    """Checks that the sweep of a directory is of these experiments, and no others."""
    asked = plan.recall(place)
    for name, value in plan.made(planned).items():
        if asked.get(name) != value:
            raise experiment.ExperimentError(
                f"{place}: its {name} are others than those of these experiments"
            )
    experiment.require_same(place, planned.members[0].alone, experiment.FREE)


def _together(group: list[Member], console: Console) -> dict[Member, Trained]:
    """Trains the members of one program in memory, and returns them as agents.

    Raises:
        KeyboardInterrupt: If they were interrupted.
    """
    config, record = group[0].config, Memory()
    (batch,) = cohorts.split(group, cohorts.even(config, len(group)))
    ended = training.train(config, record, console, begin=cohorts.begin(batch))
    if ended.ending == "interrupted":
        raise KeyboardInterrupt
    population, rows = ended.layout.fetch(ended.population), record.rows.read()
    endings = cohorts.endings(batch, ended)
    return running.each(batch, population, ended.update, endings, rows)
