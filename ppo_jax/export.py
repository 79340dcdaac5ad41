"""Exports the policy of a run, to act where this package is not.

It leaves policy.json, which says what the policy takes, gives and learned; a step as
StableHLO; and its arrays, with policy.py, which needs NumPy alone to act with them.
StableHLO needs flatbuffers, the extra `export`.

Exit status: 0, done. 2, an option or the run directory is wrong, the folder holds
anything else, or flatbuffers is missing.

Example:
    python -m ppo_jax.export runs/cartpole --best --out policy
"""

import argparse
import sys
from pathlib import Path

from ppo_jax.arrays import devices
from ppo_jax.exports import folder
from ppo_jax.exports.provenance import trained
from ppo_jax.host.agents import runs
from ppo_jax.host.agents.trained import Trained
from ppo_jax.host.process import command
from ppo_jax.host.programs import store
from ppo_jax.host.run_dir import experiment, files
from ppo_jax.host.run_dir.names import LOG


@command.entrance
def main(argv: list[str] | None = None) -> int:
    """Exports a member of a run; returns the exit status."""
    options = command.parse(_parser(), argv)
    experiment.stored_overrides(options.run_dir)
    out = options.out or options.run_dir / "export"
    folder.require_free(out)
    devices.start()
    store.keep()
    run = runs.restore(
        options.run_dir, "ppo_jax.export", options.best, options.checkpoint
    )
    member, size = runs.choose(run, options.member), run.config.num_members
    agent = Trained(run.config, run.population, run.update).member(member)
    name = options.run_dir.resolve().name
    rows = files.rows(options.run_dir / LOG)
    training = trained(name, agent.config, run.update, member, size, rows)
    paths = folder.write(out, agent.policy, options.format, training)
    print(f"checkpoint {run.update}, {run.steps:,} steps, member {member}")
    for path in paths:
        print(path)
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = command.parser("export", __doc__)
    command.add_run(parser)
    parser.add_argument(
        "--format",
        choices=folder.FORMATS,
        default="all",
        help="what to act with (default: all)",
    )
    command.add_member_options(parser)
    parser.add_argument("--out", type=Path, help="folder (default: RUN_DIR/export)")
    return parser


if __name__ == "__main__":
    sys.exit(main())
