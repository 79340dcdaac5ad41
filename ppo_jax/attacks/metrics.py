"""Metrics of attacks in training."""

from functools import partial

from ppo_jax.metrics.reductions import PRODUCT, STEPS_WITH
from ppo_jax.metrics.rows import rows, stepped

ATTACKED = "`adversary`"
STEPS = "train/n_minibatches_done"
COUNTS = ("sa_ppo/num_adversarial", "sa_ppo/num_clean")
HARMED, UNHARMED = ((name, STEPS) for name in COUNTS)
"""Counts of an optimiser step, each with the number of steps that they are means of."""
attacked = partial(stepped, needs=ATTACKED)
totalled = partial(rows, needs=ATTACKED)

ADVERSARY = (
    *attacked("""
        sa_ppo/num_adversarial [examples]: Attacked ones of an optimiser step.
        sa_ppo/num_clean [examples]: Those that were not attacked.
    """),
    *totalled(
        "sa_ppo/adversarial_samples [examples]: Attacked ones, each time again.",
        PRODUCT,
        *HARMED,
    ),
    *totalled(
        "sa_ppo/clean_samples [examples]: Others, each time again.",
        PRODUCT,
        *UNHARMED,
    ),
    *totalled(
        "sa_ppo/attack_count [steps]: Optimiser steps of updates that saw an attack.",
        STEPS_WITH,
        *HARMED,
    ),
    *attacked("""
        sa_ppo/adversarial_ratio [share]: Attacked examples, by their weight.
        sa_ppo/current_epsilon [observation]: ε in force.
        sa_ppo/avg_perturbation_norm [observation]: Size of a perturbation, in the
            attack's norm; this and what follows is 0 in a step without attacked
            examples.
        sa_ppo/boundary_fraction [share]: Components of attacked observations that moved
            by ε.
        sa_ppo/attack_success: By how much an attack raised its target.
        sa_ppo/kl_divergence [nats] with `RobustKL`: KL(π(·|s) ‖ π(·|ŝ)) in closed form,
            mean over attacked examples.
        sa_ppo/robust_kl_penalty with `RobustKL`: Its share of the loss.
    """),
)
