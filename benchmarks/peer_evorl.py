"""Times evorl's PBT of PPO on CartPole: run it in evorl's own environment."""

import os
import statistics
import sys
import time
from pathlib import Path

import hydra
import jax
import numpy as np
from measure import Timing, generation_parser, report
from omegaconf import OmegaConf


def config(options):
    """Returns evorl's own settings for PBT of PPO, at the given size."""
    steps = options.num_envs * options.num_steps
    overrides = [
        "agent=meta/pbt-paramppo",
        "env=gymnax/CartPole-v1",
        f"pop_size={options.members}",
        f"workflow_steps_per_iter={options.updates}",
        "warmup_steps=0",
        f"num_eval_envs={options.episodes}",
        f"eval_episodes={options.episodes}",
        f"target_workflow.num_envs={options.num_envs}",
        f"target_workflow.rollout_length={options.num_steps}",
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
    """Prints what a generation takes, the median of several."""
    parser = generation_parser(__doc__)
    parser.add_argument("--spread", action="store_true", help="a device for every core")
    options = parser.parse_args()
    if options.spread:
        count = len(os.sched_getaffinity(0))
        os.environ["XLA_FLAGS"] = f"--xla_force_host_platform_device_count={count}"
    sys.path[:0] = [options.source, str(Path(options.source, "scripts"))]
    from hydra_utils import set_omegaconf_resolvers

    set_omegaconf_resolvers()
    settings = config(options)
    OmegaConf.set_struct(settings, False)
    kind = hydra.utils.get_class(settings.workflow_cls)
    workflow = type(kind.__name__, (kind,), {}).build_from_config(settings)
    state, seconds = workflow.init(jax.random.PRNGKey(options.seed)), []
    for _ in range(1 + options.generations):
        began = time.perf_counter()
        _, state = jax.block_until_ready(workflow.step(state))
        seconds.append(time.perf_counter() - began)
    first, *later = seconds
    middle = statistics.median(later)
    timing = Timing(state, compile_seconds=first - middle, seconds=middle)
    report(options, timing, np.full((1, 1), np.nan))


if __name__ == "__main__":
    main()
