"""A market on the device: bring prices, and `Trading` trades them.

`PriceFile` reads prices of your own, and `repairs` mend their defects if asked to.
`Stocks`, `Sp500Stocks` and `Sp500Index` come with packages. From `RandomWalk` and
`Shuffled` nothing can be learned.
"""

from ppo_jax.envs.trading import repairs
from ppo_jax.envs.trading.account import Account
from ppo_jax.envs.trading.bars import Bars
from ppo_jax.envs.trading.features import Features
from ppo_jax.envs.trading.files import PriceError
from ppo_jax.envs.trading.prices import Prices, RandomWalk, Shuffled
from ppo_jax.envs.trading.sources import PriceFile, Sp500Index, Sp500Stocks, Stocks
from ppo_jax.envs.trading.trading import RUIN, Trading
