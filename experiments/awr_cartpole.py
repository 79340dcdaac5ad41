"""CartPole-v1 by advantage-weighted regression (Peng et al., 2019): no surrogate.

An objective is a tuple of terms, and PPO is one of them. Here the agent imitates its
own actions, the better ones more: no ratio, and no clip. What keeps it close to the
policy that acted is that nothing is imitated but what that one did.

Expect an evaluation return of 500, the most there is, after 500 000 steps.
"""

from ppo_jax import Config, optimizers, terms

config = Config(
    env="CartPole-v1",
    total_timesteps=500_000,
    num_envs=8,
    num_steps=128,
    gamma=0.98,
    terms=(
        terms.AdvantageWeighted(temperature=5.0),
        terms.Value(),
        terms.Entropy(),
    ),
    optimizer=optimizers.Adam(learning_rate=2e-3),
)
