"""The term that teaches a policy to act the same under attack."""

from typing import Any

from ppo_jax import losses
from ppo_jax.component import component, require
from ppo_jax.component.bounds import FiniteNonNegative
from ppo_jax.state import Batch
from ppo_jax.terms.term import Context, Forward, Loss, Term


@component
class RobustKL(Term):
    """A penalty on KL(π(·|s) ‖ π(·|ŝ)), the mean over the attacked rows.

    The config's adversary chooses the attacked rows and ŝ. The policy at s is a
    constant. The divergence is in closed form.

    Attributes:
        coef: Coefficient ≥ 0.

    Raises:
        ValueError: At construction, for a coefficient that is negative or not finite.

    References:
        Zhang et al., `Robust Deep Reinforcement Learning against Adversarial
        Perturbations on State Observations <https://arxiv.org/abs/2003.08938>`_, 2020.
    """

    coef: FiniteNonNegative[float] = 0.1
    guides = False
    compares = True

    def check(self, config: Any) -> None:
        expected = "an adversary, because terms hold a RobustKL"
        require(config.adversary is not None, "Config.adversary", None, expected)

    def __call__(self, out: Forward, batch: Batch, context: Context) -> Loss:
        attacked = out.attacked
        assert attacked is not None  # `check` sees to it.
        kl = losses.policy_smoothness_loss(attacked.clean, attacked.perturbed)
        kl = attacked.alone(kl)
        penalty = self.coef * kl
        return penalty, {
            "sa_ppo/kl_divergence": kl,
            "sa_ppo/robust_kl_penalty": penalty,
        }
