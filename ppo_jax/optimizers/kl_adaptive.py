"""A learning rate that follows the policy, behind an optimiser."""

from typing import Any

import optax

from ppo_jax.component import component, require_field
from ppo_jax.component.bounds import FiniteAtLeastOne, FinitePositive, PositiveShare
from ppo_jax.controllers.divergence import K3, Divergence
from ppo_jax.transforms import kl_adaptive
from ppo_jax.types import Array, Metrics


@component
class KlAdaptive:
    """A factor of the learning rate that follows the policy's divergence, step by step.

    Before a step it is divided by `step` if the policy is further than `band` targets
    from the one that acted, and multiplied by `step` if it is nearer than a target /
    `band`. The rule is that of rl_games (Makoviychuk et al., 2021), the numbers are
    those of RSL-RL (Rudin et al., 2022), whose rates begin at 10⁻³ and stay from 10⁻⁵
    to 10⁻².

    Attributes:
        target: Divergence KL(π_old ‖ π_new) in nats that an update should lead to.
        band: Ratio ≥ 1 to the target up to which a divergence is near enough.
        step: Ratio ≥ 1 of a factor to the next one.
        floor: Least factor, in (0, 1].
        cap: Largest factor ≥ 1.
        divergence: Estimator of the divergence, `K3()`, `K1()` or `ClosedForm()`.

    Raises:
        ValueError: At construction, for a number out of its range.
    """

    target: FinitePositive[float] = 0.01
    band: FiniteAtLeastOne[float] = 2.0
    step: FiniteAtLeastOne[float] = 1.5
    floor: PositiveShare[float] = 0.01
    cap: FiniteAtLeastOne[float] = 10.0
    divergence: Divergence = K3()

    def check(self, config: Any) -> None:
        """Raises a `ValueError` for an experiment that shows it no divergence."""
        steps = config.num_epochs * config.num_minibatches
        expected = (
            "2 steps in an update for kl_adaptive: before the first nothing moved"
        )
        require_field(config, "num_epochs", steps > 1, f"at least {expected}")

    def measured(self, metrics: Metrics) -> Array:
        """Returns the divergence `[]` among metrics.

        Raises:
            ValueError: If it is not there.
        """
        name = self.divergence.metric
        if name not in metrics:
            raise ValueError(f"KlAdaptive: expected a metric {name}, got {[*metrics]}")
        return metrics[name]

    def transformation(self) -> optax.GradientTransformationExtraArgs:
        """Returns the transformation, to be put at the end of a chain."""
        return kl_adaptive.scale_by_kl(
            self.target, self.band, self.step, self.floor, self.cap
        )
