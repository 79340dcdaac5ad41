"""What attacks in training say."""

import functools

from ppo_jax.metrics.reductions import PRODUCT, STEPS_WITH, Metric
from ppo_jax.metrics.rows import stepped

ATTACKED, SMOOTHED = "`adversary`", "`RobustKL`"
TAKEN = "train/n_minibatches_done"
attacked = functools.partial(stepped, needs=ATTACKED)

ADVERSARY = (
    attacked(
        *("sa_ppo/num_adversarial", "examples"),
        "Attacked ones of an optimiser step.",
    ),
    attacked("sa_ppo/num_clean", "examples", "Those that were not attacked."),
    Metric(
        *("sa_ppo/adversarial_samples", "examples"),
        *(
            "Attacked ones, each time again.",
            PRODUCT,
            ("sa_ppo/num_adversarial", TAKEN),
        ),
        needs=ATTACKED,
    ),
    Metric(
        *("sa_ppo/clean_samples", "examples", "Others, each time again."),
        *(PRODUCT, ("sa_ppo/num_clean", TAKEN)),
        needs=ATTACKED,
    ),
    Metric(
        *("sa_ppo/attack_count", "steps", "Optimiser steps that saw an attack."),
        *(STEPS_WITH, ("sa_ppo/num_adversarial", TAKEN)),
        needs=ATTACKED,
    ),
    attacked(
        *("sa_ppo/adversarial_ratio", "share"),
        "Attacked examples, by their weight.",
    ),
    attacked("sa_ppo/current_epsilon", "observation", "ε in force."),
    attacked(
        *("sa_ppo/avg_perturbation_norm", "observation"),
        "Size of a perturbation, in the attack's norm; 0 without attacked examples.",
    ),
    attacked(
        *("sa_ppo/boundary_fraction", "share"),
        "Components of attacked observations that moved by ε.",
    ),
    attacked("sa_ppo/attack_success", "", "By how much an attack raised its target."),
    stepped(
        *("sa_ppo/kl_divergence", "nats"),
        "KL(π(·|s) ‖ π(·|ŝ)) in closed form, mean over attacked examples.",
        needs=SMOOTHED,
    ),
    stepped("sa_ppo/robust_kl_penalty", "", "Its share of the loss.", needs=SMOOTHED),
)
