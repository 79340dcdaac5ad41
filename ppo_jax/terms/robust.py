"""The term by which a policy learns to keep to itself under attack."""

from ppo_jax import losses
from ppo_jax.component import component, require_range
from ppo_jax.state import Batch
from ppo_jax.terms.term import Context, Forward, Term
from ppo_jax.types import Array, Metrics


@component
class RobustKL(Term):
    """A penalty on KL(π(·|s) ‖ π(·|ŝ)), the mean over the attacked rows.

    The config's adversary decides which rows these are, and what ŝ is. The policy at s
    is a constant; in closed form.

    Attributes:
        coef: Coefficient ≥ 0.

    Raises:
        ValueError: At construction, for a negative coefficient.

    References:
        Zhang et al., `Robust Deep Reinforcement Learning against Adversarial
        Perturbations on State Observations <https://arxiv.org/abs/2003.08938>`_, 2020.
    """

    coef: float = 0.1
    guides = False

    def validate(self) -> None:
        """Raises a `ValueError` for a negative coefficient."""
        require_range(self, "coef", "a number ≥ 0", lambda coef: coef >= 0)

    def __call__(
        self, out: Forward, batch: Batch, context: Context
    ) -> tuple[Array, Metrics]:
        attacked = out.attacked
        assert attacked is not None  # `Config` sees to it.
        kl = losses.policy_smoothness_loss(attacked.clean, attacked.perturbed)
        kl = attacked.alone(kl, batch.weight)
        penalty = self.coef * kl
        return penalty, {
            "sa_ppo/kl_divergence": kl,
            "sa_ppo/robust_kl_penalty": penalty,
        }
