"""All of it at once: a population of recurrent, risk-averse agents under attack.

Twin quantile critics with value clipping, a constraint on the tail, VGS in front of
AdaptiveUPGD, attacked rows mixed into what is learned from, and a population that
searches six numbers. Pendulum-v1.

Expect the fittest member above an evaluation return of −250 after 1 000 000 steps each.
The recipe's learning rates, 1e-5 to 5e-4, are too low for that: with them nothing is
learned in 200 000 steps.
"""

from ppo_jax import (
    PBT,
    Config,
    LogUniform,
    ReturnNormalization,
    Uniform,
    adversaries,
    attacks,
    critics,
    networks,
    optimizers,
    pbt,
    schedules,
    terms,
)

config = Config(
    env="Pendulum-v1",
    total_timesteps=1_000_000,
    num_envs=32,
    num_steps=128,
    num_epochs=8,
    num_minibatches=8,
    chunk_length=16,
    gamma=0.9,
    obs_clip=10.0,
    return_scale=ReturnNormalization(),
    network=networks.ActorCritic(memory=networks.Lstm(size=64)),
    critic=critics.Quantile(num_quantiles=32, clip=critics.PerQuantile()),
    num_critics=2,
    terms=(
        terms.Surrogate(),
        terms.Value(clip_eps=10.0),
        terms.Entropy(),
        terms.CVaRConstraint(alpha=0.05, limit=-60.0),
        terms.RobustKL(),
    ),
    adversary=adversaries.Mixed(
        attacks.Pgd(eps=0.075, schedule=schedules.Cosine(final=2 / 3)), max_percent=80
    ),
    optimizer=optimizers.AdaptiveUPGD(
        learning_rate=5e-3,
        sigma=1e-3,
        schedule=schedules.Constant(),
        vgs=optimizers.VGS(),
    ),
    pbt=PBT(
        {
            "optimizer.learning_rate": LogUniform(1e-3, 2e-2),
            "terms.entropy.coef": Uniform(1e-4, 1e-2),
            "terms.surrogate.clip_eps": Uniform(0.05, 0.3, factor=1.1, resample=0.2),
            "adversary.attack.eps": Uniform(0.01, 0.15, factor=1.15, resample=0.3),
            "adversary.ratio": Uniform(0.2, 0.8, factor=1.1),
            "terms.robust_kl.coef": Uniform(0.01, 0.5, resample=0.3),
        },
        size=8,
        interval=10,
        selector=pbt.Truncation(ratio=0.25),
        readiness=pbt.Readiness(share=0.75),
    ),
)
