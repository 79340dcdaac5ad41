"""Trains our PPO on CartPole by its command, as whoever tries it would.

Evaluations, checkpoints, logs and the report at the end are those of every run.
"""

import json
import tempfile
import time
from pathlib import Path

from measure import argument_parser, say

from ppo_jax import train

EXPERIMENT = Path(__file__).parents[1] / "experiments" / "cartpole.py"


def options(arguments):
    """The command line of the run."""
    steps = arguments.updates * arguments.num_steps * arguments.num_envs
    fields = {
        "num-envs": arguments.num_envs,
        "num-steps": arguments.num_steps,
        "total-timesteps": steps,
        "seed": arguments.seed,
    }
    return [word for name, x in fields.items() for word in (f"--{name}", str(x))]


def main():
    """Trains once and prints the figures."""
    arguments = argument_parser(__doc__).parse_args()
    began = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        command = [str(EXPERIMENT), "--run-dir", folder, "--quiet"]
        assert train.main(command + options(arguments)) == 0
        lines = (Path(folder) / "metrics.jsonl").read_text().splitlines()
    rows = [json.loads(line) for line in lines]
    seconds = time.perf_counter() - began
    say(
        {
            "seconds": round(seconds, 3),
            "steps_per_second": round(rows[-1]["step"] / seconds),
            "compile_seconds": round(sum(row["time/compiling"] for row in rows), 3),
            "mean_return": round(rows[-1]["eval/mean_reward"], 1),
        }
    )


if __name__ == "__main__":
    main()
