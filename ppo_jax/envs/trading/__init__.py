"""A market of prices that you bring: `read` them, and `Trading` trades them."""

from ppo_jax.envs.trading.account import Account
from ppo_jax.envs.trading.bars import Bars
from ppo_jax.envs.trading.features import Features
from ppo_jax.envs.trading.prices import Prices, RandomWalk, Shuffled
from ppo_jax.envs.trading.trading import RUIN, Trading
