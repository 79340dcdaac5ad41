"""Training from Python: `fit` trains as the command `train`, `load` reads a run."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from numbers import Integral
from pathlib import Path
from typing import Any

import jax
from jax.core import Tracer
from jax.tree_util import Partial

from ppo_jax import envs
from ppo_jax.arrays import devices
from ppo_jax.component import suggestion
from ppo_jax.component.paths import require_single
from ppo_jax.component.suggestion import uncalled
from ppo_jax.config import Config
from ppo_jax.errors import UserError
from ppo_jax.host.agents import runs
from ppo_jax.host.agents.trained import Trained
from ppo_jax.host.loop import beginning, evaluation, stopping, training
from ppo_jax.host.loop.continuation import Continuation
from ppo_jax.host.loop.stopping import Callback, deaf
from ppo_jax.host.process import distributed
from ppo_jax.host.process.console import NORMAL, QUIET, Console, Guest
from ppo_jax.host.run_dir import (
    claims,
    experiment,
    lineage,
    logger,
    presence,
    source,
    storing,
)
from ppo_jax.host.run_dir.names import LOG
from ppo_jax.host.run_dir.recording import Folder, Memory
from ppo_jax.state import Population

CHECKPOINTS = ("newest", "best")


def fit(
    config: Config,
    run_dir: str | Path | None = None,
    callback: Callback | None = None,
    *,
    resume: bool = False,
    begin: Trained | None = None,
    optimizer: bool = False,
    quiet: bool = False,
) -> Trained:
    """Trains the agent of an experiment, or its population.

    The first Ctrl-C ends the run after the current phase, and what there is by then is
    returned; the second raises a `KeyboardInterrupt`. SIGTERM and SIGHUP are passed on
    to the process once the run is saved, and end it by default. A run that has stopped,
    was interrupted or has finished goes on, maybe with a larger budget, by `resume`.

    Args:
        config: The experiment.
        run_dir: Directory of the run, as that of a command; None: the run is kept in
            memory alone.
        callback: Function that is called after each phase with the environment steps
            done and a row of metrics. The run stops if it returns True. Its errors are
            raised here, once the run is saved.
        resume: Whether to go on with the run in `run_dir`.
        begin: An agent whose parameters and statistics the run begins with; of a
            population, the fittest member. Heads that do not fit begin from scratch.
        optimizer: Whether to begin with the state of its optimiser too.
        quiet: Whether to show warnings only.

    Raises:
        UserError: If an argument is not possible; the message says which.
        RunError: If the disk does not take a checkpoint or a log.
        OSError: If the disk does not take the experiment.
    """
    require_config("config", config)
    heard = deaf if callback is None else callback
    require(callable(heard), "callback", callback, "a function of a step and a row")
    agent = (Trained, type(None))
    require(isinstance(begin, agent), "begin", begin, "what fit or load returned")
    place = (str, Path, type(None))
    require(isinstance(run_dir, place), "run_dir", run_dir, "a path")
    if optimizer and begin is None:
        raise UserError("optimizer: expected an agent to begin with as well")
    if resume and begin is not None:
        raise UserError("begin: a run that is resumed has begun; give one of both")
    if resume and run_dir is None:
        raise UserError("resume: expected a run_dir as well")
    console = guests(quiet)()
    check(config)
    first = None if begin is None else begun(config, begin, optimizer, console)
    start = training.start if first is None else Partial(_as_given, first.population)
    with _kept(config, run_dir, resume, first, console) as (record, hint):
        ended = training.train(
            config,
            record,
            console,
            hint,
            begin=start,
            callback=heard,
        )
    if ended.ending == "failed":
        updates = f"{config.max_failures} updates in a row had no finite step"
        console.say(f"failed: {updates}; error/* of the curves say why")
    return Trained(
        config,
        ended.layout.fetch(ended.population),
        ended.update,
        ended.ending,
        record.rows.read(),
        record.family.lines,
        ended.streaks,
    )


def guests(quiet: bool) -> Callable[[], Guest]:
    """Starts JAX on all cores, or notes that it has fewer; returns a maker of consoles.

    Raises:
        UserError: If JAX cannot start on the platform that is asked for.
    """
    in_time, guests = devices.start(), partial(Guest, QUIET if quiet else NORMAL)
    if not in_time:
        guests().note(
            f"JAX had started, on {jax.device_count()} of {devices.cores()} cores; for "
            f"all of them, begin Python with JAX_NUM_CPU_DEVICES={devices.cores()} set"
        )
    return guests


def load(
    run_dir: str | Path,
    member: int | None = None,
    checkpoint: str | int = "newest",
    config: Config | None = None,
) -> Trained:
    """Loads the agents of a run, and its log, from its directory.

    Args:
        run_dir: The directory.
        member: Number of a member of a population; None: all members.
        checkpoint: `newest`, `best`, or the number of updates of a checkpoint.
        config: The experiment, if parts of it are in no file or its numbers, such as
            those of the environment, are to be others. The agents get its numbers,
            except those that a population searches. None: as in the run's file.

    Raises:
        ExperimentError: If the directory holds no run, many of them, or one of another
            experiment.
        CheckpointError: If there is no such checkpoint, or it cannot be restored.
        UserError: If there is no such member, or another argument is not possible.
    """
    require(isinstance(run_dir, str | Path), "run_dir", run_dir, "a path")
    number = isinstance(checkpoint, Integral) and not isinstance(checkpoint, bool)
    if not number and checkpoint not in CHECKPOINTS:
        message = suggestion.unknown("checkpoint", str(checkpoint), CHECKPOINTS)
        raise UserError(f"checkpoint: {message}; or give a number of updates")
    if config is not None:
        require_config("config", config)
    place = Path(run_dir)
    asked = int(checkpoint) if number else None
    run = runs.restore(place, "ppo_jax.load", checkpoint == "best", asked, config)
    names = experiment.stored_names(place)
    trained = Trained(
        run.config,
        jax.device_get(run.population),
        run.update,
        rows=logger.until(place / LOG, run.steps, names),
        lineage=run.lineage,
        streaks=run.streaks,
    )
    return trained if member is None else trained.member(member)


def check(config: Config) -> None:
    """Checks the parts of an experiment that only a trace of it shows.

    Raises:
        UserError: If the environment, or a metric to stop at or to select by, is wrong.
    """
    envs.check_types(config.env)
    stopping.require_known(config, config.num_members)
    evaluation.require_fitness(config)


def begun(config: Config, agent: Trained, optimizer: bool, console: Console) -> Trained:
    """Returns a run before its first update that begins with an agent's parameters.

    Parts that begin from scratch are printed.

    Raises:
        UserError: If the agent has other shapes than the experiment.
        JobError: If there are several processes.
    """
    if jax.process_count() > 1:
        raise distributed.JobError("an agent to begin with: expected a single process")
    one = agent.member(agent.fittest)
    members = Continuation(config, one.learner, optimizer)
    for name in members.anew:
        console.note(f"{name}: anew, as they are others here")
    population = jax.device_get(members(config))
    return Trained(
        config, population, 0, lineage=beginning.lineage_of(config, population)
    )


def _as_given(population: Population, *_: Any) -> Population:
    """Returns members that exist already, in place of `training.start`."""
    return population


@contextmanager
def _kept(
    config: Config,
    run_dir: str | Path | None,
    resume: bool,
    first: Trained | None,
    console: Console,
) -> Iterator[tuple[Memory, str]]:
    """Yields the record of a run, and a hint on how to continue it.

    No other process can be at work in the run's directory meanwhile.
    """
    if run_dir is None:
        yield Memory(), "it was kept in memory alone; give a run_dir to go on with it"
        return
    place = Path(run_dir)
    if resume:
        lineage.require_unscheduled(place)
        experiment.require_same_structure(place, config)

    texts = source.texts(config)
    keep = partial(storing.store_again, place, texts, [], config, console.note)

    def claim() -> None:
        if resume:
            claims.require_begun(place)
        elif first is not None:
            first.keep(place, texts, [])
        else:
            claims.require_new(place)
            storing.store(place, texts, [], config)

    hint = f"go on with: ppo_jax.fit(config, {str(place)!r}, resume=True)"
    record = Folder(place, True, keep) if resume else Folder(place, first is not None)
    with presence.alone(place):
        distributed.first_only(claim)
        yield record, hint


def require_config(name: str, given: Any) -> None:
    """Checks that an argument is an experiment whose numbers are known.

    Raises:
        UserError: If it is none, or a number is several or traced: training is no part
            of another program.
    """
    require(isinstance(given, Config), name, given, "a Config")
    if any(isinstance(number, Tracer) for number in jax.tree.leaves(given)):
        raise UserError(
            "fit runs on the host, not inside jit or vmap; for many seeds or settings: "
            "ppo_jax.fit_all(configs)"
        )
    expected = "one number; many experiments are ppo_jax.fit_all(configs)"
    require_single(given, expected, f"{name}.")


def require(ok: bool, name: str, given: Any, expected: str) -> None:
    """Checks the value of an argument.

    Raises:
        UserError: If `ok` is false.
    """
    if not ok:
        kind = type(given).__name__
        raise UserError(
            f"{name}: expected {expected}, got {given!r:.80} ({kind}){uncalled(given)}"
        )
