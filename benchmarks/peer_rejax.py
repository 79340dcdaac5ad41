"""Times rejax's PPO on CartPole: run it in rejax's own environment."""

import sys
from pathlib import Path
from typing import Any

import jax
from measure import ROLLOUT_LENGTH, argument_parser, measure, report


def config(num_envs: int, updates: int) -> dict[str, Any]:
    """Returns the settings shared by all peers; rejax does not anneal."""
    steps = updates * ROLLOUT_LENGTH * num_envs
    return {
        "env": "CartPole-v1",
        "agent_kwargs": {"activation": "tanh", "hidden_layer_sizes": (64, 64)},
        "num_envs": num_envs,
        "num_steps": ROLLOUT_LENGTH,
        "total_timesteps": steps,
        "eval_freq": steps,
        "skip_initial_evaluation": True,
        "num_epochs": 4,
        "num_minibatches": 4,
        "learning_rate": 2.5e-4,
        "gamma": 0.99,
        "gae_lambda": 0.95,
        "clip_eps": 0.2,
        "ent_coef": 0.01,
        "vf_coef": 0.5,
        "max_grad_norm": 0.5,
    }


def main() -> None:
    """Trains once and prints the figures; the evaluation is not timed."""
    arguments = argument_parser(__doc__).parse_args()
    if arguments.recurrent:
        sys.exit("rejax has no recurrent PPO.")
    if arguments.source:
        sys.path.insert(0, str(Path(arguments.source, "src")))
    from rejax import PPO

    algorithm = PPO.create(**config(arguments.num_envs, arguments.updates))
    key = jax.random.key(arguments.seed)
    timed = algorithm.replace(eval_callback=lambda *_: ())
    timing = measure(timed.train, key)
    state, _ = timing.output
    _, returns = algorithm.eval_callback(algorithm, state, key)
    report("rejax", arguments, timing, returns.mean())


if __name__ == "__main__":
    main()
