"""What a network is made of."""

import flax.linen as nn
import jax
import jax.numpy as jnp

from ppo_jax import envs, networks
from ppo_jax.component import component, require
from ppo_jax.networks.distributions import TanhGaussian, categorical


@component
class Leaky(networks.Torso):
    slope: float = 0.1

    def check(self, config):
        shape = config.obs_spec().shape
        require(len(shape) == 1, "Leaky", shape, "observations [n]")

    def __call__(self, obs):
        return nn.leaky_relu(nn.Dense(8)(obs), self.slope)


@component
class Minimal(networks.Recurrent):
    cell = networks.Cell(
        lambda carry, x, recurrent: (jnp.tanh(x + recurrent),), gates=1, states=1
    )


@component
class Trace(networks.Memory):
    """The features, and what is left of those before."""

    size: int = 8
    decay: float = 0.5

    def initial_carry(self, num_envs):
        return (jnp.zeros((num_envs, self.size)),)

    def __call__(self, carry, x, reset):
        def step(trace, now):
            x, reset = now
            trace = x + self.decay * jnp.where(reset[:, None], 0.0, trace)
            return trace, trace

        trace, traces = jax.lax.scan(step, *carry, (nn.Dense(self.size)(x), reset))
        return (trace,), traces


@component
class Doubtful(networks.Head):
    """Its deviation depends on the observation."""

    least: float = 0.1
    spaces = (envs.Box,)

    def num_outputs(self, space):
        return 2 * len(space.low)

    def policy(self, outputs, free, space, mask):
        loc, rho = jnp.split(outputs, 2, axis=-1)
        scale = self.least + nn.softplus(rho)
        return TanhGaussian(loc, scale, space.low, space.high)


@component
class Habit(networks.Head):
    """Prefers some choices to others whatever it sees."""

    temperature: float = 2.0
    spaces = (envs.Discrete, envs.MultiDiscrete)

    def free(self, space):
        return {"habit": self.num_outputs(space)}

    def policy(self, outputs, free, space, mask):
        logits = outputs / self.temperature + free["habit"]
        return categorical(logits, space, mask)
