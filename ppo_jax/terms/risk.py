"""Terms that care for the worst outcomes."""

from collections.abc import Iterator
from typing import Annotated, Any

import jax.numpy as jnp

from ppo_jax import losses
from ppo_jax.component import component, concrete, require, require_field, require_range
from ppo_jax.component.bounds import (
    Bound,
    Finite,
    FiniteNonNegative,
    NonNegative,
    Positive,
    PositiveShare,
)
from ppo_jax.critics import pessimistic_cvar
from ppo_jax.errors import missing
from ppo_jax.normalization.observations import TINY
from ppo_jax.state import Batch
from ppo_jax.terms.estimates import Empirical, Estimate
from ppo_jax.terms.quantities import Quantity, Returns
from ppo_jax.terms.term import Context, Forward, Loss, Prepared, RolloutTargets, Term
from ppo_jax.types import Array, Metrics, PyTree


@component
class _Tail(Term):
    """A surrogate of 1{R ≤ VaR} (R − VaR) / α, in the unit of advantages.

    It makes what led to the worst share α of outcomes less likely. Only the policy
    learns from it; value at risk and outcomes are those of the whole rollout that are
    finite.
    """

    alpha: PositiveShare[float] = 0.05
    quantity: Quantity = Returns()
    clip_eps: Positive[float] = 0.2
    winsor: Annotated[float, Bound("a number in [0, ½)", lambda x: 0 <= x < 0.5)] = 0.0

    def validate(self) -> None:
        """Raises a `ValueError` for a tail that winsorising makes a single value."""
        if concrete(self.alpha):
            expected = f"a number below alpha = {self.alpha}, of which a tail is left"
            require_range(self, "winsor", expected, lambda x: x < self.alpha)

    def doubts(self, config: Any) -> Iterator[str]:
        """Warns where actions are not blamed for what they lead to."""
        if self.quantity.at_once and config.env.acts_late:
            name, env = type(self).__name__, type(config.env).__name__
            yield (
                f"{name}.quantity: {self.quantity!r} are those of a step, in which "
                f"{env} shows of an action only its costs; what it leads to is in "
                "Returns()"
            )

    def coefficient(self, memory: PyTree) -> Array:
        """Returns the weight of the tail against the mean, `[]`."""
        raise missing(self, "coefficient")

    def prepare(self, memory: PyTree, rollout: RolloutTargets) -> Prepared:
        outcome = self.quantity(rollout)
        valid = (rollout.weight > 0) & jnp.isfinite(outcome)
        tail = losses.empirical_cvar(outcome, self.alpha, valid, self.winsor)
        outcome = jnp.clip(outcome, tail.low, tail.high)
        beyond = losses.tail_advantage(outcome, tail.var, self.alpha)
        beyond = jnp.where(valid, beyond / self.quantity.unit(rollout), 0.0)
        return self.quantity.answered(beyond, rollout), {
            "train/cvar_empirical": jnp.where(tail.size > 0, tail.cvar, jnp.nan),
            "train/cvar_var": jnp.where(tail.size > 0, tail.var, jnp.nan),
            "train/cvar_tail_size": tail.size,
            "train/cvar_coef": self.coefficient(memory),
        }

    def __call__(self, out: Forward, batch: Batch, context: Context) -> Loss:
        loss = losses.clipped_surrogate_loss(
            out.log_ratio, context.prepared, self.clip_eps
        )
        return self.coefficient(context.memory) * loss, {"train/cvar_loss": loss}


@component
class CVaR(_Tail):
    """A penalty on the tail: the policy maximises E[R] + coef · CVaR_α[R].

    Attributes:
        alpha: Share α of worst outcomes, in (0, 1].
        quantity: What outcomes are, `Returns()`, `Rewards()` or `Costs()`.
        clip_eps: Clip range of the surrogate.
        winsor: Share of outcomes, in [0, ½) and below α, pulled in at both ends before.
        coef: Weight ≥ 0 of the CVaR against the mean.

    Raises:
        ValueError: At construction, for a number out of its range.

    References:
        Tamar et al., `Optimizing the CVaR via Sampling
        <https://arxiv.org/abs/1404.3862>`_, 2015.
    """

    coef: FiniteNonNegative[float] = 0.5

    def coefficient(self, memory: PyTree) -> Array:
        return jnp.asarray(self.coef, jnp.float32)


@component
class CVaRConstraint(_Tail):
    """The mean is maximised subject to CVaR_α[R] ≥ limit, by a Lagrange multiplier.

    λ rises while the CVaR of an update is below the limit, and falls while it is above:
    λ ← clip(λ + η (limit − CVaR) / unit, 0, λ_max), with the unit of advantages. It is
    the weight of the tail against the mean: rewards for one of the quantity. For costs
    that are small beside rewards, η and λ_max have to be as many times larger. λ begins
    at 0; another term, such as `Surrogate`, has to maximise the mean.

    Attributes:
        alpha: Share α of worst outcomes, in (0, 1].
        quantity: What outcomes are, `Returns()`, `Rewards()` or `Costs()`.
        clip_eps: Clip range of the surrogate.
        winsor: Share of outcomes, in [0, ½) and below α, pulled in at both ends before.
        limit: Least CVaR that is accepted, in units of the quantity.
        learning_rate: Step size η ≥ 0 of the multiplier.
        max_dual: Largest multiplier λ_max ≥ 0, in rewards for one of the quantity.
        estimate: Which CVaR is held against the limit, `Empirical()` or `Predicted()`.

    Raises:
        ValueError: At construction, for a number out of its range, or for a prediction
            of what no critic predicts.

    References:
        Chow et al., `Risk-Constrained Reinforcement Learning with Percentile Risk
        Criteria <https://arxiv.org/abs/1512.01629>`_, 2018.
    """

    limit: Finite[float] = 0.0
    learning_rate: FiniteNonNegative[float] = 0.01
    max_dual: NonNegative[float] = 1.0
    estimate: Estimate = Empirical()
    guides = False

    def validate(self) -> None:
        """Raises a `ValueError` for a quantity that critics do not predict as well."""
        super().validate()
        known = self.quantity.predicted or not self.estimate.reads_critic
        expected = f"Returns(), which critics predict, with {self.estimate}"
        require_field(self, "quantity", known, expected)

    def doubts(self, config: Any) -> Iterator[str]:
        """Warns of a limit with the wrong sign as well."""
        yield from super().doubts(config)
        if self.quantity.negated and concrete(self.limit) and self.limit > 0:
            yield (
                f"CVaRConstraint.limit: {self.quantity!r} are minus the cost of a "
                f"step, so {self.limit} is out of reach; for a mean cost of at most "
                "0.1 give limit=-0.1 and alpha=1.0"
            )

    def check(self, config: Any) -> None:
        predicts = config.critic.distributional or not self.estimate.reads_critic
        expected = f"a Quantile or Categorical critic, for the CVaR of {self.estimate}"
        require(predicts, "Config.critic", config.critic, expected)
        alike = [term for term in config.terms if isinstance(term, CVaRConstraint)]
        predicted = [term for term in alike if term.estimate.reads_critic]
        expected = "at most one CVaRConstraint whose estimate is Predicted()"
        require(len(predicted) <= 1, "Config.terms", config.terms, expected)

    def init(self) -> Array:
        return jnp.zeros((), jnp.float32)

    def coefficient(self, memory: Array) -> Array:
        return jnp.minimum(memory, self.max_dual)  # Which may be another one by now.

    def prepare(self, memory: Array, rollout: RolloutTargets) -> Prepared:
        beyond, tail = super().prepare(memory, rollout)
        shown = rollout._replace(unit=self.quantity.unit(rollout))
        examples, metrics = self.estimate.prepare(tail, self.limit, shown)
        limit, dual = jnp.asarray(self.limit, jnp.float32), self.coefficient(memory)
        metrics |= {
            "train/cvar_lambda": dual,
            "train/cvar_lambda_share": dual / jnp.maximum(self.max_dual, TINY),
            "train/cvar_limit": limit,
        }
        return (beyond, examples), tail | metrics

    def __call__(self, out: Forward, batch: Batch, context: Context) -> Loss:
        beyond, examples = context.prepared
        loss, metrics = super().__call__(out, batch, context._replace(prepared=beyond))
        own, estimated = self.estimate(
            out, context._replace(prepared=examples), self.alpha, self.limit
        )
        return loss + self.coefficient(context.memory) * own, metrics | estimated

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

    coef: FiniteNonNegative[float] = 0.5
    alpha: PositiveShare[float] = 0.05
    guides = False

    def __call__(self, out: Forward, batch: Batch, context: Context) -> Loss:
        cvar = pessimistic_cvar(out.value, self.alpha)
        predicted = context.scale.decode(cvar)
        return -self.coef * cvar, {"train/cvar_predicted": predicted}
