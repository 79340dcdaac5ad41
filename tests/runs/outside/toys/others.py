"""Who is against the agent, and who goes on in a population."""

import jax.numpy as jnp

from ppo_jax import adversaries, attacks, pbt
from ppo_jax.component import component
from ppo_jax.metrics import LARGEST, Metric


@component
class Upwards(attacks.Attack):
    """Everything looks larger than it is, where that does harm."""

    def perturbation(self, problem, key):
        up = [jnp.full(x.shape, self.eps) for x in problem.floats]
        shown = problem.objective(problem.observe(up))
        harms = shown > problem.objective(problem.observe(problem.zero()))
        return self.bounded([jnp.where(harms[..., None], x, 0.0) for x in up], problem)


@component
class Watchful(adversaries.Mixed):
    """Says how far what it shows leads the policy from the one that acted."""

    says = (Metric("toys/led_*", "nats", "|ln ratio|.", LARGEST),)

    def forward(self, replay, batch, perturbed):
        out = super().forward(replay, batch, perturbed)
        metrics = out.attacked.metrics | {"toys/led_astray": jnp.abs(out.log_ratio)}
        return out._replace(attacked=out.attacked._replace(metrics=metrics))


def far_away(seen, honest):
    return jnp.abs(seen.policy.mode() - honest.policy.mode()).sum(axis=-1)


@component
class Everybody(pbt.Selector):
    """All continue the best member that is ready."""

    def __call__(self, fitness, ready, keys):
        best = jnp.argmax(jnp.where(ready, fitness, -jnp.inf)).astype(jnp.int32)
        own = jnp.arange(fitness.size, dtype=jnp.int32)
        copied = ready & (own != best)
        return pbt.Selection(jnp.where(copied, best, own), copied)
