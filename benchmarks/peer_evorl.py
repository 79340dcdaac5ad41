"""Times evorl's PBT of PPO on CartPole: run it in evorl's own environment."""

import argparse
import statistics
import sys
import time
from pathlib import Path

import hydra
import jax
from measure import ROLLOUT_LENGTH
from omegaconf import OmegaConf


def parse_arguments():
    """Returns the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--source", required=True, help="a checkout of the library")
    parser.add_argument("--size", type=int, required=True)
    parser.add_argument("--num-envs", type=int, default=16)
    parser.add_argument("--interval", type=int, default=10)
    parser.add_argument("--generations", type=int, default=3)
    parser.add_argument("--episodes", type=int, default=16)
    return parser.parse_args()


def config(options):
    """Returns evorl's own settings for PBT of PPO, at the given size."""
    steps = options.num_envs * ROLLOUT_LENGTH
    overrides = [
        "agent=meta/pbt-paramppo",
        "env=gymnax/CartPole-v1",
        f"pop_size={options.size}",
        f"workflow_steps_per_iter={options.interval}",
        "warmup_steps=0",
        f"num_eval_envs={options.episodes}",
        f"eval_episodes={options.episodes}",
        f"target_workflow.num_envs={options.num_envs}",
        f"target_workflow.rollout_length={ROLLOUT_LENGTH}",
        f"target_workflow.minibatch_size={steps // 4}",
        "target_workflow.reuse_rollout_epochs=4",
        f"target_workflow.num_eval_envs={options.episodes}",
        f"target_workflow.eval_episodes={options.episodes}",
        "target_workflow.agent_network.actor_hidden_layer_sizes=[64,64]",
        "target_workflow.agent_network.critic_hidden_layer_sizes=[64,64]",
    ]
    folder = str(Path(options.source, "configs").resolve())
    with hydra.initialize_config_dir(folder, version_base=None):
        return hydra.compose("config", overrides)


def main():
    """Prints steps/s of all members together, the median over generations."""
    options = parse_arguments()
    sys.path[:0] = [options.source, str(Path(options.source, "scripts"))]
    from hydra_utils import set_omegaconf_resolvers

    set_omegaconf_resolvers()
    settings = config(options)
    OmegaConf.set_struct(settings, False)
    kind = hydra.utils.get_class(settings.workflow_cls)
    workflow = type(kind.__name__, (kind,), {}).build_from_config(settings)
    state, seconds = workflow.init(jax.random.PRNGKey(0)), []
    for _ in range(1 + options.generations):
        began = time.perf_counter()
        _, state = jax.block_until_ready(workflow.step(state))
        seconds.append(time.perf_counter() - began)
    steps = options.size * options.interval * options.num_envs * ROLLOUT_LENGTH
    print(steps / statistics.median(seconds[1:]))


if __name__ == "__main__":
    main()
