"""Trains our PPO on CartPole by its command, as whoever tries it would.

Evaluations, checkpoints, logs and the report at the end are those of every run. Nothing
is imported here that takes time: the command is the process that is measured.
"""

import argparse
import json
import platform
import resource
import subprocess
import sys
import tempfile
import time
from importlib.metadata import version
from pathlib import Path

EXPERIMENT = Path(__file__).parents[1] / "experiments" / "cartpole.py"


def parse_arguments():
    """Returns the options of a job, as all scripts have them."""
    parser = argparse.ArgumentParser(description=__doc__)
    for name, default in (("envs", 8), ("steps", 128)):
        parser.add_argument(f"--num-{name}", type=int, default=default)
    parser.add_argument("--updates", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    return parser.parse_args()


def train(arguments, folder):
    """Trains once; returns the rows of the run."""
    fields = {
        "num-envs": arguments.num_envs,
        "num-steps": arguments.num_steps,
        "total-timesteps": arguments.updates * arguments.num_steps * arguments.num_envs,
        "seed": arguments.seed,
    }
    command = [sys.executable, "-m", "ppo_jax.train", str(EXPERIMENT), "--quiet"]
    command += ["--run-dir", folder]
    command += [word for name, x in fields.items() for word in (f"--{name}", str(x))]
    subprocess.run(command, check=True, stdout=sys.stderr)
    lines = Path(folder, "metrics.jsonl").read_text().splitlines()
    return [json.loads(line) for line in lines]


def main():
    """Trains once and prints the figures."""
    arguments = parse_arguments()
    began = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        rows = train(arguments, folder)
    seconds = time.perf_counter() - began
    peak_rss_kib = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    line = {
        "seconds": round(seconds, 3),
        "steps_per_second": round(rows[-1]["step"] / seconds),
        "compile_seconds": round(sum(row["time/compiling"] for row in rows), 3),
        "mean_return": round(rows[-1]["eval/mean_reward"], 1),
        "peak_rss_mib": round(peak_rss_kib / 1024),
        "versions": {"python": platform.python_version(), "jax": version("jax")},
    }
    print(json.dumps(line), flush=True)


if __name__ == "__main__":
    main()
