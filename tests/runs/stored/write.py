"""Writes the stored runs: what a version leaves, for all later ones to go on with.

    python tests/runs/stored/write.py tests/runs/stored

Each is a run that was killed between its two checkpoints, and a digest of all that it
ends with. They are written once, and kept: a version that cannot go on with one of them
loses the runs of its users. One that draws or adds up otherwise ends them otherwise,
and says so by writing the digests anew, with every JAX, on a processor with AVX-512 and
on one without:

    python tests/runs/stored/write.py tests/runs/stored --digests
"""

import json
import shutil
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / "helpers"))

from runs import EXACT, command, digest

EXPERIMENT = """\
from ppo_jax import PBT, Config, LogUniform, Uniform, networks, optimizers, terms
from ppo_jax.envs.probes import TimeLimitChain

config = Config(
    env=TimeLimitChain(limit=5),
    num_envs=4,
    num_steps=8,
    num_minibatches=2,
    num_epochs=2,
    total_timesteps=32 * 8,
    phase_updates=4,
    eval_phases=1,
    eval_episodes=4,
    obs_clip=10.0,
{more})
"""
KINDS = {
    "feed_forward": """\
    network=networks.ActorCritic(torso=networks.Mlp(hidden=(4,))),
    terms=(
        terms.Surrogate(),
        terms.Value(),
        terms.AdaptiveEntropy(),
        terms.KlPenalty(),
    ),
    num_critics=2,
""",
    "recurrent": """\
    network=networks.ActorCritic(
        torso=networks.Mlp(hidden=(4,)), memory=networks.Lstm(size=4)
    ),
    chunk_length=4,
    optimizer=optimizers.AdaptiveUPGD(learning_rate=1e-3, vgs=optimizers.VGS()),
""",
    "population": """\
    network=networks.ActorCritic(torso=networks.Mlp(hidden=(4,))),
    pbt=PBT(
        {
            "optimizer.learning_rate": LogUniform(1e-4, 1e-2),
            "terms.entropy.coef": LogUniform(1e-3, 1e-1),
            "gamma": Uniform(0.5, 0.9),
        },
        size=4,
        interval=2,
    ),
""",
}


def write(home: Path) -> None:
    """Trains each kind to its end, and takes the last checkpoint away."""
    for kind, more in KINDS.items():
        run_dir = home / kind
        path = home / f"{kind}.py"
        path.write_text(EXPERIMENT.format(more=more))
        done = command("train", path, "--run-dir", run_dir, environment=EXACT)
        assert done.returncode == 0, done.stdout + done.stderr
        path.unlink()
        (run_dir / "digest.json").write_text(json.dumps(digest(run_dir)) + "\n")
        shutil.rmtree(run_dir / "checkpoints" / "8")
        for events in run_dir.glob("events.*"):
            events.unlink()


def write_digests(home: Path) -> None:
    """Goes on with copies of all runs, and writes what they end with."""
    for kind in KINDS:
        with tempfile.TemporaryDirectory() as folder:
            run_dir = shutil.copytree(home / kind, Path(folder) / kind)
            options = ("--run-dir", run_dir, "--resume")
            path = run_dir / "experiment.py"
            done = command("train", path, *options, environment=EXACT)
            assert done.returncode == 0, done.stdout + done.stderr
            found = digest(run_dir)
        kept = home / kind / "digest.json"
        kept.write_text(json.dumps(json.loads(kept.read_text()) | found) + "\n")


if __name__ == "__main__":
    make = write_digests if "--digests" in sys.argv else write
    make(Path(sys.argv[1]))
