"""Action distributions: pytrees with any leading axes.

A distribution samples *raw* actions, which training stores and scores again;
`to_action` turns a raw action into the action that the environment gets. Squashed
distributions therefore never need an inverse. All maths is float32, whatever type a
network computes in.
"""

from ppo_jax.networks.distributions.discrete import (
    Categorical,
    MultiCategorical,
    categorical,
    mask_logits,
)
from ppo_jax.networks.distributions.distribution import Distribution
from ppo_jax.networks.distributions.gaussian import (
    APART,
    DiagGaussian,
    SigmoidGaussian,
    TanhGaussian,
    bounded,
)
