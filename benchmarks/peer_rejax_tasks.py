"""Evaluations of rejax's PPO while it learns an environment that it adapts itself.

    python benchmarks/peer_rejax_tasks.py jumanji/Snake-v1 --steps 2000000 --seed 0

It runs in an environment of its own; its numbers are those of `experiments/snake.py`.
rejax knows no masks: what is allowed is part of what its networks see. A line of JSON
is printed.
"""

import argparse
import json
import time

import jax
from rejax import PPO
from rejax.evaluate import evaluate

NUM_ENVS, NUM_STEPS = 64, 64


def main() -> None:
    """Trains, evaluates as often as is asked for, and prints what it found."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("env")
    parser.add_argument("--steps", type=int, required=True)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--evaluations", type=int, default=5)
    parser.add_argument("--episodes", type=int, default=8)
    asked = parser.parse_args()
    begin = time.perf_counter()
    algorithm = PPO.create(**settings(asked))

    def played(algorithm, state, key):
        act = algorithm.make_act(state)
        given = algorithm.env, algorithm.env_params
        return evaluate(act, key, *given, asked.episodes)[1].mean()

    algorithm = algorithm.replace(eval_callback=played)
    _, returns = jax.jit(algorithm.train)(jax.random.PRNGKey(asked.seed))
    steps = [algorithm.eval_freq * (i + 1) for i in range(len(returns))]
    told = {"steps": steps, "returns": [float(x) for x in returns]}
    print(json.dumps(told | {"seconds": time.perf_counter() - begin}))


def settings(asked: argparse.Namespace) -> dict:
    """As `experiments/snake.py` has them; evaluations after whole rollouts."""
    rollouts = asked.steps // (NUM_ENVS * NUM_STEPS * asked.evaluations)
    each = rollouts * NUM_ENVS * NUM_STEPS
    return {
        "env": asked.env,
        "agent_kwargs": {"activation": "relu", "hidden_layer_sizes": (128, 64)},
        "num_envs": NUM_ENVS,
        "num_steps": NUM_STEPS,
        "total_timesteps": each * asked.evaluations,
        "eval_freq": each,
        "skip_initial_evaluation": True,
        "num_epochs": 4,
        "num_minibatches": 8,
        "learning_rate": 1e-3,
        "gamma": 0.99,
        "gae_lambda": 0.95,
        "clip_eps": 0.2,
        "ent_coef": 0.01,
        "vf_coef": 0.5,
        "max_grad_norm": 0.5,
    }


if __name__ == "__main__":
    main()
