"""Plays whole episodes with the agent of a run, and makes a video of them.

They are played as by evaluate, and shown side by side: of what each step begins with
there is a picture, with the return that it leads to. A GIF needs Pillow, an MP4
imageio-ffmpeg as well; both are in the extra `video`.

Exit status: 0, done. 2, an option or the run directory is wrong, the environment cannot
be drawn, or a package is missing.

Example:
    python -m ppo_jax.watch runs/cartpole --best --out cartpole.gif
"""

import argparse
import sys
from pathlib import Path

from ppo_jax.host.agents import players, video
from ppo_jax.host.process import command
from ppo_jax.host.process.console import figure
from ppo_jax.host.run_dir import experiment


@command.entrance
def main(argv: list[str] | None = None) -> int:
    """Makes a video of a run's agent; returns the exit status."""
    options, fields = players.parse(_parser(), argv)
    command.require(options.steps >= 1, "--steps", options.steps, "at least 1")
    command.require(options.fps in video.FPS, "--fps", options.fps, "1 to 50")
    experiment.stored_overrides(options.run_dir)
    out = options.out or options.run_dir / "watch.gif"
    video.require(out)
    player = players.restore(options, fields, "ppo_jax.watch")
    how = options.episodes, player.seed, player.sample, options.steps, options.fps
    watched = player.agent.watch(out, *how, player.env)
    for number, (total, steps, ended) in enumerate(zip(*watched, strict=True), start=1):
        left = "" if ended else ", where it was left: --steps"
        print(f"episode {number}: return {figure(total)} after {steps:,} steps{left}")
    print(out)
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = command.parser("watch", __doc__)
    players.add_options(parser, episodes=4)
    parser.add_argument(
        "--out",
        type=Path,
        metavar="FILE",
        help="a name that ends in .gif or .mp4 (default: RUN_DIR/watch.gif)",
    )
    parser.add_argument(
        "--steps", type=int, default=1000, help="of an episode, at most (default: 1000)"
    )
    parser.add_argument(
        "--fps", type=int, default=20, help="steps per second (default: 20)"
    )
    return parser


if __name__ == "__main__":
    sys.exit(main())
