"""Evaluations of PPO of stable-baselines3 while it learns an environment of gymnasium.

    python benchmarks/peer_stable_baselines3.py HalfCheetah-v5 --steps 200000 --seed 0

It runs in an environment of its own and needs nothing of ppo_jax; its numbers are those
of `experiments/halfcheetah.py`. A line of JSON is printed.
"""

import argparse
import json
import time

import torch
from stable_baselines3 import PPO
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.evaluation import evaluate_policy
from stable_baselines3.common.vec_env import VecNormalize

NUM_ENVS, NUM_STEPS = 8, 256


def main() -> None:
    """Trains, evaluates as often as is asked for, and prints what it found."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("env", type=lambda name: name.rpartition("/")[2])
    parser.add_argument("--steps", type=int, required=True)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--evaluations", type=int, default=5)
    parser.add_argument("--episodes", type=int, default=8)
    asked = parser.parse_args()
    torch.set_num_threads(1)
    begin = time.perf_counter()
    made = make_vec_env(asked.env, NUM_ENVS, seed=asked.seed)
    envs = VecNormalize(made, gamma=0.99)
    agent = PPO(
        "MlpPolicy",
        envs,
        n_steps=NUM_STEPS,
        n_epochs=10,
        batch_size=NUM_ENVS * NUM_STEPS // 32,
        seed=asked.seed,
        device="cpu",
    )
    steps, returns = [], []
    for _ in range(asked.evaluations):
        more = asked.steps // asked.evaluations
        agent.learn(more, reset_num_timesteps=False)
        steps.append(agent.num_timesteps)
        returns.append(evaluated(agent, envs, asked))
    envs.close()
    seconds = time.perf_counter() - begin
    print(json.dumps({"steps": steps, "returns": returns, "seconds": seconds}))


def evaluated(agent: PPO, envs: VecNormalize, asked: argparse.Namespace) -> float:
    """The mean return of most likely actions, by the statistics of training."""
    made = make_vec_env(asked.env, asked.episodes, seed=10_000 + asked.seed)
    judged = VecNormalize(made, training=False, norm_reward=False)
    judged.obs_rms = envs.obs_rms
    mean, _ = evaluate_policy(agent, judged, asked.episodes)
    judged.close()
    return float(mean)


if __name__ == "__main__":
    main()
