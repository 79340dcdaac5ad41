"""Terms of the objective: components that compute the loss of each example."""

from ppo_jax.terms.estimates import Empirical, Estimate, Predicted
from ppo_jax.terms.imitation import Demonstrations, Imitation, Sequences
from ppo_jax.terms.policy import (
    AdaptiveEntropy,
    AdvantageWeighted,
    Entropy,
    Kl,
    KlPenalty,
    Surrogate,
)
from ppo_jax.terms.quantities import Costs, Quantity, Returns, Rewards
from ppo_jax.terms.risk import CVaR, CVaRConstraint, PredictedCVaR
from ppo_jax.terms.robust import RobustKL
from ppo_jax.terms.term import Attacked, Context, Forward, RolloutTargets, Term
from ppo_jax.terms.value import Value
