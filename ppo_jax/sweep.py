"""Trains an experiment with many settings and seeds, and compares the settings.

All that share a structure are trained in one program. Values are Python, as in the
experiment's file. Fields are the same for all; of an experiment with a population, the
single run is swept.

Exit status: 0, finished. 2, the experiment, an option or the directory is wrong. 3, the
disk took nothing more. 4, nothing came back for too long. 130, interrupted. A sweep
goes on with --resume after the last three.

Example:
    python -m ppo_jax.sweep experiments/cartpole.py --seeds 5 --grid num_epochs=4,8
"""

import argparse
import contextlib
import dataclasses
import json
import sys
from pathlib import Path
from typing import Any

from ppo_jax.component import former
from ppo_jax.envs import check_types
from ppo_jax.host import command, distributed, experiment, files, streams
from ppo_jax.host.console import verbosity
from ppo_jax.host.exits import Exit
from ppo_jax.host.experiment import ExperimentError
from ppo_jax.host.metrics import EVALUATIONS
from ppo_jax.sweeps import cohorts, scores, settings

ASKED = ("seeds", "grid", "random", "space", "metric", "sizes")
"""What a sweep remembers of its command line, and how large its batches are."""
SHARE_OF_MEMORY = 0.8
MIB = 2**20


@command.entrance
def main(argv: list[str] | None = None) -> int:
    """Sweeps an experiment; returns the exit status."""
    options, overrides = command.parse_with_fields(_parser(), argv)
    command.require(options.seeds >= 1, "--seeds", options.seeds, "at least 1")
    command.require(options.random >= 0, "--random", options.random, "at least 0")
    enough = options.memory is None or options.memory > 0
    command.require(enough, "--memory", options.memory, "a number of MiB > 0")
    return _sweep(options, overrides)


def _parser() -> argparse.ArgumentParser:
    parser = command.parser("sweep", __doc__)
    command.add_experiment(parser)
    lists = {"nargs": "+", "action": "extend", "default": []}
    parser.add_argument(
        "--seeds", type=int, default=1, help="runs of each setting (default: 1)"
    )
    parser.add_argument(
        "--grid", **lists, metavar="PATH=VALUE,VALUE", help="all combinations of values"
    )
    parser.add_argument(
        "--random", type=int, default=0, help="settings to draw for each of the grid"
    )
    parser.add_argument(
        "--space",
        **lists,
        metavar="PATH=RANGE",
        help="what to draw from, `gamma=Uniform(0.9, 1.0)` or `num_epochs=4,8` "
        "(default: the space of the experiment's population)",
    )
    parser.add_argument(
        "--metric", default="eval/mean_reward", help="score, of the last evaluation"
    )
    parser.add_argument(
        "--memory", type=float, help="MiB to use (default: 80 %% of the device's)"
    )
    parser.add_argument("--run-dir", type=Path, help="where the sweep goes")
    parser.add_argument("--resume", action="store_true", help="go on with --run-dir")
    command.add_verbosity_options(parser)
    parser.set_defaults(sizes=[])
    return parser


def _sweep(options: Any, overrides: list[str]) -> int:
    """Plans, trains batch after batch, and prints the table."""
    distributed.prepare()
    begun = former.understood() if options.resume else contextlib.nullcontext()
    if options.resume:
        overrides = _restore(options, overrides)
    with begun:
        config, names = experiment.load_with_names(
            options.experiment, overrides, "ppo_jax.sweep"
        )
    found = _settings(options, config, names)
    alone = dataclasses.replace(config, pbt=None)
    members = [
        cohorts.Member(number, alone.seed + seed, settings.apply(alone, setting))
        for number, setting in enumerate(found)
        for seed in range(options.seeds)
    ]
    groups = cohorts.group(members)
    for first, *_ in groups:
        check_types(first.config.env)
    if options.resume:
        experiment.require_same(options.run_dir, config)
    else:
        options.run_dir = experiment.create(
            options.run_dir, options.experiment, overrides, config
        )
    print(
        f"{len(members)} runs: {len(found)} settings x {options.seeds} seeds, "
        f"programs to compile: {len(groups)}"
    )
    return _train(options, found, _batches(options, groups))


def _settings(options: Any, config: Any, names: dict[str, Any]) -> list[dict[str, Any]]:
    """The grid, each of its points with every draw."""
    if options.metric not in EVALUATIONS:
        known = ", ".join(EVALUATIONS)
        raise ExperimentError(f"--metric: expected {known}, got {options.metric!r}")
    space = settings.ranges(options.space, names)
    if options.random and not space and config.pbt is not None:
        space = {path: (range_,) for path, range_ in config.pbt.space.ranges}
    if bool(space) != bool(options.random):
        raise ExperimentError("--random and --space: one needs the other")
    settings.require_in(config, space)
    points = settings.grid(options.grid, names)
    if both := points[0].keys() & space.keys():
        raise ExperimentError(f"{min(both)}: is in --grid and in --space")
    if not options.random:
        return points
    key = streams.settings(config.seed)
    drawn = settings.draw(space, options.random, key)
    return [point | each for point in points for each in drawn]


def _batches(options: Any, groups: list[list[Any]]) -> list[list[Any]]:
    """Batches that fit into memory; how large they are is decided once."""
    most = SHARE_OF_MEMORY * cohorts.capacity()
    room = most if options.memory is None else options.memory * MIB
    for group in groups[len(options.sizes) :]:
        size, needed = cohorts.largest_batch(group, room)
        options.sizes.append(size)
        print(
            f"  program {len(options.sizes)}: {len(group)} runs, {size} at once in "
            f"{needed / MIB:,.1f} of {room / MIB:,.0f} MiB"
        )
    asked = {name: getattr(options, name) for name in ASKED}
    files.write(options.run_dir / "sweep.json", json.dumps(asked, indent=2) + "\n")
    return [
        batch
        for group, size in zip(groups, options.sizes, strict=True)
        for batch in cohorts.split(group, size)
    ]


def _train(options: Any, found: list[Any], batches: list[list[Any]]) -> int:
    """Trains what is not finished; whatever is, is in `results.json`."""
    hint = (
        f"go on with: python -m ppo_jax.sweep {options.experiment} "
        f"--run-dir {options.run_dir} --resume"
    )
    runs, rows = [], []
    for number, batch in enumerate(batches, start=1):
        home = options.run_dir / "batches" / f"{number:03}"
        kept = home / "scores.json"
        if not kept.exists():
            print(f"batch {number} of {len(batches)}, {len(batch)} runs")
            ending = cohorts.train(batch, home, hint, verbosity(options))
            if ending == "interrupted":
                print(hint)
                return Exit[ending.upper()]
            files.write(kept, json.dumps(scores.of_batch(home, batch, ending)))
        runs += json.loads(kept.read_text())
        rows = scores.table(runs, found, options.metric)
        results = {
            "metric": options.metric,
            "settings": [settings.plain(setting) for setting in found],
            "runs": runs,
            "table": scores.as_json(rows),
        }
        text = json.dumps(results, indent=2) + "\n"
        files.write(options.run_dir / "results.json", text)
    print(f"\n{options.metric}, last evaluation\n\n{scores.markdown(rows)}")
    failed = sum(run["ending"] == "failed" for run in runs)
    print(f"{len(runs)} runs in {options.run_dir / 'results.json'}, {failed} failed")
    return Exit.FINISHED


def _restore(options: Any, overrides: list[str]) -> list[str]:
    """Fills in what the sweep was asked for; returns the overrides of its fields."""
    if options.run_dir is None:
        raise ExperimentError("--resume: expected --run-dir as well")
    default = _parser().get_default
    if overrides or any(getattr(options, name) != default(name) for name in ASKED):
        raise ExperimentError("--resume: a sweep goes on as it was asked for")
    stored = experiment.stored(options.run_dir, "sweep.json")
    for name in ASKED:
        setattr(options, name, stored[name])
    return experiment.stored_overrides(options.run_dir)


if __name__ == "__main__":
    sys.exit(main())
