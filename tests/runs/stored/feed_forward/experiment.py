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
    network=networks.ActorCritic(torso=networks.Mlp(hidden=(4,))),
    terms=(
        terms.Surrogate(),
        terms.Value(),
        terms.AdaptiveEntropy(),
        terms.KlPenalty(),
    ),
    num_critics=2,
)
