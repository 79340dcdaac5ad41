"""Terms that care for the worst outcomes."""

import jax.numpy as jnp

from ppo_jax import losses
from ppo_jax.component import component, require_range
from ppo_jax.critics import pessimistic_cvar
from ppo_jax.state import Batch
from ppo_jax.terms.term import Context, Forward, Rollout, Term
from ppo_jax.types import Array, Metrics, PyTree


@component
class Quantity:
    """What the risk is a risk of: one number per step of a rollout."""

    def __call__(self, rollout: Rollout) -> Array:
        """Samples `[T, B]`, in units of rewards."""
        raise NotImplementedError


@component
class Returns(Quantity):
    """The λ-return from each step on."""

    def __call__(self, rollout: Rollout) -> Array:
        return rollout.target


@component
class Rewards(Quantity):
    """The reward of each step."""

    def __call__(self, rollout: Rollout) -> Array:
        return rollout.reward


@component
class _Tail(Term):
    """A surrogate of 1{R ≤ VaR} (R − VaR) / α, in the unit of advantages.

    It makes what led to the worst share α of outcomes less likely. Only the policy
    learns from it; value at risk and outcomes are those of the whole rollout.
    """

    alpha: float = 0.05
    quantity: Quantity = Returns()
    clip_eps: float = 0.2

    def validate(self) -> None:
        """Raises a `ValueError` for a number out of its range."""
        require_range(self, "alpha", "a number in (0, 1]", lambda x: 0 < x <= 1)
        require_range(self, "clip_eps", "a number > 0", lambda eps: eps > 0)

    def coefficient(self, memory: PyTree) -> Array:
        """How much the tail weighs against the mean, `[]`."""
        raise NotImplementedError

    def prepare(self, memory: PyTree, rollout: Rollout) -> tuple[PyTree, Metrics]:
        outcome = self.quantity(rollout)
        valid = rollout.weight > 0
        tail = losses.empirical_cvar(outcome, self.alpha, valid)
        beyond = losses.tail_advantage(outcome, tail.var, self.alpha) / rollout.unit
        return jnp.where(valid, beyond, 0.0), {
            "train/cvar_empirical": tail.cvar,
            "train/cvar_var": tail.var,
            "train/cvar_tail_size": tail.size,
            "train/cvar_coef": self.coefficient(memory),
        }

    def __call__(
        self, out: Forward, batch: Batch, context: Context
    ) -> tuple[Array, Metrics]:
        loss = losses.clipped_surrogate_loss(
            out.log_ratio, context.prepared, self.clip_eps
        )
        return self.coefficient(context.memory) * loss, {"train/cvar_loss": loss}


@component
class CVaR(_Tail):
    """A penalty on the tail: the policy maximises E[R] + coef · CVaR_α[R].

    Attributes:
        alpha: Share α of worst outcomes, in (0, 1].
        quantity: What outcomes are, `Returns()` or `Rewards()`.
        clip_eps: Clip range of the surrogate.
        coef: Weight ≥ 0 of the CVaR against the mean.

    Raises:
        ValueError: At construction, for a number out of its range.

    References:
        Tamar et al., `Optimizing the CVaR via Sampling
        <https://arxiv.org/abs/1404.3862>`_, 2015.
    """

    coef: float = 0.5

    def validate(self) -> None:
        """Raises a `ValueError` for a number out of its range."""
        super().validate()
        require_range(self, "coef", "a number ≥ 0", lambda x: x >= 0)

    def coefficient(self, memory: PyTree) -> Array:
        return jnp.asarray(self.coef, jnp.float32)


@component
class CVaRConstraint(_Tail):
    """The mean is maximised subject to CVaR_α[R] ≥ limit, by a Lagrange multiplier.

    λ rises while the CVaR of a rollout is below the limit, and falls while it is above:
    λ ← clip(λ + η (limit − CVaR) / unit, 0, λ_max), with the unit of advantages.

    Attributes:
        alpha: Share α of worst outcomes, in (0, 1].
        quantity: What outcomes are, `Returns()` or `Rewards()`.
        clip_eps: Clip range of the surrogate.
        limit: Least CVaR that is accepted, in units of the quantity.
        learning_rate: Step size η ≥ 0 of the multiplier.
        max_dual: Largest multiplier λ_max ≥ 0.

    Raises:
        ValueError: At construction, for a number out of its range.

    References:
        Chow et al., `Risk-Constrained Reinforcement Learning with Percentile Risk
        Criteria <https://arxiv.org/abs/1512.01629>`_, 2018.
    """

    limit: float = 0.0
    learning_rate: float = 0.01
    max_dual: float = 1.0

    def validate(self) -> None:
        """Raises a `ValueError` for a number out of its range."""
        super().validate()
        for field in ("learning_rate", "max_dual"):
            require_range(self, field, "a number ≥ 0", lambda x: x >= 0)

    def init(self) -> Array:
        return jnp.zeros(())

    def coefficient(self, memory: Array) -> Array:
        return memory

    def prepare(self, memory: Array, rollout: Rollout) -> tuple[PyTree, Metrics]:
        prepared, metrics = super().prepare(memory, rollout)
        cvar = metrics["train/cvar_empirical"]
        some = metrics["train/cvar_tail_size"] > 0
        gap = jnp.where(some, (self.limit - cvar) / rollout.unit, 0.0)
        return prepared, metrics | {
            "train/cvar_lambda": memory,
            "train/cvar_gap": gap,
            "train/cvar_violation": losses.shortfall(cvar, self.limit),
        }

    def update(self, memory: Array, metrics: Metrics) -> Array:
        gap = metrics["train/cvar_gap"]
        return losses.dual_ascent(memory, gap, self.learning_rate, self.max_dual)


@component
class PredictedCVaR(Term):
    """A bonus for the CVaR that the critic predicts; critics learn it, not the policy.

    Without parameters in common the policy gets no gradient at all, and critics become
    optimistic about the tail: `CVaR` and `CVaRConstraint` are the terms that make a
    policy careful. This one reproduces systems that were trained with it.

    Attributes:
        coef: Weight ≥ 0, per unit of the return scale.
        alpha: Share α of worst outcomes, in (0, 1].

    Raises:
        ValueError: At construction, for a number out of its range.
    """

    coef: float = 0.5
    alpha: float = 0.05

    def validate(self) -> None:
        """Raises a `ValueError` for a number out of its range."""
        require_range(self, "coef", "a number ≥ 0", lambda x: x >= 0)
        require_range(self, "alpha", "a number in (0, 1]", lambda x: 0 < x <= 1)

    def __call__(
        self, out: Forward, batch: Batch, context: Context
    ) -> tuple[Array, Metrics]:
        cvar = pessimistic_cvar(out.value, self.alpha)
        predicted = context.scale.decode(cvar)
        return -self.coef * cvar, {"train/cvar_predicted": predicted}
