import jax
import jax.numpy as jnp

from ppo_jax import envs
from ppo_jax.component import component


@component
class Aim(envs.Env):
    """Pays for actions near a hidden place, of which the wind blows away a little."""

    wind: float = 0.1
    length: int = 4

    @property
    def action_space(self):
        return envs.Box((-1.0, -1.0), (1.0, 1.0))

    @property
    def max_episode_steps(self):
        return self.length

    def reset(self, key):
        place = jax.random.uniform(key, (2,), minval=-1.0)
        return place, (place, jnp.zeros((), jnp.int32))

    def transition(self, key, state, action):
        place, time = state
        place = place + self.wind * jax.random.normal(key, (2,))
        reward = -jnp.sum((action - state[0]) ** 2)
        over = time + 1 >= self.length
        return envs.outcome(place, reward, terminated=over), (place, time + 1)


@component
class Levers(Aim):
    """The same with two levers, one of which must not be pulled to its end."""

    @property
    def action_space(self):
        return envs.MultiDiscrete((2, 3))

    def action_mask(self, state):
        return jnp.array([True, True, True, True, False])

    def transition(self, key, state, action):
        pulled = jnp.where(action[1] == 2, jnp.nan, action - 0.5)
        return super().transition(key, state, pulled)
