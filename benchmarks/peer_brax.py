"""Evaluations of PPO of Brax while it learns a task of MuJoCo Playground.

    python benchmarks/peer_brax.py ReacherEasy --steps 500000 --seed 0

Playground trains with it. Environments, steps, epochs, minibatches, discount and
learning rate are those of `experiments/playground.py`; all else, networks too, is
Playground's choice for the task. A line of JSON is printed.
"""

import argparse
import json
import time

from brax.training.agents.ppo import train as ppo
from mujoco_playground import dm_control_suite, wrapper
from mujoco_playground.config import dm_control_suite_params as tuned


def main() -> None:
    """Trains, evaluates as often as is asked for, and prints what it found."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("env", type=lambda name: name.rpartition("/")[2])
    parser.add_argument("--steps", type=int, required=True)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--evaluations", type=int, default=5)
    parser.add_argument("--episodes", type=int, default=16)
    asked = parser.parse_args()
    begin = time.perf_counter()
    rows = []
    ppo.train(
        dm_control_suite.load(asked.env, config_overrides={"impl": "jax"}),
        eval_env=dm_control_suite.load(asked.env, config_overrides={"impl": "jax"}),
        wrap_env_fn=wrapper.wrap_for_brax_training,
        progress_fn=lambda step, said: rows.append((step, said)),
        seed=asked.seed,
        num_eval_envs=asked.episodes,
        deterministic_eval=True,
        **settings(asked),
    )
    returns = [float(said["eval/episode_reward"]) for _, said in rows[1:]]
    told = {"steps": [int(step) for step, _ in rows[1:]], "returns": returns}
    print(json.dumps(told | {"seconds": time.perf_counter() - begin}))


def settings(asked: argparse.Namespace) -> dict:
    """Playground's for a task, with the numbers that are shared."""
    return tuned.brax_ppo_config(asked.env).to_dict() | {
        "num_timesteps": asked.steps,
        "num_evals": 1 + asked.evaluations,
        "num_envs": 64,
        "unroll_length": 64,
        "num_minibatches": 8,
        "batch_size": 8,
        "num_updates_per_batch": 8,
        "learning_rate": 5e-4,
        "num_resets_per_eval": 0,
    }


if __name__ == "__main__":
    main()
