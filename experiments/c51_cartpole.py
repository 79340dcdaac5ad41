"""CartPole-v1 with a categorical critic (C51), where the support is known in advance.

Every step pays 1, so that returns lie between 0 and 1 / (1 − γ) = 50, the support. It
is fixed, so there is no `return_scale`; `train/value_target_above_frac` says when it is
too narrow. Clipping keeps the mean within a tenth of it. The loss begins at ln N;
divided by that, it weighs the same for any number of atoms.

Expect an evaluation return of 500, the most there is, after 500 000 steps.
"""

import math

from ppo_jax import Config, critics, optimizers, terms

ATOMS, GAMMA = 51, 0.98

config = Config(
    env="CartPole-v1",
    total_timesteps=500_000,
    num_envs=8,
    num_steps=128,
    gamma=GAMMA,
    critic=critics.Categorical(
        ATOMS, v_min=0.0, v_max=1 / (1 - GAMMA), clip=critics.MeanOnly()
    ),
    terms=(
        terms.Surrogate(),
        terms.Value(coef=0.5 / math.log(ATOMS), clip_eps=5.0),
        terms.Entropy(),
    ),
    optimizer=optimizers.Adam(learning_rate=2e-3),
)
