"""Twenty stocks of the S&P 500, to be walked forward: 1990 to 2022, a year an episode.

Needs `pip install 'ppo_jax[market]'`.

    python -m ppo_jax.walkforward experiments/walkforward.py --grid env.cost=5,20

Expect less than holding all of them alike earns, at any cost, from agents that trade
their whole equity about 50 times a year: docs/trading.md has the numbers.
"""

from ppo_jax import Config, critics, networks, optimizers, terms
from ppo_jax.envs.trading import Sp500Stocks, Trading

config = Config(
    env=Trading(Sp500Stocks(), cost=5.0, window=252),
    total_timesteps=262_144,
    num_envs=32,
    num_steps=64,
    num_minibatches=8,
    num_epochs=4,
    gamma=0.95,
    phase_updates=8,
    eval_phases=1,
    eval_episodes=8,
    network=networks.ActorCritic(
        torso=networks.Mlp(hidden=(32, 32)), head=networks.GaussianHead(init_std=0.3)
    ),
    critic=critics.Quantile(num_quantiles=16),
    terms=(
        terms.Surrogate(),
        terms.Value(),
        terms.CVaR(coef=0.5),
    ),
    optimizer=optimizers.Adam(learning_rate=1e-3),
)
