"""Terms that move the policy."""

from typing import Annotated

import jax.numpy as jnp

from ppo_jax import losses
from ppo_jax.component import component
from ppo_jax.component.bounds import Bound, Finite, FiniteNonNegative, Positive
from ppo_jax.controllers import K3, ClosedForm, Divergence, EntropySchedule, KlPid
from ppo_jax.normalization.observations import TINY
from ppo_jax.schedules import Constant, Schedule, factor
from ppo_jax.state import Batch
from ppo_jax.terms.term import Context, Forward, Loss, Prepared, RolloutTargets, Term
from ppo_jax.types import Metrics, PyTree


@component
class Surrogate(Term):
    """PPO's clipped surrogate (Schulman et al., 2017, eq. 7).

    Attributes:
        clip_eps: Clip range ε > 0.
        clip_schedule: Factor of ε as a function of progress.
        dual_clip: Bound c > 1 on −ratio · A for negative advantages (Ye et al., 2020,
            eq. 3); None: no bound.

    Raises:
        ValueError: At construction, for a number out of its range.
    """

    clip_eps: Positive[float] = 0.2
    clip_schedule: Schedule = Constant()
    dual_clip: Annotated[float | None, Bound("a number > 1", lambda c: c > 1)] = None

    def __call__(self, out: Forward, batch: Batch, context: Context) -> Loss:
        eps = self.clip_eps * factor(self.clip_schedule, context.progress)
        loss = losses.clipped_surrogate_loss(
            out.log_ratio, batch.advantage, eps, self.dual_clip
        )
        limit = losses.LOG_RATIO_LIMIT
        ratio = jnp.exp(jnp.clip(out.log_ratio, -limit, limit))
        return loss, {
            "train/policy_loss": loss,
            "train/clip_fraction": (jnp.abs(ratio - 1.0) > eps).astype(jnp.float32),
            "train/clip_range": jnp.broadcast_to(eps, loss.shape),
        }


@component
class Entropy(Term):
    """A bonus for the entropy of the policy.

    Attributes:
        coef: Coefficient; 0: the entropy is only measured.

    Raises:
        ValueError: At construction, for a coefficient that is not finite.
    """

    coef: Finite[float] = 0.01
    guides = False

    def __call__(self, out: Forward, batch: Batch, context: Context) -> Loss:
        entropy = out.policy.entropy()
        return -self.coef * entropy, {"train/policy_entropy": entropy}


@component
class AdaptiveEntropy(Term):
    """An entropy bonus whose coefficient decays, waits, and rises in trouble."""

    schedule: EntropySchedule = EntropySchedule()
    guides = False

    def init(self) -> PyTree:
        return self.schedule.init()

    def prepare(self, memory: PyTree, rollout: RolloutTargets) -> Prepared:
        return (), self.schedule.metrics(memory)

    def __call__(self, out: Forward, batch: Batch, context: Context) -> Loss:
        entropy = out.policy.entropy()
        coef = self.schedule.coefficient(context.memory)
        return -coef * entropy, {"train/policy_entropy": entropy}

    def update(self, memory: PyTree, metrics: Metrics) -> PyTree:
        return self.schedule.update(
            memory, metrics["train/policy_entropy"], metrics["train/explained_variance"]
        )


@component
class Kl(Term):
    """A penalty on KL(π_old ‖ π_new), estimated from each minibatch.

    Attributes:
        coef: Coefficient ≥ 0; 0: the divergence is only measured.
        divergence: Estimator of the divergence, `ClosedForm()`, `K1()` or `K3()`.

    Raises:
        ValueError: At construction, for a coefficient that is negative or not finite.
    """

    coef: FiniteNonNegative[float] = 0.0
    divergence: Divergence = ClosedForm()
    guides = False

    @property
    def reads_old_policy(self) -> bool:
        return self.divergence.reads_old_policy

    def __call__(self, out: Forward, batch: Batch, context: Context) -> Loss:
        kl = self.divergence(out.log_ratio, batch.old_policy, out.policy)
        return self.coef * kl, {}


@component
class KlPenalty(Term):
    """A penalty on KL(π_old ‖ π_new) whose coefficient keeps it near a target.

    Attributes:
        controller: Controller that moves the coefficient.
        divergence: Estimator of the divergence, `K3()`, `K1()` or `ClosedForm()`.
    """

    controller: KlPid = KlPid(target=0.02)
    divergence: Divergence = K3()
    guides = False

    @property
    def reads_old_policy(self) -> bool:
        return self.divergence.reads_old_policy

    def init(self) -> PyTree:
        return self.controller.init()

    def prepare(self, memory: PyTree, rollout: RolloutTargets) -> Prepared:
        return (), self.controller.metrics(memory)

    def __call__(self, out: Forward, batch: Batch, context: Context) -> Loss:
        kl = self.divergence(out.log_ratio, batch.old_policy, out.policy)
        return self.controller.coefficient(context.memory) * kl, {}

    def update(self, memory: PyTree, metrics: Metrics) -> PyTree:
        return self.controller.update(memory, metrics[self.divergence.metric])


@component
class AdvantageWeighted(Term):
    """Imitation of the rollout's own actions, with greater weights for better ones.

    The loss is −exp(min(A / β, ln w_max)) · ln π(a), advantage-weighted regression
    (Peng et al., 2019).

    Attributes:
        coef: Coefficient ≥ 0.
        temperature: β > 0.
        max_weight: w_max > 0.
        schedule: Factor of the coefficient as a function of progress.

    Raises:
        ValueError: At construction, for a number out of its range.
    """

    coef: FiniteNonNegative[float] = 1.0
    temperature: Positive[float] = 5.0
    max_weight: Positive[float] = 100.0
    schedule: Schedule = Constant()

    def __call__(self, out: Forward, batch: Batch, context: Context) -> Loss:
        weight = losses.advantage_weights(
            batch.advantage, self.temperature, self.max_weight
        )
        loss = -weight * (batch.log_prob + out.log_ratio)
        loss = self.coef * factor(self.schedule, context.progress) * loss
        rival = jnp.abs(loss) + jnp.abs(batch.advantage)
        return loss, {
            "train/policy_bc_loss": loss,
            "train/policy_bc_vs_ppo_ratio": jnp.abs(loss) / jnp.maximum(rival, TINY),
            "train/bc_weight": weight,
        }
