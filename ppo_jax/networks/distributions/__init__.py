"""Action distributions: pytrees with any leading axes.

A *raw* action is what a distribution samples and what training stores and scores
again; `to_action` turns it into what the environment gets. Squashed distributions
therefore never need an inverse. All maths is float32, whatever a network computes in.
"""

from ppo_jax.networks.distributions.discrete import (
    Categorical,
    MultiCategorical,
    categorical,
    mask_logits,
)
from ppo_jax.networks.distributions.distribution import Distribution
from ppo_jax.networks.distributions.gaussian import (
    DiagGaussian,
    SigmoidGaussian,
    TanhGaussian,
)
