"""Checks that what an experiment's agent replays equals what it lived.

Time limits are cut short, chunks are shortened and, in a rollout of their own,
environments break, so that resets in mid-rollout, truncations, chunks shorter than the
rollout and quarantined steps really occur; without them it refuses to report.

Exit status: 0, all is well. 1, a check failed. 2, none was possible.

Example:
    python -m ppo_jax.selfcheck experiments/memory.py
"""

import sys

from ppo_jax.arrays import devices
from ppo_jax.envs import check_types
from ppo_jax.host.process import command
from ppo_jax.host.programs import store
from ppo_jax.host.run_dir.experiment import load
from ppo_jax.ppo.contracts import Report, check


@command.entrance
def main(argv: list[str] | None = None) -> int:
    """Checks an experiment; returns the exit status."""
    parser = command.parser("selfcheck", __doc__)
    command.add_experiment(parser)
    options, overrides = command.parse_with_fields(parser, argv)
    devices.start()
    store.keep()
    config = load(options.experiment, overrides, command="ppo_jax.selfcheck")
    check_types(config.env)
    report = check(config)
    for what, value, ok, _ in report.findings:
        print(f"{'ok  ' if ok else 'FAIL'}  {what}: {value:.3g}")
    print(f"\n{verdict(report)}")
    return 0 if report.ok else 1


def verdict(report: Report) -> str:
    """Returns in words which contracts hold, or are broken and where to look."""
    seen = report.seen
    contracts = dict.fromkeys(finding.contract for finding in report.findings)
    broken = {finding.contract for finding in report.findings if not finding.ok}
    lines = [
        f"Shown over {seen.num_steps} steps of {seen.num_envs} environments, replayed "
        f"in chunks of {seen.chunk}, with {seen.resets} resets in mid-rollout\n"
        f"and {seen.truncations} truncations, and over as many with {seen.faults} "
        "faults in mid-episode:"
    ]
    lines += [f"- {contract.holds}" for contract in contracts if contract not in broken]
    for contract in contracts:
        if contract in broken:
            lines += [f"- NOT SO: {contract.holds}", f"  Look at {contract.look}."]
    if not seen.memory:
        lines += ["The network has no memory, so nothing was shown of one."]
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
