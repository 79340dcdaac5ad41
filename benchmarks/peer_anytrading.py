"""Steps per second of gym-anytrading, alone and with PPO of stable-baselines3.

python benchmarks/peer_anytrading.py prices.csv SETTINGS

It runs in an environment of its own and needs nothing of ppo_jax. SETTINGS are JSON; a
line of JSON is printed.
"""

import json
import sys
import time

import gymnasium
import pandas as pd


def main(path: str, settings: str) -> None:
    """Prints steps per second by what was done."""
    frame, given = pd.read_csv(path), json.loads(settings)
    found = {"steps": alone(frame, given), "training": trained(frame, given)}
    print(json.dumps(found))


def make(frame: pd.DataFrame, given: dict) -> gymnasium.Env:
    """The stock environment: ten bars are seen, and held or sold."""
    import gym_anytrading  # noqa: F401 - It registers its environments.

    bounds = (10, 10 + given["window"])
    return gymnasium.make("stocks-v0", df=frame, window_size=10, frame_bound=bounds)


def alone(frame: pd.DataFrame, given: dict) -> float:
    """Of random actions, with resets."""
    env = make(frame, given)
    env.reset(seed=0)
    steps, begin = given["peer_steps"], time.perf_counter()
    for _ in range(steps):
        *_, terminated, truncated, _ = env.step(env.action_space.sample())
        if terminated or truncated:
            env.reset()
    return steps / (time.perf_counter() - begin)


def trained(frame: pd.DataFrame, given: dict) -> float:
    """Of learning, after a first rollout that does not count."""
    from stable_baselines3 import PPO
    from stable_baselines3.common.env_util import make_vec_env

    envs = make_vec_env(lambda: make(frame, given), n_envs=given["num_envs"])
    rollout = given["num_envs"] * given["num_steps"]
    agent = PPO(
        "MlpPolicy",
        envs,
        n_steps=given["num_steps"],
        n_epochs=given["num_epochs"],
        batch_size=rollout // given["num_minibatches"],
        device="cpu",
    )
    agent.learn(rollout)
    begin = time.perf_counter()
    agent.learn(rollout * given["peer_updates"])
    return rollout * given["peer_updates"] / (time.perf_counter() - begin)


if __name__ == "__main__":
    main(*sys.argv[1:])
