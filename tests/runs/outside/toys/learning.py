"""What is learned from, and how."""

import jax
import jax.numpy as jnp
import optax

from ppo_jax import critics, optimizers, standardization, terms
from ppo_jax.component import component
from ppo_jax.losses import Law
from ppo_jax.metrics import LARGEST, QUOTIENT, SUM, Metric


@component
class Huber(critics.Critic):
    delta: float = 1.0
    distributional = False

    @property
    def num_outputs(self):
        return 1

    def law(self, outputs):
        return Law(outputs, jnp.ones_like(outputs))

    def loss(self, outputs, target):
        return optax.huber_loss(outputs[..., 0], target, delta=self.delta)


@component
class Near(terms.Term):
    """Keeps the policy near the one that acted; remembers how many updates it saw."""

    coef: float = 0.1
    guides = False
    says = (
        Metric("toys/extent", "nats", "|ln ratio|.", LARGEST),
        Metric("toys/nearness", "nats", "−1 − |ln ratio|.", LARGEST),
        Metric("toys/steps", "steps", "Learned from.", SUM),
        Metric(
            *("toys/reward_mean", "reward", "Mean of all steps.", QUOTIENT),
            sources=("toys/reward_sum", "toys/reward_count"),
        ),
    )

    def init(self):
        return jnp.zeros((), jnp.int32)

    def prepare(self, memory, rollout):
        return (), {
            "toys/steps": rollout.weight.sum(),
            "toys/reward_sum": rollout.reward.sum(),
            "toys/reward_count": jnp.float32(rollout.reward.size),
            "toys/seen": memory,
        }

    def __call__(self, out, batch, context):
        extent = jnp.abs(out.log_ratio)
        metrics = {"toys/extent": extent, "toys/nearness": -1.0 - extent}
        return self.coef * extent**2, metrics

    def update(self, memory, metrics):
        return memory + 1


@component
class Ranks(standardization.Standardization):
    """Only the order of advantages counts."""

    def __call__(self, advantage, weight, group):
        rank = jnp.argsort(jnp.argsort(advantage.ravel())).reshape(advantage.shape)
        return 2.0 * rank / (advantage.size - 1) - 1.0, jnp.zeros(rank.shape, bool)


def sign_of_average(decay):
    """A gradient transformation."""

    def init(params):
        return jax.tree.map(jnp.zeros_like, params)

    def update(updates, state, params=None):
        state = jax.tree.map(lambda m, g: decay * m + (1 - decay) * g, state, updates)
        return jax.tree.map(jnp.sign, state), state

    return optax.GradientTransformation(init, update)


@component
class Signs(optimizers.Optimizer):
    decay: float = 0.9

    def direction(self):
        return sign_of_average(self.decay)
