"""Craftax-Classic from its numbers, feed-forward: survive, collect, craft.

A return is about as many achievements, of 22 (docs/results.md). Evaluations sample: the
most likely action leads nowhere. A world takes far longer to make than a step in it, so
starts come from a pool. Needs `pip install 'ppo_jax[craftax]'`.
"""

from ppo_jax import Config, envs, networks, optimizers, terms

config = Config(
    env=envs.ResetPool("craftax/Craftax-Classic-Symbolic-v1", size=1),
    total_timesteps=1_000_000,
    num_envs=64,
    num_steps=64,
    num_minibatches=8,
    network=networks.ActorCritic(
        torso=networks.Mlp(hidden=(256, 256), activation="tanh")
    ),
    terms=(terms.Surrogate(), terms.Value(), terms.Entropy(coef=0.01)),
    optimizer=optimizers.Adam(learning_rate=3e-4),
    eval_episodes=16,
    eval_sample=True,
)
