"""Twenty stocks of the S&P 500, day by day, 1990 to 2014; what came later is unseen.

Needs `pip install 'ppo_jax[market]'`. The stocks are those that were large in 2022:
whoever holds them alike earns what nobody could know (docs/trading.md). Costs are
10 basis points of what is traded, and 3 % a year of what is borrowed.

Expect an evaluation return, the log growth of a year, of 0.17 after 1 000 000 of
2 000 000 steps, on bars of the training, where holding all alike gives 0.17 as well. It
is no edge: one run that was stopped there traded 58 % of its equity a day and had −0.89
in the eight years that it had not seen, where holding all alike gives +1.25.
"""

from ppo_jax import Config, critics, networks, optimizers, terms
from ppo_jax.envs.trading import Sp500Stocks, Trading

config = Config(
    env=Trading(Sp500Stocks(), cost=10.0, last=6_300.0, window=252),
    total_timesteps=2_000_000,
    num_envs=64,
    num_steps=128,
    num_minibatches=8,
    gamma=0.97,
    obs_clip=5.0,
    network=networks.ActorCritic(
        torso=networks.Mlp(hidden=(64, 64)), head=networks.GaussianHead(init_std=0.1)
    ),
    critic=critics.Quantile(num_quantiles=32),
    terms=(terms.Surrogate(), terms.Value(), terms.CVaR(coef=0.1, alpha=0.05)),
    optimizer=optimizers.Adam(learning_rate=3e-4),
)
